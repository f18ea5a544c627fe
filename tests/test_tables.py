"""Tables for pages: readable numbers, accessible markup, nothing executable out of data."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun.page import tables
from pgrerun.page.tables import Table, captioned, table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345, "12,345"),
        (7, "7"),
        (0.123456, "0.1235"),
        (3.0, "3"),
        (123456.7, "123,457"),
        (float("nan"), ""),
        (None, ""),
        (pd.NA, ""),
        (True, "yes"),
        (False, "no"),
        (["a", "b"], "a, b"),
        ("x_y", "x_y"),
    ],
)
def test_values_are_rounded_to_be_read(value, text):
    shown = Table(pd.DataFrame({"value": pd.Series([value], dtype=object)}))
    cell = BeautifulSoup(shown._repr_html_(), "html.parser").td
    assert cell.text == text


def test_headers_say_what_they_head_and_numbers_are_aligned():
    shown = Table(pd.DataFrame({"page_kind": ["heap"], "pages": [3]}), "Pages of one transaction")
    page = BeautifulSoup(shown._repr_html_(), "html.parser")
    assert [th.text for th in page.find_all("th", scope="col")] == ["page kind", "pages"]
    assert page.caption.text == "Pages of one transaction" == page.div["aria-label"]
    for cells in ("td", "th"):
        assert [cell.get("class") for cell in page.find_all(cells)] == [None, ["number"]]
    assert "heap" in repr(shown) and "Pages of one transaction" in repr(shown)


def test_data_is_never_markup():
    shown = Table(pd.DataFrame({"<b>": ["<script>alert(1)</script>"]}), "<i>")._repr_html_()
    assert not BeautifulSoup(shown, "html.parser").find(["b", "i", "script"])


@pytest.mark.parametrize("nothing", [None, pd.DataFrame()])
def test_nothing_is_shown_for_what_was_set_aside(nothing):
    assert table(nothing, "Nothing") is None


@pytest.mark.parametrize("before", ["", "Pages & tuples"])
def test_a_table_is_given_another_caption(before):
    markup = Table(pd.DataFrame({"pages": [3]}), before)._repr_html_()
    page = BeautifulSoup(captioned(markup, "Pages < 4"), "html.parser")
    assert [one.text for one in page.find_all("caption")] == ["Pages < 4"]
    assert page.div["aria-label"] == "Pages < 4" and page.td.text == "3"


def test_a_table_of_an_earlier_run_gets_the_heads_of_today():
    frame = pd.DataFrame({"fpi_bytes": [3, 4], "kind": ["a", "b"]})
    now = Table(frame, "A & b")._repr_html_()
    earlier = now.replace('<th scope="col" class="number">', '<th scope="col">')
    earlier = earlier.replace("bytes of full-page images", "fpi bytes")
    assert earlier != now and tables.aligned(earlier) == tables.aligned(now)
    heads = BeautifulSoup(tables.aligned(earlier), "html.parser").find_all("th")
    assert [one.get("class") for one in heads] == [["number"], None]
    assert heads[0].text == "bytes of full-page images"
    markup = Table(pd.DataFrame({"work_mem": [1], "disk_kb": [2]}))._repr_html_()
    heads = BeautifulSoup(tables.aligned(markup), "html.parser").find_all("th")
    assert [one.text for one in heads] == ["work_mem", "kB on disk"]  # also of today's
