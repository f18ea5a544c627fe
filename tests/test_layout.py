"""Tables of an executed chapter as the site lays them out."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun.page import provenance, shown
from pgrerun.page.tables import Table
from pgrerun.site import layout

LONG = "a sentence that takes more than a word's width of a column"


def drawn(frame, caption="Some"):
    return Table(pd.DataFrame(frame), caption)._repr_html_()


def page(text):
    return BeautifulSoup(text, "html.parser")


def test_rows_of_many_words_become_cards_that_name_their_cells():
    frame = {"step": [LONG], "what": [LONG], "pages": [3], "log": [4]}
    made = page(layout.stacked(drawn(frame)))
    assert "stacked" in made.div["class"] and made.td["role"] == "cell"
    assert [cell["data-label"] for cell in made.find_all("td")] == ["step", "what", "pages", "log"]
    assert [head["role"] for head in made.find_all("th")] == ["columnheader"] * 4


@pytest.mark.parametrize(
    "frame",
    [
        {"what": [LONG], "value": [LONG]},
        {f"number {n}": [12345] for n in range(8)},
        {f"column {n}": [LONG] for n in range(12)},
    ],
    ids=["two columns", "numbers", "too many for a card"],
)
def test_other_tables_stay_as_they_are(frame):
    assert layout.stacked(drawn(frame)) == drawn(frame)


def test_releases_that_say_the_same_share_a_cell():
    words = ["reversed", "reversed", "holds", "holds", "holds"]
    frame = {"claim": ["hot-001"]} | {f"{n}": [word] for n, word in enumerate(words, 13)}
    cells = page(layout.stacked(drawn(frame))).find_all("td")
    assert [cell.get_text() for cell in cells] == ["hot-001", "reversed", "holds"]
    assert [cell["data-label"] for cell in cells] == ["claim", "13 to 14", "15 to 17"]
    assert [cell.get("colspan") for cell in cells] == [None, "2", "3"]
    counted = {"count": ["pages"]} | {f"{n}": [n] for n in range(13, 18)}
    assert layout.stacked(drawn(counted)) == drawn(counted)


def test_provenance_has_plain_names_and_nothing_empty():
    values = {
        "parameter profile": "laptop",
        "parameter server": "",
        "machine fdatasync 8k_seconds": 0.00011,
        "machine governor": None,
        "machine python": "3.11",
        "python": "3.11",
        "note 1": "disturbed",
    }
    frame = shown.as_rows(values, "value")
    assert list(frame.columns) == ["what", "value"]
    assert list(frame.itertuples(index=False, name=None)) == [
        ("parameter: profile", "laptop"),
        ("machine: time to flush 8 kB to its disk (fdatasync)", "110 µs"),
        ("software: Python", "3.11"),
        ("note 1", "disturbed"),
    ]


def test_a_time_is_a_date_to_read():
    assert provenance.when("2026-01-03T13:06:34+02:00") == "3 January 2026, 11:06 UTC"
    assert provenance.when("yesterday") == "yesterday"


def test_a_number_stays_with_its_unit():
    assert layout.unparted("64.0 % of 8 kB, 3 stops") == "64.0\u00a0% of 8\u00a0kB, 3 stops"
    markup = '<svg d="M3 4 s 1"><td title="8 kB">8 kB</td></svg>'
    assert layout.unparted_markup(markup) == markup.replace(">8 kB", ">8\u00a0kB")
    code = '<p>8 s</p><pre class="statement">SELECT 37 % 201;</pre>'
    assert layout.unparted_markup(code) == code.replace("8 s", "8\u00a0s")
