"""Tables for pages: readable numbers, accessible markup, nothing executable out of data."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun.page.tables import Table, table


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


def test_data_is_never_markup():
    shown = Table(pd.DataFrame({"<b>": ["<script>alert(1)</script>"]}), "<i>")._repr_html_()
    assert not BeautifulSoup(shown, "html.parser").find(["b", "i", "script"])


@pytest.mark.parametrize("nothing", [None, pd.DataFrame()])
def test_nothing_is_shown_for_what_was_set_aside(nothing):
    assert table(nothing, "Nothing") is None
