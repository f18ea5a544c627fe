"""The records of many machines together: which word each machine gives each claim.

`gather` finds records (`sources`), has each checked as any stranger's (`reader`), judges it by the
rules of today from the evidence that it keeps, as everywhere (`verdicts`), and keeps of it what
tells machines apart and the words. Records are shared out to the processors in chunks; what is kept
is small. `machines` draws conclusions.

A machine is what its records describe: architecture, model and number of processors, memory, and
the release of PostgreSQL. What can't be told apart by these counts as one, with the newest record
of each chapter: many runs of one machine shall not outvote the others.
"""

import json
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from pgrerun.errors import RecordError
from pgrerun.progress import track
from pgrerun.record import agreement, claims, reader, runs, sources
from pgrerun.record.reader import Part
from pgrerun.record.sources import Found, Refused
from pgrerun.record.verdicts import Judgement, Verdict

FORMAT = 2
CHUNK = 40
"""Records that a process is given at a time."""

_ALONE = 3 * CHUNK  # fewer records than that aren't worth other processes
_MOST_PROCESSES = 8


@dataclass
class Machine:
    """A machine with a release, as its records describe it; None is what they don't say.

    `memory` in bytes, `flush` in seconds: the median of its records' times of a flush of 8 kB.
    """

    architecture: str = ""
    model: str = ""
    cores: int | None = None
    memory: int | None = None
    release: str = ""
    flush: float | None = None


@dataclass
class Gathered:
    """What many records say together.

    `words` has for each claim the word of each machine, as its place in `vocabulary` (None where
    it gives none), in the order of `machines`. `records` were counted, of which `superseded` by a
    newer one of the same machine and chapter or handed in twice; `refused` has a line each.
    `unanswered` verdicts rest on a rule that is no longer the ledger's. `differing` has, by claim,
    what the published runs of a machine say that don't give it the same word.
    """

    machines: list[Machine] = field(default_factory=list)
    words: dict[str, list[int | None]] = field(default_factory=dict)
    vocabulary: list[str] = field(default_factory=list)
    records: int = 0
    observations: int = 0
    superseded: int = 0
    unanswered: int = 0
    refused: list[str] = field(default_factory=list)
    differing: dict[str, list[str]] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(path.name + ".new")
        beside.write_text(
            json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False), "utf-8"
        )
        os.replace(beside, path)

    @classmethod
    def load(cls, path: Path) -> "Gathered":
        """What `save` wrote; RecordError for anything else."""
        try:
            kept = json.loads(path.read_text("utf-8"))
            if kept.pop("format") != FORMAT:
                raise ValueError("it was written by another version")
            machines = [Machine(**machine) for machine in kept.pop("machines")]
            return cls(machines=machines, **kept)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RecordError(
                f"What was gathered can't be read from {path}: {error}. Call pgrerun gather again."
            ) from None


@dataclass(frozen=True)
class _Read:
    """What is kept of one record."""

    run: str
    chapter: str
    digest: str
    finished: str
    rows: int
    machine: tuple[str, str, int | None, int | None, str]
    flush: float | None
    words: dict[str, str]
    unanswered: int


_Newest = dict[tuple[Any, ...], dict[str, _Read]]
"""The records that count of a machine and chapter, by the published run, "" for any other."""


def gather(given: Sequence[str], scratch: Path) -> Gathered:
    """Read all records below the sources in `given` (see `sources`).

    `scratch` is a private folder. RecordError where not a single record could be read.
    """
    for source in given:
        sources.check(source)
    found, newest = Gathered(), _Newest()
    for outcome in track(_outcomes(sources.find(given, scratch)), "reading records"):
        if isinstance(outcome, Refused):
            found.refused.append(f"{outcome.words}: {outcome.reason}")
        else:
            found.records += 1
            _keep(outcome, newest)
    return _together(found, newest)


# ---- reading, in as many processes as there are processors


def _outcomes(found: Iterator[Found | Refused]) -> Iterator[_Read | Refused]:
    first = list(islice(found, _ALONE))
    every = chain(first, found)
    chunks = iter(lambda: list(islice(every, CHUNK)), [])
    if len(first) < _ALONE or processes() == 1:
        for chunk in chunks:
            yield from read(chunk)
        return
    # forking a process that has threads, as DuckDB's and Arrow's, may lock up
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes(), context, _begin) as pool:
        try:
            yield from _shared_out(pool, chunks)
        except BrokenProcessPool:
            raise RecordError(
                "A process that was reading records was killed, perhaps for want of memory."
                " Nothing was written. Free some memory, or name fewer sources at once."
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def processes() -> int:
    return min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)


