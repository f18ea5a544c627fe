"""The report card in a browser: from a phone to a desk, light and dark, by itself and without a
network.
"""

import json

import pandas as pd
import pytest

from pgrerun import report_card
from pgrerun.page import charts, tables
from pgrerun.page.narrate import Sentence
from pgrerun.report_card import page as written

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """A page as the command writes it, with every kind of piece and with what has long words."""
    frame = pd.DataFrame({"label": [f"a_table_whose_name_is_long_{n}" for n in range(1, 9)]})
    frame = frame.assign(kind="measured", value=[n / 9 for n in range(1, 9)], panel="shares")
    words = charts.Words("Which share?", "A caption.", description="Shares of tables.")
    axis = charts.Axis("share", zero=True)
    figures = [
        charts.compare(frame.drop(columns="panel"), words, axis),
        charts.compare(frame, words, axis),
    ]
    wide = pd.DataFrame([{f"a wide column {n}": "x" * 20 for n in range(8)}])
    pieces = [
        Sentence(
            "It is 1.3 [1.2, 1.4] times"
            " `a_very_long_name_of_a_table_that_somebody_has_thought_of_once` as much."
        ),
        *figures,
        tables.Table(wide, "Wide"),
    ]
    outcomes = [report_card.Outcome(section, 10.0) for section in report_card.SECTIONS]
    outcomes[0].pieces = pieces
    server = {
        "server": "PostgreSQL 18 at db.example:5432, database bench, user me",
        "random_page_cost": "4",
    }
    out = tmp_path_factory.mktemp("card") / "card.html"
    card = report_card.Card("public", 5.0, outcomes, server, seconds=12.0)
    out.write_text(written.drawn(card), encoding="utf-8")
    return out


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1200, False)], ids=["phone", "desk"])
def test_the_card_fits_reads_and_fetches_nothing(browser, card, width, dark):
    with browser.page(width=width, dark=dark) as page:
        assert page.open(card).fits().noise() == []
        ground = page.run("getComputedStyle(document.body).backgroundColor")
        assert (ground != "rgb(255, 255, 255)") == dark
        drawn = page.run(
            "[...document.querySelectorAll('figure img')].map(i => [i.complete, i.naturalWidth,"
            " i.width])"
        )
        assert len(drawn) == 2 and all(complete and natural > 0 for complete, natural, _ in drawn)
        # letters keep their size: the picture for this width was taken, and is hardly scaled
        assert all(shown / natural > 0.85 for _, natural, shown in drawn), drawn
        assert not (found := page.violations()), json.dumps(found, indent=1)


def test_a_script_that_got_into_the_card_would_not_run(browser, card, tmp_path):
    spoilt = tmp_path / "card.html"
    script = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">"
    spoilt.write_text(card.read_text("utf-8").replace("<main>", f"<main>{script}"), "utf-8")
    with browser.page() as page:
        page.open(spoilt)
        assert page.run("document.title") != "ran" and page.complaints
