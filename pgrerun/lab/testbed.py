"""What an experiment is handed: servers to experiment on, parameters, and a way to compare.

An experiment is a generator of rows:

    @experiment(units={"pages": "pages"}, needs=["checkpoint"])
    def index_size(bed):
        for order in ("ascending", "random"):
            ...
            yield {"order": order, "pages": sizes.pages(connection, "item_pkey")}

What `units` names is a metric, all else in a row is a factor. `bed.compare` yields rows of variants
that are measured in interleaved blocks, so that whatever drifts on the machine falls on all alike.
Every row is kept before the next one is measured, by whoever asks the generator for it.

An experiment raises CannotMeasure where the machine or the server can't show what it is for; what
the server under test must be able to do can be said by `needs` instead.
"""

import importlib
import importlib.util
import itertools
import math
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from pgrerun.errors import BookError, CannotMeasure, RerunError, ServerError
from pgrerun.lab import disk, statement_log
from pgrerun.lab.disk import Slowed
from pgrerun.lab.instruments import machine
from pgrerun.lab.server import Cluster, Programs, Server, releases
from pgrerun.progress import track

Row = dict[str, Any]
Factors = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Iterator[Row]])
Key = TypeVar("Key")
Opened = TypeVar("Opened")

ATTEMPTS = 3  # at one measurement, if it is disturbed and the comparison's budget lasts
BUSY = 0.10  # share of the machine used by others above which a published run measures again
ENOUGH_PAIRS = 5  # below it no verdict is given (see `statistics.ENOUGH`, which lab doesn't use)


def shortened(length: float, told: bool = True) -> float:
    """A fifth of a measurement's length, in any unit, where what it finds is told and no word rests
    on it; else all of it.
    """
    return length / (5 if told else 1)


@contextmanager
def side_by_side(
    each: Iterable[tuple[Key, AbstractContextManager[Opened]]],
) -> Iterator[dict[Key, Opened]]:
    """What several contexts give, by their keys, until the block ends: servers of two builds, say.

    A generator makes each when those before it are open, and all are closed whatever happens.
    """
    with ExitStack() as stack:
        yield {key: stack.enter_context(one) for key, one in each}


@dataclass(frozen=True)
class Block:
    """One round of a comparison, as a variant sees it.

    index     from 0; negative in warm-up
    seed      of this block, the same for all its variants: fits pgbench's and numpy's generators
    position  of the variant in this block's order, from 0
    """

    index: int
    seed: int
    position: int


@dataclass(frozen=True)
class Experiment:
    """A declared experiment; called, it yields its rows.

    name    of the function, and of its table in the record
    units   of each metric: "" for a plain number, "text" and "yes or no" for what is none
    needs   what it can't run without, in the words of `Server.require`
    after   experiments whose rows it goes on from, which are measured before it
    """

    name: str
    function: Callable[..., Iterator[Row]]
    units: Mapping[str, str]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def __call__(self, bed: "Testbed", **changed: Any) -> Iterator[Row]:
        return self.function(bed, **changed)


def experiment(
    *, units: Mapping[str, str], needs: Iterable[str] = (), after: Iterable[str] = ()
) -> Callable[[Function], Experiment]:
    """Declare a generator of rows as an experiment of its chapter."""

    def declare(function: Function) -> Experiment:
        return Experiment(function.__name__, function, units, tuple(needs), tuple(after))

    return declare


@cache
def experiments_of(chapter: str) -> Mapping[str, Experiment]:
    """The experiments of a chapter of the book by name, in the order of its modules."""
    return collected(importlib.import_module(f"pgrerun.chapters.{chapter}.experiments"))


def collected(module: ModuleType) -> Mapping[str, Experiment]:
    """The experiments of a module, and of those below it; BookError for one name twice."""
    below = pkgutil.iter_modules(getattr(module, "__path__", []), f"{module.__name__}.")
    found: dict[str, Experiment] = {}
    for one in [module, *(importlib.import_module(found.name) for found in below)]:
        for value in vars(one).values():
            if isinstance(value, Experiment) and found.setdefault(value.name, value) is not value:
                raise BookError(f"{module.__name__} has two experiments called {value.name!r}.")
    return found


