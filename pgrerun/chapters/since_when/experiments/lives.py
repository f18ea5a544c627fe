"""Claims of all chapters, judged on each release by the chapters' own experiments and rules."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pgrerun import replay
from pgrerun.chapters.since_when.here import compared, version
from pgrerun.lab.server import fetched
from pgrerun.lab.testbed import ENOUGH_PAIRS, Row, Testbed, experiment
from pgrerun.progress import track
from pgrerun.record import claims
from pgrerun.record import lives as record
from pgrerun.record.verdicts import Verdict, today

# Chapters whose claims are judged side by side: what is counted doesn't mind, and old releases,
# which hand in their counts late, mostly wait.
AT_ONCE = 4


@cache
def _file() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parents[1] / "claims.toml").read_text("utf-8"))


def asked() -> dict[str, dict[str, Any]]:
    """What claims.toml asks of each chapter: `parameters`, and the claims that are judged."""
    return {name: one for name, one in _file().items() if name != "left_out"}


def left_out() -> dict[str, str]:
    """Why a claim is judged on no other release that counts or plans decide, by its id."""
    return dict(_file()["left_out"])


def judged(thorough: bool = True) -> dict[str, str]:
    """The claims that are judged on each release, in the ledger's order, and their chapters."""
    kinds = ("quick", "thorough") if thorough else ("quick",)
    wanted = {claim for one in asked().values() for kind in kinds for claim in one.get(kind, [])}
    return {claim.id: claim.chapter for claim in claims.ledger().values() if claim.id in wanted}


def request(programs: str, wanted: list[str]) -> dict[str, Any]:
    """What `replay` is asked for: claims by chapter, in the order and with the parameters of
    claims.toml.
    """
    chapters = {
        name: {
            "parameters": given["parameters"],
            "claims": [claim for claim in wanted if judged()[claim] == name],
        }
        for name, given in asked().items()
    }
    some = {name: one for name, one in chapters.items() if one["claims"]}
    return {"release": programs, "pairs": ENOUGH_PAIRS, "chapters": some}


@experiment(units={"word": "text", "why": "text", "seconds": "s"})
def lives(bed: Testbed) -> Iterator[Row]:
    """Judge claims of all chapters on each release, by the chapters' own experiments.

    A row per claim and release: its word, and `why` of one that isn't tested there. The rows are
    said to be of a block, so that a run which was stopped keeps what it has judged.
    """
    done = {(row["claim"], row["release"]) for row in bed.rows_of("lives")}
    specs = compared(bed)
    chosen = judged(bool(bed.parameters.thorough))
    left = {
        release: [claim for claim in chosen if (claim, release) not in done] for release in specs
    }
    left = {release: wanted for release, wanted in left.items() if wanted}
    found = replay.answers(
        {release: request(specs[release], wanted) for release, wanted in left.items()}, AT_ONCE
    )
    failed: dict[tuple[str, str], str] = {}
    for _ in track(range(sum(map(len, left.values()))), "claims on each release"):
        release, answer = next(found, ("", {}))
        if "failed" in answer:
            failed[answer["chapter"], release] = answer["failed"]
        elif answer:
            yield _row(release, answer["verdict"], answer["seconds"])
            left[release].remove(answer["verdict"]["claim"])
    for release, wanted in left.items():
        for claim in wanted:
            why = failed.get((chosen[claim], release), "nothing was answered")
            told = {"claim": claim, "verdict": str(Verdict.NOT_TESTED)}
            yield _row(release, told | {"note": f"its experiment failed: {why}"}, 0.0)


def _row(release: str, verdict: dict[str, Any], seconds: float) -> Row:
    word = today(verdict["verdict"], claims.ledger()[verdict["claim"]].predicate)
    return {
        "claim": verdict["claim"],
        "release": release,
        "version": version(release),
        "block": 0,
        "word": str(word),
        "why": (verdict["note"] or verdict["reason"]) if word == Verdict.NOT_TESTED else "",
        "seconds": seconds,
    }


@experiment(
    units=dict.fromkeys(
        ("claim", "what_it_says", "before", "until", "since", "after", "notes", "agrees"), "text"
    )
)
def changes(bed: Testbed) -> Iterator[Row]:
    """Where a claim's word differs from the one on the release before on which it was tested.

    `notes` is what we know release notes to say of that claim, and `agrees` whether they name a
    release of that span.
    """
    compared(bed)  # without other releases there is none
    found = record.changes(record.read(record.frame(bed.rows_of("lives"))))
    for row in found.to_dict("records"):
        yield {str(name): str(value) for name, value in row.items()}


@experiment(units={"program": "text", "compiled_by": "text"})
def releases_here(bed: Testbed) -> Iterator[Row]:
    """The releases that are compared, and who compiled them."""
    builders = fetched.comparable()
    for release, spec in compared(bed).items():
        programs = fetched.chosen(spec)
        yield {
            "release": release,
            "version": version(release),
            "program": programs.version,
            "compiled_by": builders.get(release, programs.source),
        }
