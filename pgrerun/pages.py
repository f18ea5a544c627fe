"""An executed chapter as its run record keeps it, and as a page needs it.

A chart is two things in an executed notebook: its specification with the data inside, and HTML with a picture made
from it, which takes most of the room. The record keeps the specification, and the picture is drawn again from it.
So a page can be built from a record in seconds, without measuring. `book.py` decides which page goes where.
"""

import copy
import csv
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat

from pgrerun import charts

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
            found[f"{spec['usermeta']['name']}.csv"] = _csv(columns, next(iter(spec.get("datasets", {}).values()), []))
    return found


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