class Testbed:
    """The servers of one run of a chapter, its parameters, and the rows that it has so far."""

    __test__ = False  # pytest takes what is called so for tests

    def __init__(
        self,
        parameters: Any,
        programs: Programs,
        guest: Server | None = None,
        rows: Callable[[str], list[Row]] = lambda experiment: [],
        settled: Callable[[str, list[Row], Sequence[int], str], bool] = lambda *_: False,
        looks: Callable[[int], Sequence[int]] = lambda pairs: (pairs,),
        quiet: bool = False,
    ):
        """`guest` is somebody's server, which the caller closes; `rows` those kept so far.

        `looks` are the numbers of blocks after which a comparison of so many pairs may end, if
        `settled` says so of the rows of an experiment; with `quiet` what is measured while others
        use the machine is measured again.
        """
        self.parameters, self.programs, self.guest = parameters, programs, guest
        self._rows, self._settled, self._looks, self._quiet = rows, settled, looks, quiet
        self._clusters: dict[tuple[Path, frozenset[Any]], Cluster] = {}
        self._slowed: dict[tuple[Path, frozenset[Any]], Slowed] = {}
        self._now: Experiment | None = None
        self._comparisons = itertools.count()
        self.settings: dict[str, str] = {}
        if guest and guest.changed:
            self.settings["the role or database on the borrowed server"] = assignments(
                guest.changed
            )
        self.asked: list[str] = []  # settings that the experiment under way asked for

    # ---- servers

    @property
    def borrowed(self) -> bool:
        """Whether the server under test is somebody else's."""
        return self.guest is not None

    @property
    def server(self) -> Server:
        """The server under test: the reader's own, or a throwaway cluster as PostgreSQL sets it."""
        return self.guest or self.cluster()

    def cluster(self, **settings: str | int) -> Cluster:
        """A throwaway cluster with these settings, one for each set, kept to the chapter's end.

        Raises CannotMeasure when the chapter runs against somebody's server, whose
        settings are not ours to change.
        """
        if self.guest:
            raise CannotMeasure(
                "restart",
                "it needs a server that can be restarted with other settings, and"
                f" {self.guest.name} is not ours",
            )
        return self.release(self.programs, **settings)

    def cluster_on_slow_disk(self, **settings: str | int) -> tuple[Cluster, Slowed]:
        """A throwaway cluster with these settings on a disk of its own, and that disk.

        It is as fast as the machine's until it is told to be slow. Both are kept to the chapter's
        end. CannotMeasure without a C compiler, or when the chapter runs against somebody's server.
        """
        given = {"cluster_name": "on a disk that can be slowed", **settings}
        wanted = _wanted(self.programs, given)
        if not self.guest and wanted not in self._slowed:
            self._slowed[wanted] = Slowed()
        return self.cluster(**given), self._slowed[wanted]

    def release(self, programs: Programs, **settings: str | int) -> Cluster:
        """A throwaway cluster of any release or build, beside the server under test."""
        wanted = _wanted(programs, settings)
        told = assignments(settings)
        self.asked.append(told)
        if wanted not in self._clusters:
            self._clusters[wanted] = Cluster(programs, settings, disk=self._slowed.get(wanted))
            other = "" if programs == self.programs else f" ({programs.source})"
            self.settings[f"throwaway server {len(self._clusters)}{other}"] = told
        return self._clusters[wanted]

    @property
    def servers(self) -> list[Server]:
        """All that run."""
        return [*self._clusters.values(), *([self.guest] if self.guest else [])]

    def close(self) -> None:
        """End the servers, and the disks that they were on."""
        for server in self.servers:
            server.close()
        for one in self._slowed.values():
            one.close()

    # ---- running

    def measure(self, wanted: Experiment, changed: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of an experiment that aren't there yet, one by one as they are measured.

        CannotMeasure for what the machine, the server or its release can't show. Whatever an
        experiment stumbles over when its server dies or a disk is full, that is said.
        """
        self._now, self._comparisons = wanted, itertools.count()
        self.asked.clear()
        try:
            for capability in wanted.needs:
                self.server.require(capability)
            yield from wanted(self, **changed)
        except Exception as error:
            if isinstance(error, RerunError) and not isinstance(error, ServerError):
                raise
            for server in self.servers:
                server.raise_if_crashed(str(error))
                server.raise_if_disk_full(error)
            reason = self._lacking(error) or (self.guest.refusal(error) if self.guest else None)
            if reason is None:
                raise
            raise reason from error

    def _lacking(self, error: Exception) -> CannotMeasure | None:
        """What the release under test, or one beside it, came before."""
        if self.guest:
            return releases.lacking(self.guest.version, error)
        every = [self.programs, *(server.programs for server in self.servers)]
        found = (releases.lacking(one.number, error, one.development) for one in every)
        return next(filter(None, found), None)

    @property
    def fewer_pairs(self) -> int:
        """Blocks where each takes seconds: two thirds of the pairs, but enough for a verdict."""
        return max(ENOUGH_PAIRS, 2 * int(self.parameters.pairs) // 3)

    def timed_pairs(self, many: int = ENOUGH_PAIRS) -> int:
        """So many blocks of a comparison of times; one at profile ci, where no time decides."""
        return 1 if self.parameters.profile == "ci" else many

    @property
    def fewest_pairs(self) -> int:
        """Blocks where each takes a minute: a third of the pairs, but enough for a verdict."""
        return max(ENOUGH_PAIRS, int(self.parameters.pairs) // 3)

    def compare(
        self,
        measure: Callable[..., Mapping[str, float]],
        variants: Sequence[Factors] | Mapping[str, Sequence[Any]],
        *,
        pairs: int = 0,
        warmup: int = 1,
        positive: Collection[str] = (),
        prepare: Callable[..., None] | None = None,
        against: str = "",
        fixed: bool = False,
        **common: Any,
    ) -> Iterator[Row]:
        """Rows of all variants, measured in `pairs` interleaved blocks (default: the parameter).

        `variants` are the factors of each, or of each factor its values, of which all combinations
        are variants; `common` are factors that all share. `measure(block, **factors)` gives a
        variant's metrics, `prepare` with the same arguments runs before, outside of the measuring.
        The order rotates from block to block; `warmup` blocks run first and are discarded.

        It ends in fewer blocks if the words of the claims that look at the experiment are plain
        before, by comparing each two variants or all others with the one that `against` names by
        the value of a factor, unless the number of blocks is `fixed`.

        A value that isn't finite or is below zero, or of the metrics in `positive` 0 itself, can't
        be: the row is kept as disturbed and the measurement repeated, ATTEMPTS times at most and
        `pairs` times in all; then its block is left out. CannotMeasure if that leaves none.
        """
        assert self._now is not None, "only an experiment compares"
        blocks = pairs or int(self.parameters.pairs)
        if isinstance(variants, Mapping):
            combined = itertools.product(*variants.values())
            variants = [dict(zip(variants, values)) for values in combined]
        each = [dict(one) for one in variants]
        planned = (blocks,) if fixed or len(each) < 2 else tuple(self._looks(blocks))
        comparison = _Comparison(
            self,
            self._now,
            next(self._comparisons),
            each,
            measure,
            prepare or (lambda block, **factors: None),
            positive,
            warmup,
            planned,
            common,
        )
        yield from comparison.run(against)

    def rows_of(self, experiment: str) -> list[Row]:
        """The rows so far of an experiment."""
        return list(self._rows(experiment))


@dataclass
class _Comparison:
    """One call of `Testbed.compare`; the fields are its arguments.

    As many measurements may be repeated as it has blocks.
    """

    bed: Testbed
    experiment: Experiment
    number: int
    variants: list[Row]
    measure: Callable[..., Mapping[str, float]]
    prepare: Callable[..., None]
    positive: Collection[str]
    warmup: int
    looks: tuple[int, ...]
    common: Mapping[str, Any]

    def run(self, against: str) -> Iterator[Row]:
        name, warm = self.experiment.name, False
        for end in self.looks:
            todo = self._todo(end)
            if todo and not warm:
                self._warm_up()
                warm = True
            with statement_log.pause() if self.warmup else nullcontext():
                lost: set[int] = set()
                for block, factors in track(todo, name):
                    if block.index in lost:
                        continue
                    for row in self._attempts(block, factors):
                        yield row
                        if row["left_out"]:
                            lost.add(block.index)
            good = [row for row in self._done() if not row["disturbed"]]
            if not good:
                raise CannotMeasure(
                    "undisturbed measurements",
                    f"every block of {name!r} was disturbed: all measurements gave values that"
                    " can't be",
                )
            first = [row for row in self._done() if row["block"] < end]
            if end < self.looks[-1] and self.bed._settled(name, first, self.looks, against):
                break

    def _done(self) -> list[Row]:
        rows = self.bed.rows_of(self.experiment.name)
        return [row for row in rows if row.get("comparison") == self.number]

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.variants[0])

    def _todo(self, blocks: int) -> list[tuple[Block, Row]]:
        """What isn't there yet of so many blocks, in the order in which it is measured."""
        done = self._done()
        finished = {(row["block"], self._key(row)) for row in done if not row["disturbed"]}
        lost = {row["block"] for row in done if row["left_out"]}
        return [
            (Block(index, _seed(self.bed.parameters.seed, index), position), factors)
            for index in range(blocks)
            if index not in lost
            for position, factors in enumerate(_order(self.variants, index))
            if (index, self._key(factors)) not in finished
        ]

    def _warm_up(self) -> None:
        for number in range(-self.warmup, 0):
            for position, factors in enumerate(self.variants):
                block = Block(number, _seed(self.bed.parameters.seed, number), position)
                self.prepare(block, **factors)
                self.measure(block, **factors)

    def _attempts(self, block: Block, factors: Row) -> Iterator[Row]:
        """Rows of one measurement: the disturbed ones, and the last, which counts or leaves out."""
        for attempt in range(1, ATTEMPTS + 1):
            row = self._measured(block, factors)
            row["disturbed"] = self._impossible(row) or self._busy(row, attempt)
            if row["disturbed"]:
                row["left_out"] = attempt == ATTEMPTS or self._spent() >= self.looks[-1]
            yield row
            if row["left_out"] or not row["disturbed"]:
                return

    def _measured(self, block: Block, factors: Row) -> Row:
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.prepare(block, **factors)
        with machine.other_load() as load, disk.told() as slowed:
            metrics = dict(self.measure(block, **factors))
        if unknown := sorted(set(metrics) - set(self.experiment.units) - {"checkpoints"}):
            raise BookError(f"{self.experiment.name} gives no unit for {', '.join(unknown)}.")
        how = {
            "comparison": self.number,
            "block": block.index,
            "position": block.position,
            "seed": block.seed,
            "started_at": started_at,
            "disk": "; ".join(sorted(slowed)),
            "looks": ",".join(map(str, self.looks)) if len(self.looks) > 1 else "",
            "other_load": round(load.fraction, 3),
            "left_out": False,
        }
        return {**self.common, **factors, **metrics, **how}

    def _busy(self, row: Row, attempt: int) -> str:
        """In words how much others used, if that is to be measured again; else empty."""
        used, spent = row["other_load"], self._spent() >= self.looks[-1]
        if not self.bed._quiet or used <= BUSY or attempt == ATTEMPTS or spent:
            return ""
        return f"others used {100 * used:.0f} % of the machine"

    def _spent(self) -> int:
        return sum(bool(row["disturbed"]) for row in self._done())

    def _impossible(self, row: Row) -> str:
        """In words which values can't be; empty if all can.

        What is measured here (times, rates, counts, sizes, shares) is never below zero.
        """
        return "; ".join(
            f"{name} = {float(row[name]):g} {unit}".strip()
            for name, unit in self.experiment.units.items()
            if isinstance(row.get(name), int | float)
            and (
                not math.isfinite(row[name])
                or row[name] < 0
                or (row[name] == 0 and name in self.positive)
            )
        )


def _order(variants: Sequence[Row], index: int) -> list[Row]:
    """The variants rotated by one per block, and backwards in every second full turn.

    Two variants thus alternate AB BA BA AB, which cancels a linear drift; with more,
    none is always preceded by the same other.
    """
    turn, shift = divmod(index, len(variants))
    turned = list(variants) if turn % 2 == 0 else list(reversed(variants))
    return turned[shift:] + turned[:shift]


def _seed(seed: int, index: int) -> int:
    """The block's own seed, 31 bits: blocks differ, reruns repeat them."""
    # warm-up blocks are numbered from -1 down; SeedSequence takes no negative numbers
    return int(np.random.SeedSequence([seed, index % 2**32]).generate_state(1)[0] >> 1)


def _wanted(programs: Programs, settings: Mapping[str, str | int]) -> tuple[Path, frozenset[Any]]:
    """What tells a chapter's throwaway clusters apart."""
    return programs.bindir, frozenset(settings.items())


def assignments(settings: Mapping[str, Any]) -> str:
    """Settings as a reader is told them: "fsync = off, shared_buffers = 128MB"."""
    return ", ".join(
        f"{name} = {value}" if value != "" else f"{name} empty" for name, value in settings.items()
    )
