"""The report's two query sets by Postgres95 of 1996, by routine: beside the printed profiles.

Two of the report's switches are in its source under their names and their author's initials:
NO_ASSERT_CHECKING and NO_BUFFERISVALID. Variants are builds of one source at one level of
optimization, which somebody compiled:

- assertions: as distributed, with assertions and checks of buffers
- no node checks: without the assertions that ask for a node's type
- no assertions: NO_ASSERT_CHECKING
- no buffer checks: that, and NO_BUFFERISVALID
- empty calls: as no assertions, with the useless calls that the report took out, where they were
- no offset cache: as assertions, but no attribute's place in a tuple is remembered
- every attribute: as no offset cache, and all of each scanned tuple are fetched, as they were for
  POSTGRES's rule manager before the report's change
- no stored addresses: as assertions, but a function is looked up whenever it is called

Of two changes of section 3.1.1 POSTGRES's public history has the routines, and builds have them put
into Postgres95: the one that fetches an attribute, with the attribute's length kept in a variable
and written out wherever it is tested, and the rule manager's, with its check whether there is a
rule at the beginning and without.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.lab.instruments import instructions
from pgrerun.lab.postgres95 import Backend, in_all_releases, started
from pgrerun.lab.relations import DebitCredit, Wisconsin
from pgrerun.lab.testbed import Row, Testbed, experiment

# Variant to the name of its build.
VARIANTS = {
    "assertions": "postgres95",
    "no node checks": "postgres95-no-node-checks",
    "no assertions": "postgres95-no-assertions",
    "no buffer checks": "postgres95-no-buffer-checks",
    "empty calls": "postgres95-empty-calls",
    "no offset cache": "postgres95-no-offset-cache",
    "every attribute": "postgres95-every-attribute",
    "no stored addresses": "postgres95-no-stored-addresses",
}
# The same of the two changes. With every attribute the scans fetch what the rule manager had.
CHANGES = {
    "length in a variable": "postgres95-length-in-variable",
    "length written out": "postgres95-length-written-out",
    "length written out, every attribute": "postgres95-written-out-every-attribute",
    "rules asked for first": "postgres95-rule-check",
    "rules asked for each attribute": "postgres95-rule-manager",
}
POOL = "-B 16"  # pages, as in the report (3.2.2)
FETCHING = ("fastgetattr", "heap_getattr")
NAMELESS = "(without a name)"
_TEXT = "x" * 88


def load(backend: Backend, bank: DebitCredit = queries.BANK) -> None:
    """onek, tenk1 and tenk2 without an index, and the bank of Figure 2.2 with its three B-trees."""
    for name, tuples, order in (("onek", 1_000, 1), ("tenk1", 10_000, 1), ("tenk2", 10_000, 2)):
        relation = Wisconsin(name, tuples, attributes="1990", order=order)
        backend.load(relation.create_sql, relation.tuples())
    load_bank(backend, bank)
    backend.run([backend.release.analyze])


def load_bank(backend: Backend, bank: DebitCredit) -> None:
    """Figure 2.2's relations and B-trees, keys counted from 1 and in order."""
    keys = {"branch": "bid", "teller": "tid", "account": "aid"}
    for relation, key in keys.items():
        backend.load(
            f"CREATE TABLE {relation} ({key} int4, balance float8, string text)",
            ((number, 0, _TEXT) for number in range(1, bank.tuples[relation] + 1)),
            f"CREATE INDEX {relation}_index ON {relation} USING btree ({key} int4_ops)",
        )
    backend.run(["CREATE TABLE history (bid int4, tid int4, aid int4, amount float8, string text)"])


def transactions(count: int, seed: int, bank: DebitCredit = queries.BANK) -> list[list[str]]:
    """Figure 2.3's commands as Postgres95 takes them, a list for each transaction."""
    drawn = queries.drawn_transactions(count, seed, bank)
    return [[in_all_releases(sql) for sql in commands] for commands in drawn]


def work(workload: str, count: int) -> tuple[list[str], list[str]]:
    """A set's commands to warm up with, and to count."""
    if workload == queries.TRANSACTIONS:
        first, second = (sum(transactions(each, seed), []) for each, seed in ((3, 1), (count, 2)))
        return first, second
    scans = [in_all_releases(sql) for sql in queries.scans()]
    return [*scans, *queries.UNDO], scans


def profiled(
    backend: Backend, workload: str, count: int, callers: int, of: str = ""
) -> pd.DataFrame:
    """A set's instructions and calls by routine and its callers, of which so many are told.

    `callers` and `of` as in `Backend.instructions`.
    Columns: function ("routine'caller"), file, object, exclusive, calls.
    The set runs once before it is counted; of the transactions three others.
    """
    first, counted = work(workload, count)
    found = backend.instructions([*first, *counted], callers, of)
    found = found[found["statement"] >= len(first)].fillna({"file": ""})
    nameless = re.compile("^0x[0-9a-f]+")  # the C library names few of its own routines
    found["function"] = found["function"].str.replace(nameless, NAMELESS, regex=True)
    return _added(found)


def by_routine(found: pd.DataFrame) -> pd.DataFrame:
    """What `profiled` tells of routines without a name by one caller, by routine: the same columns.

    A routine without a name that malloc or free calls is a part of it, and no call of it.
    """
    own: list[tuple[str, int]] = []
    for function, calls in zip(found["function"], found["calls"], strict=True):
        name, *callers = (part for part in function.split("'") if not part.isdigit())
        part_of = name == NAMELESS and callers and callers[0] in ("malloc", "free")
        own.append((callers[0], 0) if part_of else (name, calls))
    names, calls_of = [name for name, _ in own], [calls for _, calls in own]
    return _added(found.assign(function=names, calls=calls_of))


