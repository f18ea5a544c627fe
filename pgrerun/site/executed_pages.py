"""An executed chapter as its run record keeps it, and as a page needs it.

A chart is two things in an executed notebook: its specification with the data inside, and HTML
with a picture made from it, which takes most of the room. The record keeps the specification, and
the picture is drawn again from it. So a page can be built from a record in seconds, without
measuring. `book.py` decides which page goes where.

A record may come from anybody. `is_plain` says whether a page's outputs are nothing but what our
chapters put out; `tables_of` tells of a record whose page is not to be trusted.
"""

import copy
import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from bs4 import BeautifulSoup

from pgrerun.errors import CannotMeasure
from pgrerun.page import charts, tables
from pgrerun.record.runs import Record

PAGE = "page.ipynb"
"""The executed chapter's name in its run record."""

_DATE = (1980, 1, 1, 0, 0, 0)  # archives of the same files are the same


def compact(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without its charts' pictures."""
    kept = copy.deepcopy(executed)
    for output in _charts(kept):
        output.data = {charts.VEGALITE_MIME: output.data[charts.VEGALITE_MIME]}
    return kept


def redrawn(page: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook that `compact` was given."""
    whole = copy.deepcopy(page)
    for output in _charts(whole):
        output.data = charts.mimebundle(charts.untitled(output.data[charts.VEGALITE_MIME]))
    return whole


def chart_data(executed: nbformat.NotebookNode) -> dict[str, str]:
    """The data behind each chart as the page's own download gives it: CSV text by file name."""
    found = {}
    for output in _charts(executed):
        spec = output.data[charts.VEGALITE_MIME]
        if columns := spec.get("usermeta", {}).get("columns"):
            found[f"{spec['usermeta']['name']}.csv"] = _csv(
                columns, next(iter(spec.get("datasets", {}).values()), [])
            )
    return found


# ---- what may be shown

_KINDS = {"text/plain", "text/markdown", "text/html", charts.VEGALITE_MIME}
_TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}  # of `tables.Table`
_ATTRIBUTES = {"class", "scope", "tabindex", "role", "aria-label"}
# What begins a directive, a role, HTML, an image, a table, a formula or code in Markdown.
_MARKUP = re.compile(r"[<{}|$`\\]|!\[|\]:|:::|~~~|^(?:---|\+\+\+)|\]\([^)]*:", re.MULTILINE)
_ESCAPED = re.compile(r"\\[^A-Za-z0-9\s]")
_CHART_WORDS = {"name", "question", "caption", "columns"}
# What has Vega or vega-embed fetch or open something.
_ADDRESSES = {"url", "href", "loader"}


def is_plain(page: nbformat.NotebookNode) -> bool:
    """Whether every output is a sentence, a table or a chart, with no markup of its own.

    A sentence has emphasis and links to our own pages at most, a table the tags that
    `tables.Table` writes, and a chart all its data inside.
    """
    outputs = [output for cell in page.cells for output in cell.get("outputs", [])]
    return all(map(_is_plain, outputs))


def _is_plain(output: nbformat.NotebookNode) -> bool:
    if output.output_type == "stream":
        return True
    data = output.get("data", {})
    return (
        output.output_type in ("display_data", "execute_result")
        and set(data) <= _KINDS
        and set(output.get("metadata", {})) <= {CannotMeasure.METADATA}
        and not _MARKUP.search(_ESCAPED.sub("", data.get("text/markdown", "")))
        and _is_table(data.get("text/html", ""))
        and _is_self_contained(data.get(charts.VEGALITE_MIME, {}))
    )


def _is_table(markup: str) -> bool:
    soup = BeautifulSoup(markup, "html.parser")
    known = all(tag.name in _TAGS and set(tag.attrs) <= _ATTRIBUTES for tag in soup.find_all(True))
    # Comments and declarations are no tags: there are none in a table of ours.
    return known and "<!" not in markup and "<?" not in markup


def _is_self_contained(spec: Any) -> bool:
    """Whether a specification names nothing that would be fetched, and no option of the page's."""
    if isinstance(spec, list):
        return all(map(_is_self_contained, spec))
    if not isinstance(spec, dict):
        return True
    return (
        not _ADDRESSES & set(spec)
        and set(spec.get("usermeta", {})) <= _CHART_WORDS
        and all(map(_is_self_contained, spec.values()))
    )


def tables_of(record: Record) -> nbformat.NotebookNode:
    """A cell that shows a record's verdicts and the medians of its observations, in our markup."""
    verdicts = pd.DataFrame(
        [
            {name: str(one.get(name, "")) for name in ("claim", "verdict", "note")}
            for one in record.verdicts
        ]
    )
    by = ["experiment", "variant", "metric", "unit"]
    medians = record.observations.groupby(by, sort=False, as_index=False)["value"]
    observed = medians.agg(median="median", observations="count")
    shown = {"Verdicts of this run": verdicts, "What this run observed": observed}
    outputs = [
        nbformat.v4.new_output(
            "display_data", {"text/html": tables.Table(frame, caption)._repr_html_()}
        )
        for caption, frame in shown.items()
        if not frame.empty
    ]
    cell = nbformat.v4.new_code_cell("", outputs=outputs, id="record")
    cell.metadata.tags = ["remove-input"]
    return cell


def archive(path: Path, files: Mapping[str, str | bytes]) -> None:
    """Write a zip file that depends on nothing but `files` (content by name)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)


def _charts(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if charts.VEGALITE_MIME in output.get("data", {}):
                yield output


def _csv(columns: list[Mapping[str, str]], rows: list[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(column["title"] for column in columns)
    writer.writerows([row.get(column["field"]) for column in columns] for row in rows)
    return text.getvalue()
