"""What is in the built pages, read without a browser."""

import zipfile

import toy_chapter
from bs4 import BeautifulSoup
from checkouts import pages

from pgrerun.record import claims, printed, verdicts
from pgrerun.report_card.sections import SECTIONS
from pgrerun.site import samples

KEPT = printed.DATA.parent / "samples"


def soup(site, page) -> BeautifulSoup:
    return BeautifulSoup((site / page).read_bytes(), "html.parser")


def test_formulas_are_mathml_and_appear_once(toy_site):
    article = soup(toy_site, "results/tp1.html").select_one("article")
    assert len(article.select(".math-display math[display=block] mfrac")) >= 2
    assert "\\frac" not in article.get_text()


def test_each_word_leads_to_the_rule_that_decides_it(toy_site):
    rows = soup(toy_site, "measure.html").select("tr[id]")
    rules = {row["id"]: " ".join(row.get_text(" ").split()) for row in rows}
    words = [("verdict", str(one)) for one in verdicts.Verdict]
    words += [("basis", str(one)) for one in claims.Basis]
    assert set(rules) == {f"{kind}-{word.replace(' ', '-')}" for kind, word in words}
    assert all(rules.values())
    given = {f"verdict-{str(one.verdict).replace(' ', '-')}" for one in toy_chapter.judged()}
    for page, place in (("scoreboard.html", ""), ("results/tp1.html", "../")):
        links = soup(toy_site, page).select("a.chip, .verdict-line .rule a")
        assert {link["href"] for link in links} == {f"{place}measure.html#{one}" for one in given}


def test_the_front_page_has_the_tally_and_what_it_was_made_from(toy_site):
    page = soup(toy_site, "index.html")
    numbers = {
        bar.get_text().split(" ", 1)[1]: int(bar.b.get_text()) for bar in page.select(".tally li")
    }
    assert sum(numbers.values()) == len(claims.ledger()) and numbers["not tested here"] == 1
    assert "PostgreSQL 18.6" in page.select_one(".made-from").get_text()


def test_a_chapter_ends_with_what_it_was_made_from_and_its_downloads(toy_site):
    made = soup(toy_site, "results/tp1.html").select_one(".page-record")
    assert "“toy”" in made.p.get_text() and "PostgreSQL 18.6" in made.p.get_text()
    addresses = [link["href"] for link in made.select("a[download]")]
    assert addresses == ["../_sources/results/tp1.ipynb", "tp1-charts.zip", "tp1-record.zip"]
    data, record = (zipfile.ZipFile(toy_site / "results" / name) for name in addresses[1:])
    assert len(data.namelist()) == 5 and data.read("sweep.csv").startswith(b"provenance,clients,")
    assert set(record.namelist()) == {"tp1/environment.json", "tp1/verdicts.json"}
    assert not soup(toy_site, "results/hot.html").select(".page-record")  # it has no record


def test_samples_of_a_reader_s_card_and_run_are_shown_as_such(toy_site):
    card = soup(toy_site, "sample-report-card.html")
    assert "This is a sample" in card.select_one("blockquote").get_text()
    told = {one["id"]: one.get_text() for one in card.select("section")}
    assert [one.name for one in SECTIONS if "Set aside." in told[one.name]] == []
    run = soup(toy_site, "your-run.html").select_one("#what-it-looks-like")
    judged = map(verdicts.Judgement.from_dict, samples.load(KEPT / "run.json").verdicts)
    tested = {j.claim.id for j in judged if j and j.verdict is not verdicts.Verdict.NOT_TESTED}
    assert tested and tested <= {row.td.get_text() for row in run.select("tbody tr")}
    [drawn] = run.select("figure .vl-spec")
    assert '"this run"' in drawn.string and '"published run"' in drawn.string


def test_every_page_forbids_other_hosts_and_scripts_that_are_not_the_theme_s(toy_site):
    for path in pages(toy_site):
        [policy] = soup(toy_site, path).select("head meta[http-equiv=Content-Security-Policy]")
        content = policy["content"]
        assert "://" not in content and "*" not in content, path
        if path.name == "sample-report-card.html":  # which has no script at all
            assert "default-src 'none'" in content and "script" not in content
        else:
            assert "script-src 'self'" in content
            assert "'unsafe-inline'" not in content.partition("script-src")[2]


def test_every_page_says_what_a_link_to_it_should_tell(toy_site):
    for page, picture in (("index.html", "index.png"), ("results/tp1.html", "results-tp1.png")):
        head = soup(toy_site, page).head
        said = {tag["property"]: tag["content"] for tag in head.select("meta[property]")}
        assert said["og:title"] and 0 < len(said["og:description"]) <= 202
        assert said["og:image"].endswith(f"/{picture}")
        assert ((toy_site / page).parent / said["og:image"]).exists()
