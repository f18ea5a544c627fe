"""The command `pgrerun`: one verb a function; what a verb does lives in the other modules.

A RerunError becomes its paragraph on standard error and its exit status, a wrong
option 2, Ctrl-C 130. Only a bug of ours shows a traceback.
"""

import errno
import io
import os
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from typer.exceptions import TyperException

from pgrerun import parameters
from pgrerun.errors import ParameterError, RecordError, RerunError, ServerError
from pgrerun.lab.server import builds, fetched, look, packages, passwords
from pgrerun.site.book import PUBLISHED, Book, State

app = typer.Typer(
    help="Postgres, Rerun: claims about database performance, measured on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
releases = typer.Typer(help="List, fetch, register and remove other releases of PostgreSQL.")
app.add_typer(releases, name="releases")

# What is wrong with a place that the reader chose, and not with us.
_PLACES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
_SHOWN_REASONS = 4
# Control, format (as those that turn the direction of a line), surrogates, line separators.
_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Parameters that don't change what an observation is of.
_BESIDE_THE_POINT = {"profile", "server", "programs", "pairs", "seed"}

Profile = Annotated[str, typer.Option(help="ci, laptop or overnight: how much time to spend.")]
Assignments = Annotated[
    list[str] | None, typer.Option("-p", metavar="NAME=VALUE", help="A parameter; may be repeated.")
]
Server = Annotated[
    str, typer.Option(metavar="URL", help="Your own server, without a password in the URL.")
]
Chapter = Annotated[str, typer.Argument(help="For example tp1.")]
Names = Annotated[
    list[str] | None, typer.Argument(help="For example 9.3 13; all that can be had if left out.")
]


def main() -> None:
    """Run the command line and leave with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no more than ASCII
            stream.reconfigure(errors="backslashreplace")
    if runs := os.environ.get("PGRERUN_RUNS"):  # a kernel runs in another folder
        os.environ["PGRERUN_RUNS"] = os.path.abspath(os.path.expanduser(runs))
    _stand_here()
    try:
        with _home():
            status = app(standalone_mode=False)
    except RerunError as error:
        status = _failed(error)
    except OSError as error:
        status = _misplaced(error)
    except TyperException as error:
        message = error.format_message().rstrip(".")
        _say(message if "Usage:" in message else f"{message}. See pgrerun --help.")
        status = getattr(error, "exit_code", 2)
    if status == 130:  # typer's own status for a KeyboardInterrupt
        _say(
            "Stopped. What was measured so far is kept, and a chapter that was stopped in the"
            " middle goes on from there when the same command is given again."
        )
    sys.exit(status if isinstance(status, int) else 0)


def _stand_here() -> None:
    """Files that libpq is told by their names are seen from here, not from a kernel's folder."""
    os.environ[passwords.STARTED_IN] = os.getcwd()
    for name in passwords.FILES.values():
        if os.environ.get(name) and os.environ[name] != "system":
            os.environ[name] = os.path.abspath(os.environ[name])


@contextmanager
def _home() -> Iterator[None]:
    """A folder for what Jupyter writes into HOME, where an account has none (in containers)."""
    if os.path.expanduser("~") != "~":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="home-") as folder:
        os.environ["HOME"] = folder
        yield


def _misplaced(error: OSError) -> int:
    """Say what is wrong with a place or a name that the reader chose; raise a bug of ours."""
    if error.errno == errno.ENAMETOOLONG:
        _say(f"{str(error.filename)[:60]}… is longer than the name of a file can be.")
        return 2
    if error.errno not in _PLACES:
        raise error
    done = "used" if isinstance(error, PermissionError) else "written"  # or read, or executed
    _say(
        f"{error.filename or 'A file'} can't be {done}: {error.strerror}. Make room or mend the"
        " place's permissions. What was measured so far is kept, and a chapter that was stopped in"
        " the middle goes on from there when the same command is given again."
    )
    return 1


def _failed(error: RerunError) -> int:
    if traceback := getattr(error, "traceback", ""):
        # A notebook's traceback is coloured; Text.from_ansi keeps or drops that as the terminal
        # needs.
        _console(stderr=True).print(Text.from_ansi(traceback))
    _say(str(error))
    return error.exit_status


