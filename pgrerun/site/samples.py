"""A run of ours that stands for a reader's on the page "Your run beside ours".

It is kept as one file of JSON: machine, versions, parameters, verdicts, and the rows that the
chapter's opening chart is drawn from. `keep` makes it of a run's record.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgrerun import parameters
from pgrerun.page import charts, declared, provenance
from pgrerun.record import rows, runs
from pgrerun.record.database import Database
from pgrerun.record.verdicts import Judgement
from pgrerun.site import scoreboard


def keep(name: str, chapter: str, file: Path) -> None:
    """Keep a run's record of a chapter as text: no more of its rows than its first chart shows."""
    record, chart = runs.load(name, chapter), opening(chapter)
    about = record.about[chapter]
    with Database(chapter) as found:
        found.add_record("run", record)
        shown = found.tables_in(chart.query)
    kept = {
        "chapter": chapter,
        "started": record.started,
        "finished": record.finished,
        "environment": record.environment,
        "verdicts": record.verdicts,
        "units": {one: about[one]["units"] for one in shown},
        "rows": {one: _plain(record.tables[chapter][one]) for one in shown},
    }
    file.write_text(json.dumps(runs.scrub(kept), indent=1, ensure_ascii=False) + "\n", "utf-8")


def _plain(table: Any) -> list[dict[str, Any]]:
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{name: one for name, one in row.items() if one not in (None, "")} for row in found]


def load(file: Path) -> runs.Record:
    """The run as it was kept."""
    kept = json.loads(file.read_text("utf-8"))
    chapter, units = kept["chapter"], kept["units"]
    return runs.Record(
        name="sample",
        parts=[],
        verdicts=kept["verdicts"],
        environments={chapter: kept["environment"]},
        started=kept["started"],
        finished=kept["finished"],
        tables={chapter: {one: rows.frame(kept["rows"][one], units[one]) for one in units}},
        about={chapter: {one: {"units": units[one]} for one in units}},
    )


def opening(chapter: str) -> declared.Chart:
    """The chart that a chapter opens with."""
    return declared.charts_of(parameters.folder(chapter))[parameters.info(chapter).opens_with]


def your_run(record: runs.Record, address: Callable[[str], str]) -> str:
    """The page of a reader's run, made of the sample: its first chart, and the verdicts of both."""
    [chapter] = record.chapters
    return "".join(
        (
            scoreboard.paragraph(_said(record, parameters.info(chapter).title.partition(":")[0])),
            _chart(record, chapter)._repr_mimebundle_()["text/html"],
            scoreboard.your_run({chapter: record}, address),
        )
    )


def _said(record: runs.Record, title: str) -> str:
    here = record.environment
    published = runs.load(runs.PUBLISHED, *record.chapters).environment
    return (
        f"A sample of it: the chapter “{title}”, run with profile"
        f" {here['parameters']['profile']} on PostgreSQL {here['server']['version']}, on"
        f" {provenance.when(record.finished)}, beside the published run on PostgreSQL"
        f" {published['server']['version']}. “Here” and “this run” mean the sample."
    )


def _chart(record: runs.Record, chapter: str) -> charts.Figure:
    words = {
        j.claim.id: str(j.verdict) for one in record.verdicts if (j := Judgement.from_dict(one))
    }
    with Database(chapter) as found:
        found.add_record("run", record)
        found.add_published([chapter])
        return opening(chapter).figure(found, lambda claim: words.get(claim, ""))


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
