"""What is in the built pages, read without a browser."""

import json
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
            assert f"; {anchor}):" in chapter.find(id=anchor).get_text()
    assert [src for src in scripts(toy_site, "scoreboard.html") if "scoreboard.js" in src]
    assert not [src for src in scripts(toy_site, "index.html") if "scoreboard.js" in src]


def test_what_was_run_stands_where_the_cell_ran_it(toy_site):
    page = soup(toy_site, "results/tp1.html")
    first, second, third = page.select("details.what-was-run")
    sql, *_ = first.parent.select(".highlight-postgresql")
    assert sql.get_text().count("CREATE TABLE bank (n int <b>);") == 7
    assert sql.get_text().strip().endswith("-- and more, below")
    whole = first.get_text()
    assert whole.count("CREATE TABLE bank") == 20 and "SELECT 7;  -- 40 times" in whole
    assert "pgbench, 4 clients, protocol simple, 3\u00a0s:" in whole
    assert "def load(chapter):" in whole
    assert "pgrerun run tp1 --only bank.load" in whole
    assert "another value in the notebook's first cell (scale), or edit its statements in" in whole
    assert "pgrerun/chapters/tp1/sql (bank). Then run it again." in whole
    assert "Settings that differ from PostgreSQL's: jit = off." in whole
    assert "CREATE" not in second.parent.get_text() and "SELECT 7" in second.get_text()
    assert "--only till.load" in third.get_text() and "VACUUM till" in third.parent.get_text()
    assert not page.select("details.what-was-run details")
    for folded in (first, third):  # their cells say of nothing that it is to be changed
        cell = folded.parent
        assert "chapter.attempt" in folded.get_text()
        folded.decompose()
        assert "chapter.attempt" not in cell.get_text()


def test_what_is_not_all_that_was_sent_says_so(toy_site):
    *_, till = soup(toy_site, "results/tp1.html").select("details.what-was-run")
    parts = till.find_all(["p", "div"], recursive=False)
    # a number and its unit stay on one line
    told = [part.get_text().replace("\N{NO-BREAK SPACE}", " ").strip() for part in parts]
    said = (
        "What was run: 21 distinct statements, of which the first 17 were sent 33 times; pgbench"
        " with 4 clients, protocol simple, 3 and 9 s. DuckDB answered, too; counted is what"
        " PostgreSQL was sent. That prepared it. What was measured ran in a single-user backend,"
        " which reads its statements without a client: the function below gives them."
    )
    assert said in told
    scripts = told.index("pgbench ran till.pgbench: 4 clients, protocol simple, 3 and 9 s.")
    assert told[scripts + 1 : scripts + 3] == [
        *("pgbench, 4 clients, protocol simple, 3 s:", "SELECT 2;")
    ]
    heading, listed = told[scripts + 3 : scripts + 5]
    where = "the first 15 of 21; the run record has the first 17"
    assert heading == f"What was sent, and how often ({where}):"
    long, *others = listed.splitlines()
    assert long.endswith("xxx …  -- 1 time") and len(others) == 14
    assert others[-1] == "SELECT a13;  -- 2 times"


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
        assert folded or len(block.get_text().strip().splitlines()) <= 12
    (probing,) = [block for block in printed if "account_page_1" in block.get_text()]
    assert re.fullmatch(r"\d+ lines of SQL", probing.find_parent("details").summary.get_text())


def test_a_cell_is_not_shown_twice(toy_site):
    first, again, third = soup(toy_site, "results/tp1.html").select("details.what-was-run")
    assert "The cell:" in first.get_text() and "The cell:" in third.get_text()
    [change] = again.parent.select(":scope > .highlight-python")
    assert change.get_text().strip().splitlines() == [
        *("# Change scale in the first cell", "again = chapter.attempt(toy.bank.load)")
    ]
    assert "The cell:" not in again.get_text() and "toy.bank.load" not in again.get_text()
    assert "The rest of the cell:" in again.get_text() and "table(again)" in again.get_text()


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
    lines = [line["id"] for line in found.parent.select(":scope > .verdict-line")]
    assert lines == [one.claim.id for one in toy_chapter.judged()]
    assert not page.select("details.supporting .verdict-line")
    assert since.summary.get_text() == "Release by release" and "Often." not in since.get_text()
    assert "<!-- supporting" not in str(page)


def test_the_front_page_has_the_tally_and_one_chart(toy_site):
    page = soup(toy_site, "index.html")
    numbers = {
        bar.get_text().split(" ", 1)[1]: int(bar.b.get_text()) for bar in page.select(".tally li")
    }
    assert sum(numbers.values()) == len(claims.ledger()) and numbers["not testable here"] == 1
    (chart,) = page.select("script.vl-spec")
    rows = next(iter(json.loads(chart.string)["datasets"].values()))
    both = [("printed", toy_chapter.RATIO.printed), ("measured", 1.4)]
    assert [(row["kind"], row["value"]) for row in rows] == both


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
