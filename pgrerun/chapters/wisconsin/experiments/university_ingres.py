"""The queries of the Wisconsin benchmark on University INGRES itself.

The report ran the release of 1987 on a SUN; this is the one of 1981 on a PDP-11, which has the same
access methods: "clustered" is a relation stored as ISAM, "non-clustered" a secondary index. Counted
are instructions of the user's mode and pages of 512 bytes, two tuples each. `retrieve into` sorts
its result and drops duplicates, as INGRES does unless told otherwise; how much of the work that is,
the processes ksort and overlay tell.
"""

from collections.abc import Iterator, Sequence

from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.contenders import population
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.lab.university_ingres import UNITS, UniversityIngres

# names have at most twelve letters, with the digit that a join's result adds
_SHORT = {
    "twentypercent": "twentypct",
    "fiftypercent": "fiftypct",
    "evenonepercent": "evenonepct",
    "oddonepercent": "oddonepct",
}
# What leads from one state of the relations to the next, in which its queries are run.
_STATES: Sequence[tuple[str, Sequence[str]]] = (
    ("none", ()),
    ("non-clustered", ("index on {0} is {0}_u1 (unique1)",)),
    ("clustered", ("destroy {0}_u1", "modify {0} to isam on unique2")),
    ("with", ("index on {0} is {0}_u1 (unique1)", "index on {0} is {0}_pct (onepercent)")),
)
# of which claims and sentences speak
TOLD = ("q1", "q3", "q20", "q21", "q23", "q24", "q31", "q32")


@experiment(units=UNITS | {"answer": "tuples"})
def ingres_queries(bed: Testbed) -> Iterator[Row]:
    """Each query once on University INGRES, one row a process; answer is the number of tuples.

    At the report's size those of which claims and sentences speak. CannotMeasure without a build
    of it.
    """
    given = bed.parameters
    told = [queries.BY_KEY[key] for key in TOLD]
    for n, asked in {given.report_tuples: told, given.counted: queries.QUERIES}.items():
        yield from _of_size(n, asked)


def _of_size(n: int, asked: Sequence[queries.Query]) -> Iterator[Row]:
    """Rows of queries on relations of n tuples, of which there are those that they name."""
    texts = [queries.instance(query, n).text for query in asked]
    roles = [role for role in queries.ROLES if any(role in text for text in texts)]
    with UniversityIngres() as ingres:
        for role in roles:
            _load(ingres, role, n)
        for state, changes in _STATES:
            for role in roles:
                ingres.run(*(change.format(role) for change in changes))
            for query in asked:
                if query.state == state:
                    factors = {"query": query.key, "state": state, "tuples": n}
                    for row in _measured(ingres, query, n):
                        yield factors | row


def _measured(ingres: UniversityIngres, query: queries.Query, n: int) -> Iterator[Row]:
    instance = queries.instance(query, n)
    before, text, after = (
        quel(part, query.state) for part in (instance.before, instance.text, instance.after)
    )
    declared = [f"range of {role} is {role}" for role in queries.ROLES if role in text]
    command = ingres.run(*declared, *([before] if before else []), text)[-1]
    answer = len(command.rows)
    if " into " in text:
        asked = f'retrieve (r.reltups) where r.relid = "{queries.RESULT}"'
        [row] = ingres.run("range of r is relation", asked)[-1].rows
        answer = int(row.strip("| "))
        ingres.run(f"destroy {queries.RESULT}")
    if after:
        ingres.run(*declared, after)
    for process in command.processes:
        yield {"answer": answer} | process.row()


def quel(text: str, state: str) -> str:
    """POSTQUEL of `queries` as INGRES of 1981 has it."""
    for role in queries.ROLES:
        text = text.replace(queries.relation(role, state), role)
    text = text.replace("retrieve unique into", "retrieve into")
    for name, short in _SHORT.items():
        text = text.replace(name, short)
    return text


def _load(ingres: UniversityIngres, role: str, n: int) -> None:
    relation = population("tenk2" if role == "bprime" else role, n)
    attributes = {_SHORT.get(name, name): "i4" for name in relation.integers}
    attributes |= dict.fromkeys(relation.texts, "c52")
    ingres.load(role, attributes, relation.tuples(n // 10 if role == "bprime" else None))
