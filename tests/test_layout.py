"""Tables of an executed chapter as the site lays them out."""

import pandas as pd
from bs4 import BeautifulSoup

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