def _visible(text: str) -> str:
    """The text without anything that a terminal would obey: records and servers may hold it."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in _OBEYED else ascii(c)[1:-1] for c in text
    )


def _console(**options: Any) -> Console:
    """A terminal on which ":bomb:" in somebody's name stays what it is."""
    return Console(emoji=False, **options)


def _say(paragraph: str) -> None:
    _console(stderr=True).print(
        _visible(paragraph), style="bold", markup=False, highlight=False, soft_wrap=True
    )


def _tell(line: str) -> None:
    _console().print(_visible(line), markup=False, highlight=False, soft_wrap=True)


def _rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table with the columns of the first row. Nothing is cut off where output goes to a file."""
    table = Table(box=box.SIMPLE_HEAD)
    for number, name in enumerate(rows[0] if rows else ()):
        table.add_column(escape(_visible(name)), no_wrap=number == 0)
    for row in rows:
        table.add_row(*(escape(_visible(str(value))) for value in row.values()))
    _console(width=None if sys.stdout.isatty() else 200).print(table)


def _frame(frame: Any, otherwise: str) -> None:
    rows = frame.to_dict("records")
    for row in rows:
        row.update(
            {name: f"{value:.4g}" for name, value in row.items() if isinstance(value, float)}
        )
    _rows(rows) if rows else _tell(otherwise)


# ---- running


@app.command()
def run(
    chapter: Annotated[str, typer.Argument(help="For example tp1.")] = "",
    all: Annotated[bool, typer.Option("--all", help="Every chapter.")] = False,
    profile: Profile = "ci",
    p: Assignments = None,
    server: Server = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the executed notebook here, not into the book."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPERIMENT",
            help="One experiment, and what it goes on from; several by repeating it.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="RUN", help="Name of the run record; the profile's unless given.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the published run, which is committed.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Keep what a finished run of this name measured, and measure what it set aside.",
        ),
    ] = False,
    keep_address: Annotated[
        bool,
        typer.Option(
            "--keep-address",
            help="Keep the server's host, port, database and user in the run record.",
        ),
    ] = False,
) -> None:
    """Run a chapter's experiments, as papermill on its notebook would."""
    book = Book()
    chosen = _chosen(book, chapter, all)
    if all and out:
        raise ParameterError(
            "--out names one notebook, so it goes with one chapter and not with --all."
        )
    if only and complete:
        raise ParameterError("--only names what is measured, so it goes without --complete.")
    _check_name(name, replace)
    given = _given(profile, p or [], server)
    states = [book.state(one, given) for one in chosen]
    if only:
        _run_only(book, states, only, name)
        return
    for state in states:
        if complete:
            _reopen(name or state.parameters.profile, state.chapter)
        _run(book, state, out=out and out.resolve(), name=name, keep_address=keep_address)
        _tell_verdicts(name or state.parameters.profile, state.chapter)


def _chosen(book: Book, chapter: str, all: bool) -> list[str]:
    if bool(chapter) == all:
        raise ParameterError(
            f"Name one chapter or say --all. There are: {', '.join(book.chapters())}."
        )
    return book.chapters() if all else [chapter]


def _given(profile: str, assigned: Sequence[str], server: str) -> dict[str, Any]:
    given = (
        {"profile": profile}
        | parameters.assignments(assigned)
        | ({"server": server} if server else {})
    )
    programs = str(given.get("programs", ""))
    if programs and not fetched.is_named(programs):  # the notebook runs in another folder
        given["programs"] = os.path.abspath(os.path.expanduser(programs))
    return given


def _reopen(run: str, chapter: str) -> None:
    from pgrerun.record.runs import Run

    if lacking := Run.reopen(run, chapter):
        _tell(f"{chapter}: run {run!r} lacks {', '.join(lacking)}: measured now.")
    else:
        _tell(f"{chapter}: run {run!r} had set nothing aside, so that nothing is measured.")


