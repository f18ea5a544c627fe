"""What is in the built pages, read without a browser."""

import re
import zipfile

import toy_chapter
from bs4 import BeautifulSoup

from pgrerun.record import claims
from pgrerun.site import scoreboard


def soup(site, page) -> BeautifulSoup:
    return BeautifulSoup((site / page).read_bytes(), "html.parser")


def scripts(site, page) -> list[str]:
    return [tag["src"] for tag in soup(site, page).find_all("script", src=True)]


def test_only_pages_with_charts_load_the_charts_scripts(toy_site):
    assert any("vega-bundle" in src for src in scripts(toy_site, "results/tp1.html"))
    assert any("charts.js" in src for src in scripts(toy_site, "results/tp1.html"))
    for page in ("scoreboard.html", "measure.html", "search.html"):
        assert not any("vega" in src or "charts.js" in src for src in scripts(toy_site, page)), page


def test_pages_carry_nothing_for_live_kernels(toy_site):
    for page in toy_site.rglob("*.html"):
        text = page.read_text()
        assert "thebe" not in text and "unpkg" not in text, page


def test_formulas_are_mathml_and_appear_once(toy_site):
    page = soup(toy_site, "results/tp1.html")
    assert len(page.select(".math-display math[display=block] mfrac")) >= 2
    assert "\\frac" not in page.select_one("article").get_text()
    assert page.select_one("#equation-usl .eqno").get_text() == "(1)"
    assert not any("mathjax" in src.lower() for src in scripts(toy_site, "results/tp1.html"))


def test_each_chart_has_its_words_and_a_picture_for_readers_without_scripts(toy_site):
    figures = soup(toy_site, "results/tp1.html").select("figure.vl-figure")
    assert len(figures) == 5
    for figure in figures:
        assert (
            figure.select_one(".vl-question").get_text()
            and figure.select_one("figcaption").get_text()
        )
        picture = figure.select_one(".vl-chart > img")
        assert picture["src"].startswith("data:image/svg+xml") and len(picture["alt"]) > 20


def test_removed_cells_leave_their_output_and_the_notebook_can_be_downloaded(toy_site):
    page = soup(toy_site, "results/tp1.html")
    assert "parameter_table()" not in page.select_one("article").get_text()
    assert page.select_one(".result-table td")
    assert (toy_site / "_sources" / "results" / "tp1.ipynb").exists()


def test_the_bundle_is_cached_beside_the_site(toy_book):
    (bundle,) = (toy_book / "_build" / ".vega").iterdir()
    assert bundle.stat().st_size > 500_000


def test_the_scoreboard_has_every_claim_and_leads_to_its_verdict(toy_site):
    rows = soup(toy_site, "scoreboard.html").select(".scoreboard tbody tr")
    assert [row["id"] for row in rows] == list(claims.ledger())
    found = {one.claim.id: str(one.verdict) for one in toy_chapter.judged()}
    assert {
        row["id"]: row["data-verdict"] for row in rows if row["data-verdict"] != scoreboard.NOT_RUN
    } == found
    chapter = soup(toy_site, "results/tp1.html")
    for row in rows:
        page, _, anchor = row.select_one("a.verdict")["href"].partition("#")
        assert page == f"results/{row['data-chapter']}.html" and anchor == (
            row["id"] if row["id"] in found else ""
        )
        if anchor:
            assert chapter.find(id=anchor).select_one(".chip")
    assert [src for src in scripts(toy_site, "scoreboard.html") if "scoreboard.js" in src]
    assert not [src for src in scripts(toy_site, "index.html") if "scoreboard.js" in src]


def test_statements_that_a_notebook_prints_are_coloured(real_site):
    printed = [
        block
        for page in (real_site / "results").glob("*.html")
        for block in soup(real_site, f"results/{page.name}").select(".output.stream")
    ]
    assert len(printed) > 10
    for block in printed:
        assert "highlight-postgresql" in block["class"] and block.select(".k, .kt, .kc")
        folded = block.find_parent("details")
        assert folded or sum(bool(line.strip()) for line in block.get_text().splitlines()) <= 12
    (probing,) = [block for block in printed if "account_page_1" in block.get_text()]
    assert re.fullmatch(r"\d+ lines of SQL", probing.find_parent("details").summary.get_text())


