"""The report's queries by Postgres95 of 1996, and by releases from then to now.

Everywhere the same data, the same statements and a single-user backend, whose pool holds all pages
or has sixteen, as the report's. What is counted are instructions, which machines of thirty years
don't change, and in Postgres95 the pages that the operating system was asked for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import product

import pandas as pd

from pgrerun.chapters.wisconsin import contenders, queries
from pgrerun.errors import ServerError
from pgrerun.lab.postgres95 import BUNDLED, Backend, in_all_releases, started
from pgrerun.lab.quel import Translator, read
from pgrerun.lab.server import builds
from pgrerun.lab.testbed import Row, Testbed, experiment

# what stores a tuple of the result, or prints it, by its callers in one release or another: alike
# for all ways to find it (Postgres95's sorts call heap_insert as well)
KEEPING = re.compile(
    "debugtup'|heap_insert'(Exec(utePlan|Retrieve|utorRun)|standard_Exec|intorel_|heapam_tuple_i)"
)
BUILD = "postgres95-no-assertions"
POOL = 16  # pages of the report's
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
# query 32 as its printed time has it, its tuple found by a scan
SCANNED = replace(
    queries.BY_KEY["q32"],
    key="scanned",
    query="replace {tenk1} (unique1 = {new}) where {tenk1}.unique1 + 0 = {moved}",
)
# of which claims of Figure 3.11 speak, but for joins
PRINTED = (
    *("q1", "q2", "q3", "q4", "q5", "q6"),
    *("q18", "onek", "q26", "q27", "q29", "q30", "q31", "q32", SCANNED.key),
)
# Joins, by the index that is there: none, a clustered one, one that isn't.
UNINDEXED, CLUSTERED, SCATTERED = ("q9", "q10", "q11"), ("q12", "q13", "q14"), ("q15", "q16", "q17")
# By whose cost functions joins are planned, and builds that have them: for queries with a clustered
# index with the function that the report changed by hand, and for all others without that change.
# Postgres95's planner has the ways of POSTGRES's to join, and other costs of most of them.
PLANNERS = {
    "POSTGRES of 1990": ("postgres95-clustered-costs-of-1990", "postgres95-costs-of-1990"),
    "Postgres95": ("postgres95-clustered", "postgres95-planner-no-assertions"),
}
METHODS = {"nested loops": "-f n", "hash joins": "-f h"}  # what forbids them to the planner
# POSTGRES had hash joins and merge joins where no index is, says the report. Postgres95 counts the
# selectivity of a join twice, so that by its own costs it would take nested loops for query 11.
FORBIDDEN = {"Postgres95": ("nested loops", UNINDEXED)}


def load(backend: Backend, tuples: int = queries.SPECIFIED) -> None:
    """The relations in every state of Figure 3.11."""
    # Postgres95 has no operators of an index by default
    operators = " int4_ops" if backend.release.number < (6,) else ""
    for state, role in product(queries.STATES, queries.ROLES):
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


def _instance(key: str, tuples: int) -> queries.Instance:
    return queries.instance(SCANNED if key == SCANNED.key else queries.BY_KEY[key], tuples)


def _statements(key: str, tuples: int) -> tuple[list[str], int]:
    """A query between what makes it possible and what undoes it, twice; the place of the second."""
    instance = _instance(key, tuples)
    before = _sql(instance.before)
    once = [*before, *_sql(instance.text), *_undo(instance)]
    return once * 2, len(once) + len(before)


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
    these. A query's second execution counts, when caches are filled and what fits is in the pool.
    """
    work: list[str] = []
    places: dict[int, str] = {}
    for key in keys:
        once_more, place = _statements(key, tuples)
        places[len(work) + place] = key
        work += once_more
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
        changes = bool(_instance(key, tuples).answer.among)
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