def _tell_verdicts(run: str, chapter: str) -> None:
    """What a run has decided: claim, verdict, printed and found, and what compares it with the
    published one.
    """
    from pgrerun.page import narrate
    from pgrerun.record import runs
    from pgrerun.record.verdicts import Judgement, Verdict

    if not (runs.root() / run / chapter).is_dir():  # of a notebook that opens no chapter
        return
    record = runs.load(run, chapter)
    kept = (Judgement.from_dict(one) for one in record.verdicts)
    decided = [j for j in kept if j and j.verdict is not Verdict.NOT_TESTED]
    if decided:
        _rows(
            [
                {
                    "claim": j.claim.id,
                    "verdict": narrate.word(j),
                    "printed": narrate.wanted(j.claim).removeprefix("printed "),
                    "found": narrate.evidence(j),
                }
                for j in decided
            ]
        )
    else:
        _tell(f"{chapter}: it decides about no claim.")
    if chapter in runs.chapters(PUBLISHED) and not runs.is_published(run):
        _tell(_compares(record, runs.load(PUBLISHED, chapter)))


def _compares(ours: Any, published: Any) -> str:
    """How a run is put beside the published one, or which run would have to be."""
    profiles = [one.environment["parameters"].get("profile", "") for one in (ours, published)]
    [chapter] = ours.chapters
    if words := _other_parameters(ours, published).get(chapter, ""):
        words = f": {words}"
    elif profiles[0] == profiles[1]:
        return (
            f"pgrerun compare {ours.name} puts these beside the published run, and make book"
            f" RUN={ours.name} draws both."
        )
    return (
        f"This was profile {profiles[0]}, and the published run is profile"
        f" {profiles[1]}{words}. To have your numbers beside its numbers: pgrerun run"
        f" {chapter} --profile {profiles[1]}"
    )


def _run_only(book: Book, states: Sequence[State], only: Sequence[str], name: str) -> None:
    """Run these experiments and judge the claims that look at their rows.

    Its record has a name of its own, and the book stays as it is.
    """
    if len(states) > 1:
        raise ParameterError("--only names an experiment of one chapter, so it goes without --all.")
    [state] = states
    from pgrerun.notebook import Notebook
    from pgrerun.registry import claims_of

    os.environ["PGRERUN_RUN"] = name or "-".join(["only", *only]).replace("_", "-")
    experiments = [one.rpartition(".")[2] for one in only]
    with book.alone():
        opened = Notebook(state.chapter, state.parameters)
        try:
            for experiment in experiments:
                _tell(repr(opened.run(experiment)))
            for claim in claims_of(state.chapter, experiments):
                _tell(repr(opened.verdicts(claim)))
            for claim in opened.evidence.unjudged():
                opened.judge(claim)
            folder = opened.record.close()
        finally:
            opened.leave()
    _tell(f"{state.chapter}: its rows are in {folder}")


def _check_name(name: str, replace: bool) -> None:
    """Refuse the name of a run before anything is started for it."""
    from pgrerun.record import runs, schema

    if name and not schema.is_name(name):
        raise ParameterError(
            "A run's name is made of letters, digits, - and _, begins with a letter or a digit, and"
            f" is at most a hundred characters long; {name[:120]!r} is not."
        )
    if runs.is_published(name) and not replace:
        raise ParameterError(
            "A published run is committed and stands beside every other. Give this run another"
            " name, or say --replace to put it in that one's place."
        )


def _run(book: Book, state: State, **words: Any) -> None:
    _tell(
        f"{state.chapter}: running, profile {state.parameters.profile}, about"
        f" {_duration(state.seconds)}."
    )
    _tell(f"{state.chapter}: {book.run(state, **words)}")


@app.command()
def book(
    profile: Annotated[
        str, typer.Option(help="For all chapters; otherwise each as it was last run.")
    ] = "",
) -> None:
    """Run what is out of date and build the site around it."""
    ours = Book()
    states = [
        ours.state(chapter, {"profile": profile} if profile else None)
        for chapter in ours.chapters()
    ]
    if any(state.reasons for state in states):
        ours.proofread()
    for state in states:
        chapter = state.chapter
        if not state.reasons:
            _tell(f"{chapter}: nothing it is made from has changed, so it is not rerun.")
        elif state.only_prose:
            _tell(f"{chapter}: only its prose changed, so the measured outputs stay.")
            ours.retell(state)
        else:
            _tell(f"{chapter}: {_because(state.reasons)}.")
            _run(ours, state)
    _build_site(ours, "")


