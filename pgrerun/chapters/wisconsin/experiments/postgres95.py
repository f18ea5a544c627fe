"""The report's queries by Postgres95 of 1996, and by releases from then to now.

Everywhere the same data, the same statements and a single-user backend whose pool holds all pages.
What is counted are instructions, which machines of thirty years don't change, and in Postgres95 the
pages that the operating system was asked for.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import product

import pandas as pd

from pgrerun.chapters.wisconsin import contenders, queries
from pgrerun.errors import ServerError
from pgrerun.lab.postgres95 import BUNDLED, Backend, in_all_releases
from pgrerun.lab.quel import Translator, read
from pgrerun.lab.server import builds
from pgrerun.lab.testbed import Row, Testbed, experiment

# what stores a tuple of the result, or prints it, by its callers in one release or another: alike
# for all ways to find it (Postgres95's sorts call heap_insert as well)
KEEPING = re.compile(
    "debugtup'|heap_insert'(Exec(utePlan|Retrieve|utorRun)|standard_Exec|intorel_|heapam_tuple_i)"
)
BUILD = "postgres95-no-assertions"
# Builds with the years in which their releases came out; cassert-off is of 14.
YEARS = {
    BUILD: 1996,
    "6.5": 1999,
    "7.0": 2000,
    "7.4": 2003,
    "8.2": 2006,
    "8.3": 2008,
    "8.4": 2009,
    "9.0": 2010,
    "9.1": 2011,
    "9.2": 2012,
    "9.4": 2014,
    "cassert-off": 2021,
}
# what serves a feature that a query doesn't use: with all that it calls, of the function manager
# its own instructions alone, as the operator itself has to be executed anyway
FEATURES = {
    "rules": ("inclusive", re.compile("QueryRewrite'")),
    "types": ("exclusive", re.compile(r"(fmgr(_\w+)?|\w*FunctionCall\w*)'")),
    "versions": ("inclusive", re.compile("HeapTupleSatisfies\\w*'(?!HeapTupleSatisfies)")),
}
BEGINNING = re.compile("(intorel_startup|debugStartup)'")  # makes the relation, prints a head


def load(
    backend: Backend, tuples: int = queries.SPECIFIED, roles: Sequence[str] = queries.ROLES
) -> None:
    """The relations in every state of Figure 3.11."""
    # Postgres95 has no operators of an index by default
    operators = " int4_ops" if backend.release.number < (6,) else ""
    for state, role in product(queries.STATES, roles):
        if state == "with" and role not in ("tenk1", "tenk2"):
            continue
        source = contenders.population("tenk2" if role == "bprime" else role, tuples, state)
        name = queries.relation(role, state)
        indices = [
            f"CREATE INDEX {name}_{attribute} ON {name} USING btree ({attribute}{operators})"
            for attribute in queries.STATES[state]
        ]
        create = source.create_sql.replace(f" {source.name} ", f" {name} ", 1)
        found = source.tuples(tuples // 10 if role == "bprime" else None)
        backend.load(create, found, *indices)
    backend.run([backend.release.analyze])


def _sql(quel: str) -> list[str]:
    return [in_all_releases(Translator().sql(one)) for one in read(quel)] if quel else []


def _undo(instance: queries.Instance) -> list[str]:
    into = getattr(instance.statement, "into", "")
    return ([f"DROP TABLE {into}"] if into else []) + _sql(instance.after)


def answer(backend: Backend, instance: queries.Instance) -> tuple[int, str]:
    """Tuples of a query's answer, and a digest of them in any order."""
    into, [query] = getattr(instance.statement, "into", ""), _sql(instance.text)
    shown = [f"SELECT * FROM {into}"] if into else []
    if instance.answer.among:
        relation, keys = instance.answer.source, instance.answer.among
        where = " OR ".join(f"{name} = {key}" for name in ("unique1", "unique2") for key in keys)
        shown = [f"SELECT * FROM {relation} WHERE {where}"]
    statements = [*_sql(instance.before), query, *shown, *_undo(instance)]
    rows = backend.run(statements)[statements.index(query) + len(shown)]
    lines = sorted("|".join(value.strip() for value in row.values()) for row in rows)
    return len(lines), sha256("\n".join(lines).encode()).hexdigest()[:12]


