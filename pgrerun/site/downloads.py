"""What a chapter's page offers to take along: its charts' data, and archives."""

import csv
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from pgrerun.page import charts

_DATE = (1980, 1, 1, 0, 0, 0)  # archives of the same files are the same


def chart_data(executed: nbformat.NotebookNode) -> dict[str, str]:
    """The data behind each chart as the page's own download gives it: CSV text by file name."""
    found = {}
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    for output in outputs:
        spec = output.get("data", {}).get(charts.VEGALITE_MIME, {})
        if columns := spec.get("usermeta", {}).get("columns"):
            found[f"{spec['usermeta']['name']}.csv"] = _csv(
                columns, next(iter(spec.get("datasets", {}).values()), [])
            )
    return found


def archive(path: Path, files: Mapping[str, str | bytes]) -> None:
    """Write a zip file that depends on nothing but `files` (content by name)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)


def _csv(columns: list[Mapping[str, str]], rows: list[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(column["title"] for column in columns)
    writer.writerows([row.get(column["field"]) for column in columns] for row in rows)
    return text.getvalue()