def _build_site(ours: Book, run: str) -> None:
    """Build the site, from the executed chapters or from a run, if it is out of date."""
    if reasons := ours.site_reasons(run):
        _tell(f"site: building{f' from the run {run}' if run else ''} ({_because(reasons)}).")
        ours.build_site(run)
    else:
        _tell("site: nothing it is made from has changed, so it is not rebuilt.")
    _tell(f"The book is in {ours.site / 'index.html'}")


@app.command()
def site(
    run: Annotated[str, typer.Option(metavar="RUN", help="A recorded run, by name.")] = "published",
) -> None:
    """Build the site from a recorded run, without measuring anything."""
    _build_site(Book(), run)


@app.command(name="print")
def print_book(
    run: Annotated[
        str,
        typer.Option(metavar="RUN", help="A recorded run, by name; otherwise what the site shows."),
    ] = "",
) -> None:
    """Make an ePub and a PDF of the whole book without measuring. The PDF needs Chromium."""
    from pgrerun.site import printing

    ours = Book()
    run = run or ours.shown_run()
    _tell(f"print: making the ePub from {f'the run {run}' if run else 'the executed chapters'}.")
    epub = ours.build_epub(run)
    _tell(f"The ePub is {epub}")
    _tell(f"The PDF is {printing.pdf(epub)}")
    _tell("The site offers both on its front page from its next build on.")


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help='For example "FROM published.hot.sizes".')] = "",
    tables: Annotated[bool, typer.Option("--tables", help="List the tables and units.")] = False,
    run: Annotated[str, typer.Option(metavar="RUN", help="A run of yours, as schema run.")] = "",
    output: Annotated[str, typer.Option(help="table, csv or json.")] = "table",
) -> None:
    """Ask all records by SQL: published runs, a run of yours, what is printed, the claims."""
    from pgrerun.record.database import open_database

    if output not in ("table", "csv", "json"):
        raise ParameterError(f"--output is one of table, csv and json, not {output!r:.40}.")
    if bool(sql.strip()) == tables:
        raise ParameterError(
            'Give a query, for example pgrerun query "FROM published.hot.sizes", or --tables for'
            " the list of what can be asked."
        )
    with open_database(run) as database:
        found = database.listing() if tables else database.query(sql)
    if output == "csv":
        sys.stdout.write(_visible(found.to_csv(index=False)))
    elif output == "json":
        sys.stdout.write(found.to_json(orient="records", indent=1, force_ascii=True) + "\n")
    else:
        _frame(found, "No rows.")


@app.command()
def explain(claim: Annotated[str, typer.Argument(help="For example uuidkeys-001.")]) -> None:
    """Say how a claim is judged: experiments, rule, chart, sentence, and its place in the book."""
    from pgrerun.registry import chain

    found = chain(claim)
    _tell(f"{found.claim.id}: {found.claim.claim}")
    _tell(f"Source: {found.claim.source}. Basis: {found.claim.basis}.")
    if found.claim.published_value:
        _tell(f"Printed: {found.claim.published_value}.")
    chapter = found.claim.chapter
    _tell(f"Chapter {chapter}, section “{found.section}”.")
    for name in found.experiments:
        _tell(f"Experiment {name}: pgrerun run {chapter} --only {name}")
        _tell(f'Its rows: pgrerun query "FROM published.{chapter}.{name}"')
    _tell(f"Judged by ({found.claim.predicate}):\n{found.rule}" if found.rule else "Not tested.")
    _tell(f"Charts: {', '.join(found.charts) or 'none'}. Sentences: {', '.join(found.sentences)}.")


@app.command()
def history(
    why: Annotated[str, typer.Option(help="Why rules or published words are others now.")] = "",
    freeze: Annotated[bool, typer.Option("--freeze", help="A line for each claim.")] = False,
) -> None:
    """Write into data/history.csv which rules and published words have changed, and why."""
    from dataclasses import asdict

    from pgrerun.record import history as changes

    found = changes.load(), changes.published_words(), changes.digests()
    lacking = changes.missing(*found, why, freeze)
    if lacking and not why:
        _rows([asdict(change) for change in lacking])
        raise ParameterError("These lines are missing in data/history.csv: give --why.")
    changes.append(why, freeze)
    _tell(f"The history has {len(lacking)} new lines." if lacking else "The history is whole.")