def counted(
    backend: Backend, keys: Sequence[str], tuples: int = queries.SPECIFIED
) -> dict[str, Row]:
    """Instructions of queries, in one session: the whole statement's, and which of them find.

    `executor` is what ExecutorRun takes, so neither parsing nor planning, neither making the
    result's relation nor committing. `keeping` stores or prints the tuples that a query found, and
    `found` is the executor's without it. `without_rules`, `without_types` and `without_versions`
    are what is left of all without looking for rules, calling operators by way of the function
    manager, and asking whether a version of a tuple is valid; `without_features` without any of
    these. A query's second execution counts, when caches are filled and pages are in the pool.
    """
    work: list[str] = []
    places: dict[int, str] = {}
    for key in keys:
        instance = queries.instance(queries.BY_KEY[key], tuples)
        once = [*_sql(instance.before), *_sql(instance.text), *_undo(instance)]
        places[len(work) + len(once) + len(_sql(instance.before))] = key
        work += once * 2
    profile = backend.instructions(work, callers=1)
    profile = profile[profile["statement"].isin(places)]
    name = profile["function"]
    run = (
        "standard_ExecutorRun'"
        if name.str.startswith("standard_ExecutorRun'").any()
        else "ExecutorRun'"
    )
    parts = {
        "instructions": profile["exclusive"],
        "executor": profile["inclusive"].where(name.str.startswith(run), 0)
        - profile["inclusive"].where(name.str.match(BEGINNING), 0),
        "keeping": profile["inclusive"].where(name.str.match(KEEPING), 0),
        "without_features": profile["exclusive"],
    }
    for feature, (how, routines) in FEATURES.items():
        spent = profile[how].where(name.str.match(routines), 0)
        parts[f"without_{feature}"] = profile["exclusive"] - spent
        parts["without_features"] = parts["without_features"] - spent
    sums = pd.DataFrame(parts).groupby(profile["statement"]).sum().astype(int)
    rows = {}
    for place, key in places.items():
        counts = {str(part): int(value) for part, value in sums.loc[place].items()}
        changes = bool(queries.instance(queries.BY_KEY[key], tuples).answer.among)
        counts["keeping"] *= not changes  # there it is the query itself
        rows[key] = counts | {"found": counts["executor"] - counts["keeping"]}
    return rows


@experiment(
    units={
        "plan": "text",
        "answer": "text",
        "answered": "tuples",
        "instructions": "instructions",
        "executor": "instructions",
        "keeping": "instructions",
        "found": "instructions",
        **{f"without_{feature}": "instructions" for feature in (*FEATURES, "features")},
    }
)
def thirty_years(bed: Testbed) -> Iterator[Row]:
    """Each query by each build that is registered, and by the bundled release.

    Answer is a digest of the tuples; instructions as `counted`. CannotMeasure without Postgres95.
    """
    there = {BUILD, *builds.registered()}
    for name in (*(one for one in YEARS if one in there), BUNDLED):
        yield from by_build(name, queries.KEYS, bed.parameters.counted)


def by_build(name: str, keys: Sequence[str], tuples: int) -> Iterator[Row]:
    """Rows of `thirty_years` of one build."""
    with Backend.of(name) as backend:
        load(backend, tuples)
        counts = counted(backend, keys, tuples)
        year = YEARS.get(name, 2007 + backend.release.number[0])  # a release a year since 10
        for key in keys:
            instance = queries.instance(queries.BY_KEY[key], tuples)
            number, digest = answer(backend, instance)
            yield {
                "build": name,
                "release": backend.release.name,
                "year": year,
                "query": key,
                "tuples": tuples,
                "plan": backend.plan(_sql(instance.text)[0]),
                "answer": digest,
                "answered": number,
                **counts[key],
            }