def test_only_long_tables_are_folded(toy_site):
    page = soup(toy_site, "results/tp1.html")
    assert not page.find("caption", string="Parameters").find_parent("details")
    long = page.find("caption", string="Thirteen rows").find_parent("details")
    assert long.summary.get_text() == "Thirteen rows (13 rows)" and not long.get("open")


def test_what_supports_is_folded_below_its_verdicts(toy_site):
    page = soup(toy_site, "results/tp1.html")
    found, since = page.select("details.supporting")
    assert found.summary.get_text() == "How this was found: 1 table" and not found.get("open")
    assert "Only who doubts reads on." in found.get_text() and found.select_one(".result-table")
    lines = [line["id"] for line in found.parent.select(".verdict-line")]
    assert lines == [one.claim.id for one in toy_chapter.judged()]
    assert not page.select("details.supporting .verdict-line")
    assert since.summary.get_text() == "Release by release" and "Often." not in since.get_text()
    assert "<!-- supporting" not in str(page)


def test_the_front_page_has_the_tally_and_what_it_was_made_from(toy_site):
    page = soup(toy_site, "index.html")
    numbers = {
        bar.get_text().split(" ", 1)[1]: int(bar.b.get_text()) for bar in page.select(".tally li")
    }
    assert sum(numbers.values()) == len(claims.ledger()) and numbers["not tested here"] == 1
    assert "PostgreSQL 18.6" in page.select_one(".made-from").get_text()


def test_the_disagreements_of_all_chapters_are_listed(toy_site):
    assert len(soup(toy_site, "disagreements.html").select(".cards tbody tr")) == len(
        scoreboard.disagreements()
    )


def test_a_chapter_ends_with_what_it_was_made_from_and_its_downloads(toy_site):
    made = soup(toy_site, "results/tp1.html").select_one(".page-record")
    assert "“toy”" in made.p.get_text() and "PostgreSQL 18.6" in made.p.get_text()
    addresses = [link["href"] for link in made.select("a[download]")]
    assert addresses == ["../_sources/results/tp1.ipynb", "tp1-charts.zip", "tp1-record.zip"]
    assert all((toy_site / "results" / address).exists() for address in addresses)
    data = zipfile.ZipFile(toy_site / "results" / "tp1-charts.zip")
    assert len(data.namelist()) == 5 and data.read("sweep.csv").decode().startswith(
        "provenance,clients,throughput"
    )
    assert set(zipfile.ZipFile(toy_site / "results" / "tp1-record.zip").namelist()) == {
        f"tp1/{name}" for name in ("environment.json", "observations.parquet", "verdicts.json")
    }
    assert not soup(toy_site, "results/hot.html").select(".page-record")  # it has no record


def test_every_page_forbids_other_hosts_and_scripts_that_are_not_the_theme_s(toy_site):
    built = [page for page in toy_site.rglob("*.html") if "_static" not in page.parts]
    for page in built:
        (policy,) = BeautifulSoup(page.read_bytes(), "html.parser").select(
            "head meta[http-equiv=Content-Security-Policy]"
        )
        assert "://" not in policy["content"] and "*" not in policy["content"], page
        assert "script-src 'self'" in policy["content"]
        assert "'unsafe-inline'" not in policy["content"].partition("script-src")[2]
    assert len(built) > 20


def test_every_page_says_what_a_link_to_it_should_tell(toy_site):
    for page in ("index.html", "results/tp1.html"):
        head = soup(toy_site, page).head
        said = {tag["property"]: tag["content"] for tag in head.select("meta[property]")}
        assert said["og:title"] and 0 < len(said["og:description"]) <= 202
        assert ((toy_site / page).parent / said["og:image"]).exists()