@app.command()
def status() -> None:
    """Say for each chapter and the site whether it is up to date, and why not."""
    ours = Book()
    for chapter in ours.chapters():
        state = ours.state(chapter)
        if state.reasons:
            _tell(
                f"{chapter}: out of date ({_because(state.reasons, shown=100)}); about"
                f" {_duration(state.seconds)} to rerun."
            )
        else:
            _tell(f"{chapter}: up to date, profile {state.parameters.profile}.")
        for stopped in ours.stopped(chapter):
            _tell(f"  {stopped}")
    reasons = ours.site_reasons()
    _tell(
        f"site: out of date ({_because(reasons, shown=100)})." if reasons else "site: up to date."
    )


@app.command()
def refresh(chapter: Chapter) -> None:
    """Run a committed notebook as it is and write its facts back into it (for authors)."""
    _tell(f"{chapter}: facts written into {Book().refresh(chapter)}")


@app.command()
def clean(
    runs: Annotated[bool, typer.Option("--runs", help="Your own run records, too.")] = False,
) -> None:
    """Remove what can be built again, and what killed runs left behind."""
    from pgrerun.lab.server import sweep

    gone = [*Book().clean(runs=runs), *sweep(fetched.folder())]
    for path in gone:
        _tell(f"removed {path}")
    if not gone:
        _tell("There was nothing to remove.")


@app.command(name="report-card")
def report_card(
    server: Annotated[
        str, typer.Argument(metavar="URL", help="The server, without a password in the URL.")
    ],
    schema: Annotated[
        str, typer.Option(metavar="NAME", help="Whose updates and index scans are looked at.")
    ] = "public",
    out: Annotated[Path, typer.Option(metavar="PATH", help="Where the page goes.")] = Path(
        "report-card.html"
    ),
    minutes: Annotated[
        float, typer.Option(help="At most so long in all; each section has its share.")
    ] = 5.0,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also keep what was measured, as lines of JSON."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what would be done, where, and for how long; look, and touch nothing.",
        ),
    ] = False,
) -> None:
    """Run what is safe on your server, and write what it finds on one page."""
    from pgrerun import report_card as card

    if dry_run:
        where, rows = card.steps(server, minutes)
        _tell(
            f"On the server at {where}, schema {schema}, in at most {minutes:g} min; the page goes"
            f" to {out}. Nothing was touched."
        )
        _rows(rows)
        _, seen = look(server)
        _rows([{"there": what, "seen": said} for what, said in seen.remarks.items()])
        if seen.obstacles:
            raise ServerError(f"The card would be refused. {' '.join(seen.obstacles)}")
    else:
        _tell(f"The report card is in {card.write(server, schema, minutes, out, keep)}")


# ---- looking


@app.command()
def picture(
    out: Annotated[Path, typer.Option(metavar="PATH", help="Where the SVG goes.")] = Path(
        ".github/scoreboard.svg"
    ),
) -> None:
    """Draw the scoreboard of the published run, for the README (for authors)."""
    from pgrerun.site import scoreboard

    out.write_text(scoreboard.picture(scoreboard.published_records()), encoding="utf-8")
    _tell(f"The picture is {out}")


@app.command(name="parameters")
def list_parameters(chapter: Chapter) -> None:
    """List a chapter's parameters with their ranges and each profile's values."""
    _rows(parameters.table(chapter))


