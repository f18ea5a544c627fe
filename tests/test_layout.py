"""Tables of an executed chapter as the site lays them out."""

import pandas as pd
from bs4 import BeautifulSoup

from pgrerun.page import shown
from pgrerun.page.tables import Table
from pgrerun.site import layout


def drawn(frame, caption="Some"):
    return Table(pd.DataFrame(frame), caption)._repr_html_()


def page(text):
    return BeautifulSoup(text, "html.parser")


def test_releases_that_say_the_same_share_a_cell():
    words = ["reversed", "reversed", "holds", "holds", "holds"]
    frame = {"claim": ["hot-001"]} | {f"{n}": [word] for n, word in enumerate(words, 13)}
    cells = page(layout.stacked(drawn(frame))).find_all("td")
    assert [(cell.get_text(), cell["data-label"], cell.get("colspan")) for cell in cells] == [
        ("hot-001", "claim", None),
        ("reversed", "13 to 14", "2"),
        ("holds", "15 to 17", "3"),
    ]
    counted = {"count": ["pages"]} | {f"{n}": [n] for n in range(13, 18)}
    assert layout.stacked(drawn(counted)) == drawn(counted)


def test_provenance_has_plain_names_and_nothing_empty():
    flushed = {"machine fdatasync 8k_seconds": 0.00011, "machine governor": None}
    told = shown.as_rows({"parameter profile": "laptop", "parameter server": ""} | flushed, "value")
    assert dict(zip(told["what"], told["value"])) == {
        "parameter: profile": "laptop",
        "machine: time to flush 8 kB to its disk (fdatasync)": "110 µs",
    }


def test_a_number_stays_with_its_unit_and_code_and_attributes_as_they_are():
    markup = '<td title="8 kB">8 kB</td><pre class="statement">SELECT 37 % 201;</pre>'
    assert layout.unparted_markup(markup) == markup.replace(">8 kB", ">8\u00a0kB")