def _begin() -> None:
    """In a process that reads: end with the one that started it, and leave Ctrl-C to that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent:
            multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _shared_out(
    pool: ProcessPoolExecutor, chunks: Iterator[list[Found | Refused]]
) -> Iterator[_Read | Refused]:
    waiting: set[Future[list[_Read | Refused]]] = set()
    for chunk in chunks:
        waiting.add(pool.submit(read, chunk))
        while len(waiting) > 3 * processes():
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()
    for future in waiting:
        yield from future.result()


def read(found: Sequence[Found | Refused]) -> list[_Read | Refused]:
    """Check records and keep what counts of each; copies are removed.

    What was refused on the way to them comes first.
    """
    there = [one for one in found if isinstance(one, Found)]
    outcomes = reader.read_many([one.folder for one in there])
    for one in there:
        if one.ours:
            shutil.rmtree(one.folder, ignore_errors=True)
    told: list[_Read | Refused] = [one for one in found if isinstance(one, Refused)]
    told += [
        _kept(outcome) if isinstance(outcome, Part) else Refused(one.words, outcome.reason)
        for one, outcome in zip(there, outcomes)
    ]
    return told


def _kept(record: Part) -> _Read:
    head = record.head
    judged = [Judgement.from_dict(verdict) for verdict in record.verdicts]
    # a record speaks for its own chapter alone
    known = [one for one in judged if one and one.claim.chapter == head.chapter]
    machine, server = head.environment.get("machine", {}), head.environment.get("server", {})
    flush = _positive(machine.get("fdatasync_8k_seconds"))
    cores, memory = (_positive(machine.get(key)) for key in ("cpus", "memory_bytes"))
    return _Read(
        head.run,
        head.chapter,
        "".join(head.sha256[name] for name in sorted(head.sha256)),
        head.finished_at,
        head.rows + sum(about.get("rows") or 0 for about in head.tables.values()),
        (
            _text(machine.get("architecture")),
            _text(machine.get("cpu_model")),
            round(cores) if cores else None,
            # of one machine it differs by a page or two from one start to the next
            int(float(f"{memory:.2e}")) if memory else None,
            release(_text(server.get("version"))),
        ),
        flush,
        {one.claim.id: str(one.verdict) for one in known},
        len(judged) - len(known),
    )


def _text(value: Any) -> str:
    return value[:100] if isinstance(value, str) else ""


def _positive(value: Any) -> float | None:
    """A number that can be of a thing, below what no machine has."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 0 < value < 2**60 else None


def release(version: str) -> str:
    """ "18" of "18.6" and "9.6" of "9.6.24"; "" of what is no version."""
    found = re.match(r"(\d{1,3})(?:\.(\d{1,3}))?", version)
    if not found:
        return ""
    return found[0] if int(found[1]) < 10 else found[1]


# ---- putting together


def _keep(outcome: _Read, newest: _Newest) -> None:
    """Count a record, unless there is a newer one in its place."""
    # the published runs count together, any others of one machine by the newest alone
    run = outcome.run if runs.is_published(outcome.run) else ""
    kept = newest.setdefault((*outcome.machine, outcome.chapter), {})
    # of two of one second always the same one, in whatever order they came
    if run not in kept or _age(kept[run]) < _age(outcome):
        kept[run] = outcome


def _together(found: Gathered, newest: _Newest) -> Gathered:
    """What was found, with what the records that count say together."""
    found.refused.sort()
    if not newest:
        reasons = "; ".join(found.refused[:3])
        raise RecordError(
            f"No record could be read{f': {reasons}' if reasons else ''}. A record is a folder"
            " with environment.json, verdicts.json and a Parquet file for each experiment, as"
            " pgrerun run leaves it in data/runs."
        )
    by_machine: dict[tuple[Any, ...], list[list[_Read]]] = {}
    for key in sorted(newest, key=repr):
        by_machine.setdefault(key[:-1], []).append(_counting(newest[key]))
    words: list[dict[str, str]] = [{} for _ in by_machine]
    for given, many in zip(words, by_machine.values()):
        for several in many:
            given |= _said_by(several, found.differing)
    records = [[one for several in many for one in several] for many in by_machine.values()]
    found.machines = [_machine(key, many) for key, many in zip(by_machine, records)]
    found.vocabulary = sorted({word for given in words for word in given.values()})
    place = {word: number for number, word in enumerate(found.vocabulary)}
    judged = {claim for given in words for claim in given}
    found.words = {
        claim: [place[given[claim]] if claim in given else None for given in words]
        for claim in claims.ledger()
        if claim in judged
    }
    found.superseded = found.records - sum(map(len, records))
    found.observations = sum(one.rows for many in records for one in many)
    found.unanswered = sum(one.unanswered for many in records for one in many)
    return found


def _said_by(several: list[_Read], differing: dict[str, list[str]]) -> dict[str, str]:
    """The words that records of one machine and chapter give together, by claim."""
    first, *others = several
    given = dict(first.words)
    for claim in given if others else ():
        said = [one.words[claim] for one in several if claim in one.words]
        if len(said) == len(several) and len(set(said)) > 1:
            given[claim] = str(Verdict.INCONCLUSIVE)
            differing.setdefault(claim, []).append(agreement.differing(said))
    return given


def _counting(kept: dict[str, _Read]) -> list[_Read]:
    """Of a machine's records of a chapter those that count: the newest, or all published runs."""
    newest = max(kept, key=lambda run: _age(kept[run]))
    return [kept[run] for run in sorted(kept) if run] if newest else [kept[newest]]


def _age(record: _Read) -> tuple[str, str]:
    return record.finished, record.digest


def _machine(key: tuple[Any, ...], records: list[_Read]) -> Machine:
    flushes = [one.flush for one in records if one.flush is not None]
    median = float(np.median(flushes)) if flushes else None
    return Machine(*[*key, median])