@app.command()
def compare(
    mine: Annotated[str, typer.Argument(help="Name of a run record, or its path.")],
    published: Annotated[str, typer.Argument(help="The other one.")] = "published",
    others: Annotated[list[str] | None, typer.Argument(help="Yet others.")] = None,
) -> None:
    """Put two run records side by side: which numbers differ, which verdicts changed, and what may
    explain it. The published verdicts are those that all published runs give together, the numbers
    the first one's. Of more than two: how often all give claims the same verdict, and where they
    don't.
    """
    from pgrerun.record import agreement, runs

    if len({mine, published, *(others or [])}) < 2 + len(others or []):
        raise ParameterError(
            "A run is compared with others, and here one is named twice. The second is the"
            " published one unless another is named."
        )
    if others:
        found = agreement.words({name: runs.load(name) for name in [mine, published, *others]})
        if found.empty:
            raise RecordError(
                "There is no claim that all of these runs have judged and one of them could test."
                " Compare runs of the same chapters."
            )
        _frame(agreement.by_basis(found), "")
        differing = found[~agreement.agreed(found)].rename_axis("claim").reset_index()
        return _frame(differing, "All runs give each claim the same verdict.")
    ours, theirs = runs.load(mine), runs.load(published)
    if ours.name not in runs.published():  # those are compared with each other one by one
        theirs = agreement.with_others(theirs)
    sides = runs.compare(ours, theirs).reset_index()
    other = _other_parameters(ours, theirs)
    alike = sides[~sides["chapter"].isin(other)]
    if not alike.empty or not other:
        _numbers(alike, mine, published)
    for chapter, words in other.items():
        _tell(
            f"{chapter}: the runs had other parameters ({words}), so that their medians are not of"
            " the same thing and not put side by side."
        )
    changed = (
        agreement.changes(ours, theirs)
        .assign(
            a=lambda rows: [_beside_word(ours, claim, a) for claim, a in rows["a"].items()],
            b=lambda rows: [_beside_word(theirs, claim, b) for claim, b in rows["b"].items()],
        )
        .rename(columns={"a": mine, "b": published})
    )
    _frame(changed.reset_index(), "No verdict differs.")
    around = runs.explanations(ours, theirs).rename(columns={"a": mine, "b": published})
    _frame(around.reset_index(), "Machine, versions and settings are the same.")


_MOST = 100  # numbers of two runs that a terminal shows


def _numbers(sides: Any, mine: str, published: str) -> None:
    """Show the numbers of two runs side by side, of many those that lie farthest apart.

    They stay in their order; those that are surely apart come first.
    """
    import numpy as np

    apart = np.log(sides["ratio"].where(sides["ratio"] > 0, 1.0)).abs()
    order = sides.assign(apart=apart).sort_values(["differs", "apart"], ascending=False)
    shown = sides.loc[order.index[:_MOST].sort_values()]
    named = shown.rename(columns={"a": mine, "b": published})
    _frame(named, f"{mine} and {published} have observed nothing in common.")
    if len(shown) < len(sides):
        _tell(
            f"These are the {len(shown)} that lie farthest apart, of {len(sides)} numbers that"
            f" both runs have, {int((sides['a'] == sides['b']).sum())} of which are the same;"
            " pgrerun query shows any of them."
        )


def _beside_word(record: Any, claim: Any, word: str) -> str:
    """A claim's word with printed and found; where several runs gave others, with theirs."""
    from pgrerun.page import narrate
    from pgrerun.record.verdicts import Judgement

    given = record.given.get(claim, ())
    if len(set(given)) > 1:
        return f"{word} ({', '.join(given)})"
    kept = next((one for one in record.verdicts if one["claim"] == claim), None)
    judged = Judgement.from_dict(kept) if kept and "evidence" in kept else None
    numbers = narrate.wanted_and_found(judged) if judged else ""
    return f"{word} ({numbers})" if numbers else word


def _other_parameters(ours: Any, theirs: Any) -> dict[str, str]:
    """What differs between two records' parameters, in words, for each chapter where something
    does.
    """
    found = {}
    for chapter in ours.chapters:
        if chapter in theirs.environments:
            a, b = (one.environments[chapter].get("parameters", {}) for one in (ours, theirs))
            differing = [
                f"{name} {a.get(name, '-')} and {b.get(name, '-')}"
                for name in sorted(a.keys() | b.keys())
                if a.get(name) != b.get(name) and name not in _BESIDE_THE_POINT
            ]
            if differing:
                found[chapter] = ", ".join(differing)
    return found


@app.command()
def gather(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Folders, patterns, archives (zip, tar), s3://bucket/runs, an archive by https://.",
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Only check the records; write and build nothing.")
    ] = False,
    site: Annotated[
        bool, typer.Option("--site/--no-site", help="Build the site with the page about them.")
    ] = True,
) -> None:
    """Read the run records of many machines, and say what they tell together."""
    ours = Book()
    found = ours.gather(sources)
    for line in found.refused:
        _tell(f"refused: {line}")
    _tell(f"{len(found.machines)} machines, {found.records} records, {len(found.refused)} refused.")
    if check:
        if found.refused:
            raise RecordError(
                "Not everything is in order: what was refused above, and why, is not a record as"
                " pgrerun run leaves it. Hand in the folder again as it was written."
            )
        return
    from pgrerun.record import machines

    told = machines.findings(found)
    rows = [
        {"claim": one.claim, "depends on": one.circumstance, "q": f"{one.q:.2g}"}
        for one in told.dependences
    ]
    _rows(rows) if rows else _tell("No claim is seen to depend on the machine.")
    found.save(ours.gathered)
    if site:
        _tell("site: building with the page about all runs.")
        ours.build_site(ours.shown_run())
        _tell(f"The page is {ours.site / 'all-runs.html'}")
    else:
        _tell("The page about all runs shows them from the next build of the site on.")


