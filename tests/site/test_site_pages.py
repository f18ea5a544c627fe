"""What is in the built pages, read without a browser."""

from bs4 import BeautifulSoup


def soup(site, page) -> BeautifulSoup:
    return BeautifulSoup((site / page).read_bytes(), "html.parser")


def scripts(site, page) -> list[str]:
    return [tag["src"] for tag in soup(site, page).find_all("script", src=True)]


def test_only_pages_with_charts_load_the_charts_scripts(toy_site):
    assert any("vega-bundle" in src for src in scripts(toy_site, "results/tp1.html"))
    assert any("charts.js" in src for src in scripts(toy_site, "results/tp1.html"))
    for page in ("index.html", "measure.html", "search.html"):
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
        assert figure.select_one(".vl-question").get_text() and figure.select_one("figcaption").get_text()
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