@experiment(units={"reads": "pages", "writes": "pages", "flushes": "pages", "forbidden": "text"})
def postgres95_pages(bed: Testbed) -> Iterator[Row]:
    """Pages that Postgres95 reads, writes and flushes for each query, by pool and kind of file.

    With a pool of sixteen pages, as the report's, and with one that holds everything. Of the second
    execution in a session. forbidden: what its planner had to do without. CannotMeasure without
    Postgres95.
    """
    with Backend.of(BUILD) as loaded:
        load(loaded, bed.parameters.counted)
        for pool, key in product((16, 1024), queries.KEYS):
            yield from _pages_of(loaded, key, bed.parameters.counted, pool)


@experiment(units={"instructions": "instructions", "reads": "pages"})
def postgres95_queries(bed: Testbed, tuples: int = queries.SPECIFIED) -> Iterator[Row]:
    """A tenth of a relation stored by Postgres95, all read and by an index that isn't clustered:
    instructions from parsing to committing, and pages of the relation and its index that are read.

    Instructions with a pool that holds everything, reads with one of sixteen pages, as the
    report's. CannotMeasure without Postgres95.
    """
    keys = ("q2", "q6")
    with Backend.of(BUILD) as loaded:
        load(loaded, tuples, ("tenk1",))
        executed = counted(loaded, keys, tuples)
        for key in keys:
            read = [
                row["reads"]
                for row in _pages_of(loaded, key, tuples, 16)
                if row["kind"] in ("relation", "index")
            ]
            yield {
                "query": key,
                "tuples": tuples,
                "reads": sum(read),
                "instructions": executed[key]["instructions"],
            }


def _pages_of(loaded: Backend, key: str, tuples: int, pool: int) -> Iterator[Row]:
    """Rows of `postgres95_pages` of one query and one pool; kinds as `kind` has them."""
    instance = queries.instance(queries.BY_KEY[key], tuples)
    once = [*_sql(instance.before), *_sql(instance.text), *_undo(instance)]
    found, forbidden = _pages(loaded, pool, once * 2)
    of_query = found[found["statement"] == len(once) + len(_sql(instance.before))]
    by_kind = of_query.groupby(of_query["file"].map(kind))
    for name, counts in by_kind[["reads", "writes", "flushes"]].sum().iterrows():
        yield {
            "query": key,
            "tuples": tuples,
            "pool": pool,
            "kind": str(name),
            **counts.astype(int).to_dict(),
            "forbidden": forbidden,
        }


def _pages(loaded: Backend, pool: int, statements: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Pages of statements on a copy of the database, and what the planner had to do without."""
    try:
        with loaded.copied(f"-B {pool}") as backend:
            return backend.pages(statements), "nothing"
    except ServerError:
        # A hash table that outgrows its memory is moved (ExecHashTableInsert's repalloc) while the
        # node goes on with the old place, and the backend ends by SIGSEGV. Whether the planner
        # takes a hash join in a small pool differs between compilers. "-f h" forbids them.
        with loaded.copied(f"-B {pool} -f h") as backend:
            return backend.pages(statements), "hash joins"


STATUS = ("pg_log", "pg_time", "pg_variable")  # of transactions; their times; the next identifiers


def kind(file: str) -> str:
    """What a file of Postgres95's is."""
    if file in STATUS:
        return "status"
    if file.startswith("pg_"):
        return "catalog"
    if file == "sort" or file.startswith("temp_"):
        return "sort"
    if file == queries.RESULT:
        return "result"
    relations = {
        queries.relation(role, state) for role, state in product(queries.ROLES, queries.STATES)
    }
    return "relation" if file in relations else "index"