@app.command()
def claims(
    chapter: Annotated[
        str, typer.Argument(help="Show this chapter's claims; otherwise a summary.")
    ] = "",
) -> None:
    """Show the ledger of claims."""
    from pgrerun.record.claims import ledger

    entries = list(ledger().values())
    chapters = sorted({claim.chapter for claim in entries})
    if chapter and chapter not in chapters:
        raise ParameterError(f"The ledger has no chapter {parameters.unknown(chapter, chapters)}.")
    if chapter:
        _rows(
            [
                {"id": c.id, "section": c.section, "claim": c.claim}
                for c in entries
                if c.chapter == chapter
            ]
        )
    else:
        count = Counter(claim.chapter for claim in entries)
        _rows(
            [{"chapter": name, "claims": count[name]} for name in chapters]
            + [{"chapter": "all", "claims": len(entries)}]
        )


@app.command()
def doctor(
    server: Annotated[str, typer.Option(metavar="URL", help="Look at this server, too.")] = "",
) -> None:
    """Say what this machine can measure, and which claims each missing thing sets aside."""
    if server:
        passwords.parse(server)  # refuses one that carries a password
    from pgrerun.site.doctor import REFUSED, examine

    looked = examine(server)
    refused = [finding.found for finding in looked if finding.what == REFUSED]
    findings = [finding for finding in looked if finding.what != REFUSED]
    _rows(
        [{"": f.what, "found": f.found, "claims set aside": ", ".join(f.claims)} for f in findings]
    )
    if refused:
        raise ServerError(f"No experiment runs on that server. {' '.join(refused)}")
    lost = {claim for finding in findings for claim in finding.claims}
    _tell(f"{len(lost)} claims are set aside here." if lost else "No claim is set aside here.")


# ---- other releases


@releases.callback(invoke_without_command=True)
def list_releases(context: typer.Context) -> None:
    """List releases that packages bring, and builds that somebody compiled; which are here."""
    if context.invoked_subcommand:
        return
    _list_packages()
    _list_builds()


def _list_packages() -> None:
    table = fetched.table()
    if not table:
        _tell(
            f"No release is known that can be fetched for {fetched.this_platform()}. Another"
            " PostgreSQL can be registered with `pgrerun releases add NAME FOLDER`."
        )
        return
    _rows([_release_row(release) for release in table])
    kept = sum(packages.size_of(release.place) for release in table if release.here)
    _tell(f"{_megabytes(kept)} in {fetched.folder()}")
    if not all(release.tested for release in table):
        _tell(f"Nobody has tested these on {fetched.this_platform()}.")


def _release_row(release: fetched.Release) -> dict[str, str]:
    if release.here:
        state = _megabytes(packages.size_of(release.place))
    elif packages.is_there(release.client):
        state = f"no; fetch brings {_megabytes(release.size)}, which take"
        state += f" {_megabytes(release.unpacked)}"
    else:
        state = f"no; {packages.PROGRAMS[release.client]}, which brings it, isn't installed"
    return {
        "release": release.release,
        "version": release.version,
        "client": release.client,
        "built by": release.builder,
        "here": state,
    }


def _list_builds() -> None:
    """The builds that claims ask for, whether they are registered, and others that are."""
    wanted, registered = builds.wanted(), builds.registered()
    names = list(dict.fromkeys([*wanted, *registered]))
    if names:
        _rows([_build_row(name, wanted.get(name), registered.get(name)) for name in names])
    if missing := [name for name in wanted if name not in registered]:
        _tell(
            f"{len(missing)} of {len(wanted)} builds that claims ask for aren't registered. Compile"
            " the commit, as PostgreSQL's chapter “Installation from Source Code” says, and then:"
            " pgrerun releases add NAME FOLDER"
        )