def _added(found: pd.DataFrame) -> pd.DataFrame:
    by = ["function", "file", "object"]
    return found.groupby(by, as_index=False)[["exclusive", "calls"]].sum()


@experiment(units={"instructions": "instructions", "calls": "calls"})
def postgres95_profile(bed: Testbed) -> Iterator[Row]:
    """Instructions and calls of each routine of Postgres95, by variant and query set.

    Of Figure 2.1's commands once, and of so many of Figure 2.3's transactions.
    malloc and free with their nameless parts (`by_routine`).
    A variant whose build is missing or can't be started is left out. CannotMeasure without any.
    """
    for variant, loaded in each_loaded(VARIANTS):
        for query_set in queries.SETS:
            for row in routines(loaded, query_set, bed.parameters.transactions):
                yield {"variant": variant, "query_set": query_set, **row}


@experiment(units={"instructions": "instructions", "calls": "calls"})
def postgres95_changes(bed: Testbed) -> Iterator[Row]:
    """The same of Figure 2.1's commands with routines of POSTGRES's, before a change and after it.

    A variant whose build is missing or can't be started is left out. CannotMeasure without any.
    """
    for variant, loaded in each_loaded(CHANGES):
        for row in routines(loaded, queries.SCANS, bed.parameters.transactions):
            yield {"variant": variant, **row}


def each_loaded(builds: Mapping[str, str]) -> Iterator[tuple[str, Backend]]:
    """Every variant whose build is there and can be started, with its relations."""
    with started(builds.values(), POOL) as backends:
        for variant, name in builds.items():
            if name in backends:
                load(backends[name])
                yield variant, backends[name]


def routines(loaded: Backend, query_set: str, transactions: int) -> Iterator[Row]:
    """Instructions and calls of each routine that a set executes, on a copy of the database."""
    with loaded.copied() as backend:
        found = by_routine(profiled(backend, query_set, transactions, callers=1, of="0x*"))
    for row in found[found["exclusive"] > 0].itertuples(index=False):
        directory, subsystem = place(row.file, row.object)
        yield {
            "routine": row.function,
            "file": Path(row.file).name,
            "directory": directory,
            "subsystem": subsystems.NAMES[subsystem],
            "object": row.object,
            "instructions": row.exclusive,
            "calls": row.calls,
        }


@experiment(units={"calls": "places"})
def postgres95_callers(bed: Testbed) -> Iterator[Row]:
    """Which routines of Postgres95 have calls in them that fetch an attribute, and how many.

    Of the whole program, whether a command comes there or not. heap_getattr is a part of it: it
    calls fastgetattr for any attribute but the system's.
    """
    with Backend.of(VARIANTS["assertions"]) as backend:
        found = instructions.callers(backend.folder / "bin" / "postgres", FETCHING)
    for row in found[~found["function"].isin(FETCHING)].itertuples(index=False):
        directory, subsystem = place(row.file, "postgres")
        yield {
            "caller": row.function,
            "directory": directory,
            "subsystem": subsystems.NAMES[subsystem],
            "calls": row.calls,
        }


# How often a condition uses one attribute.
USES = (1, 9)


@experiment(units={"calls": "calls"})
def postgres95_uses(bed: Testbed) -> Iterator[Row]:
    """Calls of fastgetattr per tuple, of a scan whose condition uses one attribute so many times.

    All its parts are true, so that all are evaluated; none is another's duplicate.
    """
    with Backend.of(VARIANTS["assertions"], POOL) as backend:
        relation = Wisconsin("onek", 1_000, attributes="1990")
        backend.load(relation.create_sql, relation.tuples())
        scans = [
            "SELECT onek.unique1 FROM onek WHERE "
            + " AND ".join(f"onek.unique2 < {1_000 + number}" for number in range(uses))
            for uses in USES
        ]
        found = backend.instructions([*scans, *scans])
        calls = found[found["function"] == FETCHING[0]].groupby("statement")["calls"].sum()
        for place_, uses in enumerate(USES, len(USES)):
            yield {"uses": uses, "calls": calls[place_] / 1_000}


@experiment(units={"instructions": "instructions"})
def postgres95_formatting(bed: Testbed) -> Iterator[Row]:
    """Instructions of Figure 2.3's transactions, and those within printf and its like.

    What these call in the C library has mostly no name, so it is told by its callers.
    """
    with Backend.of(VARIANTS["assertions"], POOL) as backend:
        load(backend)
        found = profiled(backend, queries.TRANSACTIONS, bed.parameters.transactions, callers=3)
    within = found["function"].str.contains("printf")
    for part, rows in (("making text", found[within]), ("all", found)):
        yield {"part": part, "instructions": int(rows["exclusive"].sum())}


# what isn't there today, or lies elsewhere
_MOVED = {"storage": "storage_manager", "obj": "parser", "access/rtree": "access_methods"}


def place(file: str, program: str) -> tuple[str, str]:
    """A routine's directory below src/backend, and the report's subsystem that does its work.

    What isn't from there is the C library's, also in a program that is linked with it for good.
    """
    _, inside, below = file.partition("/src/backend/")
    if program != "postgres" or not inside:
        return "", "system_functions"
    folder = str(Path(below).parent)
    if folder == ".":  # made by lex and yacc when it was compiled
        return "parser", "parser"
    names = [folder, folder.partition("/")[0]]
    known = (subsystems.SUBSYSTEMS.get(one) or _MOVED.get(one) for one in names)
    named = [found for found in known if found]
    return folder, named[0] if named else "others"
