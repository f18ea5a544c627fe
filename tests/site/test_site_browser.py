"""The built site as a reader without a network sees it: file://, in headless Chromium."""

import base64
import json

import pytest
import toy_chapter
from checkouts import pages

from pgrerun.record import claims

pytestmark = pytest.mark.browser


def quiet(page) -> None:
    outside = [
        url for url in page.requests if not url.startswith(("file:", "data:", "blob:", "about:"))
    ]
    assert not page.complaints and not outside, (page.complaints, outside)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_quiet_complete_and_fits_a_phone(browser, looked_at, dark):
    with browser.page(width=360, height=740, dark=dark) as page:
        for path in looked_at:
            page.open(path).drawn()
            quiet(page)
            width = page.run("document.documentElement.scrollWidth")
            assert width <= 360, f"{path.name} is {width} px wide"
            charts = page.run(
                "[...document.querySelectorAll('.vl-chart')].map(c => [c.scrollWidth -"
                " c.clientWidth, !!c.querySelector('.vl-live:not([hidden]) svg')])"
            )
            assert all(drawn and excess <= 1 for excess, drawn in charts), (path.name, charts)


WIDTHS = (
    600,
    800,
    1000,
    1600,
)  # between the theme's breakpoints and up to a desk; 360 is a test of its own


def test_no_page_scrolls_sideways_at_any_width(browser, real_site):
    wide = "[document.documentElement.scrollWidth, innerWidth]"
    with browser.page(width=WIDTHS[-1]) as page:
        for path in pages(real_site):
            page.open(path).drawn()
            for width in reversed(WIDTHS):
                page.resize(width, 900)
                # charts are drawn again shortly after a width has changed
                page.until(
                    f"{wide}[0] <= {width} && {wide}[1] === {width}", f"{path.name} fits {width} px"
                )
            quiet(page)


def test_a_page_that_is_too_wide_would_be_found(browser, toy_site):
    with browser.page(width=1000) as page:
        page.open(toy_site / "measure.html")
        page.run(
            "document.querySelector('article').append(Object.assign(document.createElement('hr'),"
            " {style: 'width: 1100px'}))"
        )
        with pytest.raises(AssertionError, match="it fits"):
            page.until("document.documentElement.scrollWidth <= 1000", "it fits", patience=1)


def test_charts_fill_a_wide_page_and_follow_its_width(browser, toy_site):
    widths = (
        "[...document.querySelectorAll('.vl-chart')].map(c =>"
        " c.querySelector('svg').getBoundingClientRect().width / c.clientWidth)"
    )
    with browser.page(width=1440) as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        assert all(0.95 < share <= 1.005 for share in page.run(widths)), page.run(widths)
        page.resize(500, 900)
        page.until(
            f"{widths}.every(share => share > 0.95 && share <= 1.005)",
            "charts have followed the width",
        )
        quiet(page)


def test_a_folded_chart_is_drawn_at_its_width_when_it_is_unfolded(browser, copied_site):
    page_file = copied_site / "results" / "tp1.html"
    source = page_file.read_text()
    folded = source.replace(
        '<figure class="vl-figure"', '<details class="fold"><figure class="vl-figure"'
    ).replace("</figure>", "</figure></details>")
    page_file.write_text(folded)
    charts = "[...document.querySelectorAll('.fold .vl-chart')]"
    with browser.page(width=1440) as page:
        page.open(page_file)
        page.until("document.readyState === 'complete'", "the page is there")
        assert page.run(f"{charts}.length") > 0
        page.resize(700, 900)
        page.run("document.querySelectorAll('.fold').forEach(one => { one.open = true; })")
        # drawn perhaps twice: unfolding others gives the page a scroll bar
        share = "c.querySelector('svg')?.getBoundingClientRect().width / c.clientWidth"
        page.until(
            f"{charts}.every(c => c.dataset.drawn && {share} > 0.95 && {share} <= 1.005)",
            "what was unfolded is drawn at its width",
        )
        quiet(page)


def test_no_chart_sticks_out_of_a_printed_page(browser, toy_site):
    out = (
        "[...document.querySelectorAll('.vl-chart svg')].filter(one => one.getBoundingClientRect()"
        ".width > one.closest('.vl-chart').clientWidth + 1).length"
    )
    with browser.page(width=1440) as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        page.call("Emulation.setEmulatedMedia", media="print")
        page.run("document.querySelector('article').style.width = '400px'")
        assert page.run(out) == 0


def test_dark_mode_recolours_the_charts_and_leaves_no_pale_box(browser, toy_site):
    ink = "getComputedStyle(document.querySelector('.vl-chart .role-axis-label text')).fill"
    behind = (
        "getComputedStyle(document.querySelector('.vl-figure').closest('.output')).backgroundColor"
    )
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        light = page.run(ink)
        page.run("document.documentElement.dataset.theme = 'dark'")
        page.until(
            f"document.querySelectorAll('.vl-chart svg').length === 5 && {ink} !=="
            f" {json.dumps(light)}",
            "new ink",
        )
        assert page.run(behind) == "rgba(0, 0, 0, 0)"
        quiet(page)