def _build_row(
    name: str, wanted: builds.Wanted | None, build: builds.Build | None
) -> dict[str, str]:
    about = wanted or build
    return {
        "build": name,
        "version": about.version if about else "",
        "commit": wanted.commit[:12] if wanted else "",
        "configuration": _configured(wanted, build),
        "claims": " ".join(wanted.claims) if wanted else "",
        "here": build.folder if build else "not registered",
    }


def _configured(wanted: builds.Wanted | None, build: builds.Build | None) -> str:
    """What matters of a build's configuration: what it was found to have, else what it shall."""
    if build is None:
        words = [f"{wanted.bits} bits" if wanted and wanted.bits else ""]
        return ", ".join(filter(None, [*words, wanted.configuration if wanted else ""]))
    words = [f"{build.bits} bits" if build.bits else ""]
    words += ["assertions"] if build.assertions else []
    words += [f"pages of {build.block_size} bytes"] if build.block_size not in (0, 8192) else []
    return ", ".join(filter(None, words))


@releases.command()
def add(
    name: Annotated[str, typer.Argument(help="By which -p programs=NAME takes it.")],
    folder: Annotated[
        Path, typer.Argument(help="With postgres, initdb and pg_ctl, or with a bin/ that has them.")
    ],
) -> None:
    """Register a PostgreSQL that you have compiled, and start it once; it stays where it is."""
    if fetched.is_packaged(name):
        raise ParameterError(
            f"{name} is the name of a release that packages bring. Give your build another name,"
            f" such as {name}-mine."
        )
    build = builds.add(name, folder)
    wanted = builds.wanted().get(name)
    told = wanted and wanted.foreign
    use = "Experiments ask for it by its name." if told else f"Use it with -p programs={name}"
    _tell(f"{name} is {build.version} in {build.folder}. {use}")


@releases.command()
def fetch(names: Names = None) -> None:
    """Bring releases into a cache folder, check them, and start each once."""
    without_client = []
    for release in fetched.find(names or []):
        name = f"PostgreSQL {release.version}"
        if release.here:
            _tell(f"{name} is here already.")
        elif not packages.is_there(release.client):
            without_client.append(release)
        else:
            _tell(f"{name}: fetching {_megabytes(release.size)} by {release.client}.")
            fetched.fetch(release)
            _tell(f"{name} is in {release.place}. Use it with -p programs={release.release}")
    if without_client:
        _tell(f"Left out: {', '.join(release.release for release in without_client)}.")
        packages.require_clients({release.client for release in without_client})


@releases.command()
def remove(names: Names = None) -> None:
    """Remove releases that were fetched; forget builds that were registered, which stay."""
    known = builds.registered()
    for name in [name for name in names or [] if name in known]:
        build = builds.remove(name)
        _tell(f"{name} is forgotten; it stays in {build.folder}.")
    packaged = [name for name in names or [] if name not in known]
    if names and not packaged:
        return
    for release in fetched.find(packaged):
        if freed := fetched.remove(release):
            _tell(f"PostgreSQL {release.release} is removed: {_megabytes(freed)} are free again.")
        elif names:
            _tell(f"PostgreSQL {release.release} wasn't here.")


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


# ---- words


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="For example uuid_keys.")],
    here: Annotated[
        bool, typer.Option(help="In a folder of its own below this one, not in the book.")
    ] = False,
) -> None:
    """Make a chapter of one experiment and one claim, which runs at once; then edit it."""
    from pgrerun.site import scaffold

    if here:
        folder = scaffold.here(name, Path.cwd())
        notebook = f"{name}/{name}.ipynb"
        _tell(f"{folder} is a chapter. What it runs stands in {name}/sql, its claim in claims.csv.")
        _tell(f"Run it:  papermill {notebook} {name}/mine.ipynb")
        _tell(f"On your own server:  papermill {notebook} {name}/mine.ipynb -p server URL")
        return
    for path in scaffold.in_the_book(name, Book().root):
        _tell(f"{path}")
    _tell(f"Run it:  pgrerun run {name}   and, when it is finished:  pgrerun refresh {name}")


def _because(reasons: Sequence[str], shown: int = _SHOWN_REASONS) -> str:
    more = len(reasons) - shown
    return "; ".join(reasons[:shown]) + (f"; and {more} more" if more > 0 else "")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    main()