@experiment(
    units={
        "plan": "text",
        "instructions": "instructions",
        "reads": "pages",
        "writes": "pages",
        "relation_reads": "pages",
    }
)
def postgres95_queries(bed: Testbed) -> Iterator[Row]:
    """What Postgres95 executes, reads and writes for queries, with a pool of sixteen pages.

    Instructions from parsing to committing, and pages of all files; relation_reads are those of
    relations and indices. Of a sort's files it is blocks of the C library that count. Of the second
    execution in a session. CannotMeasure without Postgres95.
    """
    tuples = bed.parameters.report_tuples
    with Backend.of(BUILD) as loaded:
        load(loaded, tuples)
        for key in PRINTED:
            yield {"query": key, "tuples": tuples, **_queried(loaded, key, tuples)}


@experiment(
    units={
        "plan": "text",
        "joins": "text",
        "instructions": "instructions",
        "reads": "pages",
        "writes": "pages",
        "relation_reads": "pages",
        "forbidden": "text",
    }
)
def postgres95_joins(bed: Testbed) -> Iterator[Row]:
    """The same of the joins of Figure 3.11, by whose costs Postgres95's planner reckons.

    joins: its plan's ways to join, each once, from the top. forbidden: what the planner had to do
    without. Joins whose build is missing are left out. CannotMeasure without any.
    """
    tuples = bed.parameters.report_tuples
    with started(name for pair in PLANNERS.values() for name in pair) as backends:
        for costs, (clustered, others) in PLANNERS.items():
            for name, keys in ((others, UNINDEXED + SCATTERED), (clustered, CLUSTERED)):
                if not (loaded := backends.get(name)):
                    continue
                load(loaded, tuples)
                for key in keys:
                    method, of = FORBIDDEN.get(costs, ("", ()))
                    found = _joined(loaded, key, tuples, [method] if key in of else [])
                    yield {"costs": costs, "query": key, "tuples": tuples, **found}


def _joined(loaded: Backend, key: str, tuples: int, without: list[str]) -> Row:
    """What `postgres95_joins` tells of one query, and without which methods."""
    try:
        found = _queried(loaded, key, tuples, without)
    except ServerError:
        # A hash table that outgrows its memory is moved (repalloc in ExecHashOverflowInsert) while
        # the node goes on with the old place, and the backend ends by SIGSEGV.
        without = [*without, "hash joins"]
        found = _queried(loaded, key, tuples, without)
    joins = ways_to_join(str(found["plan"]))
    return found | {"joins": joins, "forbidden": " and ".join(without) or "nothing"}


def ways_to_join(plan: str) -> str:
    """Of a plan's nodes those that join, each once: "nested loop and merge join"."""
    nodes = (node.lower() for node in plan.split(", "))
    return " and ".join(dict.fromkeys(node for node in nodes if node.endswith((" loop", " join"))))


def _queried(loaded: Backend, key: str, tuples: int, without: Sequence[str] = ()) -> Row:
    """What `postgres95_queries` tells of one query, on a copy of the database."""
    statements, place = _statements(key, tuples)
    with loaded.copied(" ".join([f"-B {POOL}", *map(METHODS.__getitem__, without)])) as backend:
        pages = backend.pages(statements)
        pages = pages[pages["statement"] == place]
        of_relations = pages["file"].map(of_relation).astype(bool)
        return {
            "plan": backend.plan(statements[place]),
            "instructions": counted(backend, [key], tuples)[key]["instructions"],
            "reads": int(pages["reads"].sum()),
            "writes": int(pages["writes"].sum()),
            "relation_reads": int(pages["reads"][of_relations].sum()),
        }


def of_relation(file: str) -> bool:
    """Whether a file of Postgres95's is a relation of the benchmark's, or an index of one.

    Others are catalogs, temporaries, parts of a hash table ("HJ" and numbers), sorts, the result.
    """
    return not file.startswith(("pg_", "temp_", "HJ")) and file not in ("sort", queries.RESULT)