def test_table_and_download_hold_the_charts_data(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        figure = "document.querySelector('.vl-figure')"
        rows = page.run(f"""(() => {{
            {figure}.querySelector('.vl-tools button').click();
            return [...{figure}.querySelectorAll('.vl-table tr')]
              .map(tr => [...tr.cells].map(td => td.textContent));
        }})()""")
        assert rows[0] == [
            "case",
            "provenance",
            "throughput relative to the first step",
            "from",
            "to",
        ]
        assert len(rows) == 17 and rows[1][:3] == ["sixteen pages, one backend", "printed", "1"]
        assert (
            page.run(f"{figure}.querySelector('.vl-tools button').getAttribute('aria-expanded')")
            == "true"
        )
        csv = page.run(f"""new Promise(resolve => {{
            const made = URL.createObjectURL;
            URL.createObjectURL = blob => {{
              blob.text().then(resolve); return made.call(URL, blob);
            }};
            HTMLAnchorElement.prototype.click = () => {{}};
            {figure}.querySelectorAll('.vl-tools button')[1].click();
        }})""")
        lines = csv.strip().split("\r\n")
        assert len(lines) == 17 and lines[1] == '"sixteen pages, one backend",printed,1,,'
        quiet(page)


def test_a_chart_that_cannot_be_drawn_leaves_its_picture(browser, copied_site):
    # the same page without the bundle: a reader whose copy is incomplete
    broken = copied_site / "results" / "tp1.html"
    text = broken.read_text()
    start = text.index("<script", text.index("vega-bundle") - 80)
    broken.write_text(text[:start] + text[text.index("</script>", start) + 9 :])
    with browser.page() as page:
        page.open(broken)
        page.until(
            "document.querySelectorAll('.vl-chart.vl-failed > img').length === 5",
            "pictures are kept",
        )
        assert (
            page.run("getComputedStyle(document.querySelector('.vl-chart > img')).opacity") == "1"
        )


def test_what_a_record_could_smuggle_onto_a_page_neither_runs_nor_fetches(browser, copied_site):
    forged = copied_site / "results" / "tp1.html"
    smuggled = (
        "<script>window.ran = 1</script><img src='missing.png' onerror='window.ran = 2'>"
        "<img src='http://127.0.0.1:9/x.png'></article>"
    )
    forged.write_text(forged.read_text().replace("</article>", smuggled, 1))
    with browser.page() as page:
        page.open(forged).drawn()
        assert page.run("window.ran ?? 0") == 0
        refused = [one for one in page.complaints if "Content Security Policy" in one]
        assert len(refused) >= 3, page.complaints


SHOWN = (
    "[...document.querySelectorAll('.scoreboard tbody tr')].filter(row => !row.hidden).map(row =>"
    " row.id)"
)


def choose(page, name, value):
    page.run(f"""(() => {{
        const field = document.querySelector('.scoreboard form').elements[{json.dumps(name)}];
        field.type === 'checkbox' ? field.checked = true : field.value = {json.dumps(value)};
        field.dispatchEvent(new Event('input', {{bubbles: true}}));
    }})()""")


def test_the_scoreboard_is_filtered_and_searched(browser, toy_site):
    ledger = claims.ledger().values()
    with browser.page() as page:
        page.open(toy_site / "scoreboard.html")
        assert page.run(SHOWN) == [claim.id for claim in ledger]
        choose(page, "chapter", "hot")
        choose(page, "kind", "bug")
        assert page.run(SHOWN) == [
            claim.id for claim in ledger if (claim.chapter, claim.kind) == ("hot", "bug")
        ]
        choose(page, "kind", "")
        choose(page, "headline", "yes")
        assert page.run(SHOWN) == [
            claim.id for claim in ledger if claim.chapter == "hot" and claim.headline
        ]
        choose(page, "search", "no such words")
        assert page.run(SHOWN) == [] and page.run(
            "document.querySelector('.shown').textContent"
        ).startswith("0 of ")
        quiet(page)


def test_a_link_can_name_what_the_scoreboard_shows(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "scoreboard.html", "?verdict=not+tested+here")
        assert page.run(SHOWN) == [toy_chapter.SET_ASIDE.id]
        assert (
            page.run("document.querySelector('.scoreboard form').elements.verdict.value")
            == "not tested here"
        )
        quiet(page)


def test_a_link_to_a_claim_opens_it_and_no_other(browser, toy_site):
    claim = toy_chapter.RATIO.id
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html", f"#{claim}").drawn()
        opened = "[...document.querySelectorAll('.verdict-line:has(> details[open])')]"
        assert page.run(f"{opened}.map(line => line.id)") == [claim]


def test_the_scoreboard_is_a_whole_table_without_scripts(browser, toy_site):
    with browser.page(width=360) as page:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(toy_site / "scoreboard.html")
        # our own look at the page runs all the same
        assert page.run("getComputedStyle(document.querySelector('.filters')).display") == "none"
        assert page.run(f"{SHOWN}.length") == len(claims.ledger())
        assert page.run("document.documentElement.scrollWidth") <= 360


def test_formulas_have_a_size(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html")
        heights = page.run(
            "[...document.querySelectorAll('math mfrac')].map(f =>"
            " f.getBoundingClientRect().height)"
        )
        assert heights and min(heights) > 12


def test_search_finds_pages_without_a_server(browser, site):
    with browser.page() as page:
        page.open(site / "search.html", "?q=checkpoint")
        page.until(
            "document.querySelectorAll('#search-results li a').length > 0", "search has results"
        )
        titles = page.run(
            "[...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
        )
        assert any("Glossary" in title or "How we measure" in title for title in titles), titles
        quiet(page)


def test_links_and_theme_button_have_names(browser, toy_site):
    """The small part of an accessibility check that is ours: every control says what it is."""
    nameless = """[...document.querySelectorAll('.bd-article a, .bd-article button')].filter(
        e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title
          || e.querySelector('img[alt]'))
    ).map(e => e.outerHTML)"""
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        assert page.run(nameless) == []


def test_a_page_prints_its_pictures(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        assert base64.b64decode(page.call("Page.printToPDF")["data"]).startswith(b"%PDF")
