"""What the site's scripts do for a reader without a network: file://, in headless Chromium. Every
page as it is without being touched is for test_site_real.py.
"""

import json

import pytest
import toy_chapter

from pgrerun.record import claims

pytestmark = pytest.mark.browser


def test_charts_follow_the_width_of_a_page_also_those_that_are_unfolded_later(browser, copied_site):
    page_file = copied_site / "results" / "tp1.html"
    figure = '<figure class="vl-figure"'
    folded = page_file.read_text().replace(figure, f'<details class="fold">{figure}')
    page_file.write_text(folded.replace("</figure>", "</figure></details>"))
    charts = "[...document.querySelectorAll('.fold .vl-chart')]"
    with browser.page(width=1440) as page:
        page.open(page_file)
        page.until(f"document.readyState === 'complete' && {charts}.length", "the page is there")
        page.run("document.querySelectorAll('.fold').forEach(one => { one.open = true; })")
        # drawn perhaps twice: unfolding others gives the page a scroll bar
        share = "c.querySelector('svg')?.getBoundingClientRect().width / c.clientWidth"
        for width in (1440, 500):
            page.resize(width)
            page.until(
                f"{charts}.every(c => c.dataset.drawn && {share} > 0.95 && {share} <= 1.005)",
                f"what was unfolded is drawn at its width of {width}",
            )
        assert page.noise() == []


def test_dark_mode_recolours_the_charts(browser, toy_site):
    ink = "getComputedStyle(document.querySelector('.vl-chart .role-axis-label text')).fill"
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        light = page.run(ink)
        page.run("document.documentElement.dataset.theme = 'dark'")
        page.until(
            "document.querySelectorAll('.vl-chart svg').length === 5 &&"
            f" {ink} !== {json.dumps(light)}",
            "new ink",
        )
        assert page.noise() == []


def test_table_and_download_hold_the_charts_data(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html").drawn()
        figure = "document.querySelector('.vl-figure')"
        rows = page.run(f"""(() => {{
            {figure}.querySelector('.vl-tools button').click();
            return [...{figure}.querySelectorAll('.vl-table tr')]
              .map(tr => [...tr.cells].map(td => td.textContent));
        }})()""")
        assert len(rows) == 17 and rows[1][:3] == ["sixteen pages, one backend", "printed", "1"]
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
        assert page.noise() == []


def test_a_chart_that_cannot_be_drawn_leaves_its_picture(browser, copied_site):
    # the same page without the bundle: a reader whose copy is incomplete
    [bundle] = (copied_site / "_static").glob("vega-bundle-*.js")
    bundle.unlink()
    kept = "document.querySelectorAll('.vl-chart.vl-failed > img').length === 5"
    with browser.page() as page:
        page.open(copied_site / "results" / "tp1.html").until(kept, "pictures are kept")


def test_axe_finds_a_picture_without_words_and_no_fade(browser, toy_site):
    with browser.page() as page:
        page.open(toy_site / "index.html").drawn()
        page.run("""(async () => {
          const words = document.createElement('p');
          words.textContent = 'in the middle of a fade';
          words.animate([{color: 'white', background: 'white'},
            {color: 'black', background: 'white'}], 500);
          document.querySelector('article').append(words, document.createElement('img'));
        })()""")
        assert [one["rule"] for one in page.violations()] == ["image-alt"]


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


def test_the_scoreboard_is_filtered_and_searched_by_hand_and_by_a_link(browser, toy_site):
    ledger = claims.ledger().values()
    hot = [claim for claim in ledger if claim.chapter == "hot"]
    steps = [
        (("chapter", "hot"), hot),
        (("kind", "bug"), [claim for claim in hot if claim.kind == "bug"]),
        (("kind", ""), hot),
        (("headline", "yes"), [claim for claim in hot if claim.headline]),
        (("search", "no such words"), []),
    ]
    with browser.page() as page:
        page.open(toy_site / "scoreboard.html", "?all=yes")
        assert sorted(page.run(SHOWN)) == sorted(claim.id for claim in ledger)
        for chosen, left in steps:
            choose(page, *chosen)
            assert page.run(SHOWN) == [claim.id for claim in left], chosen
        page.open(toy_site / "scoreboard.html", "?verdict=not+tested+here")
        assert page.run(SHOWN) == [toy_chapter.SET_ASIDE.id]
        assert page.noise() == []


def test_the_scoreboard_begins_with_headline_claims_and_a_button_for_the_rest(browser, toy_site):
    ledger = claims.ledger().values()
    first = {claim.id for claim in ledger if claim.headline}
    hot = [claim.id for claim in ledger if claim.chapter == "hot"]
    hidden = next(claim for claim in ledger if claim.chapter == "hot" and not claim.headline)
    with browser.page() as page:
        page.open(toy_site / "scoreboard.html")
        shown = set(page.run(SHOWN))
        assert first <= shown and hidden.id not in shown
        page.run("document.querySelector('#claims-hot .more').click()")
        assert set(page.run(SHOWN)) == shown | set(hot)
        page.open(toy_site / "scoreboard.html", f"?search=qwertz#{hidden.id}")
        assert page.run(SHOWN) == [hidden.id]  # which is linked to, whatever is filtered
        page.run("location.hash = '#claims-hot'")
        page.until(f"{SHOWN}.length === {len(hot)}", "a chapter is shown that is linked to")
        assert page.noise() == []


def test_the_scoreboard_is_sorted_by_its_heads_and_by_a_link(browser, toy_site):
    ledger = claims.ledger()
    order = (
        "[...document.querySelectorAll('.scoreboard .group:not([hidden])')].map(group =>"
        " [...group.querySelectorAll('tbody tr')].map(row => row.id))"
    )
    press = "document.querySelector('.scoreboard [data-sort={}]').click()"
    with browser.page() as page:
        page.open(toy_site / "scoreboard.html", "?all=yes")
        for direction in ("ascending", "descending"):
            page.run(press.format("claim"))
            [ids] = page.run(order)
            assert ids == sorted(ledger, reverse=direction == "descending")
        page.open(toy_site / "scoreboard.html", "?sort=document")
        groups = [[ledger[one].document for one in ids] for ids in page.run(order)]
        assert [len(set(one)) for one in groups] == [1] * len({c.document for c in ledger.values()})
        page.run("location.hash = '#claims-hot'")  # of a table that this order hasn't
        page.until(
            "document.querySelector('#claims-hot') !== null", "the chapters' tables are back"
        )
        assert page.noise() == []


def test_a_link_to_a_claim_opens_it_and_no_other(browser, toy_site):
    claim = toy_chapter.EFFECT.id
    with browser.page() as page:
        page.open(toy_site / "results" / "tp1.html", f"#{claim}").drawn()
        opened = "[...document.querySelectorAll('.verdict-line:has(> details[open])')]"
        assert page.run(f"{opened}.map(line => line.id)") == [claim]


def test_the_scoreboard_is_a_whole_table_without_scripts(browser, toy_site):
    with browser.page(width=360) as page:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(toy_site / "scoreboard.html").fits()
        # our own look at the page runs all the same
        assert page.run("getComputedStyle(document.querySelector('.filters')).display") == "none"
        assert page.run(f"{SHOWN}.length") == len(claims.ledger())


def test_search_finds_pages_without_a_server(browser, toy_site):
    found = "[...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
    with browser.page() as page:
        page.open(toy_site / "search.html", "?q=checkpoint")
        page.until(f"{found}.length > 0", "search has results")
        assert any("Glossary" in one or "How we measure" in one for one in page.run(found))
        assert page.noise() == []
