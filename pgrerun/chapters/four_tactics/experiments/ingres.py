"""The memorandum's benchmark on University INGRES 6.3 itself: instructions, pages and messages.

Counted are instructions of the PDP-11's user mode, so that the kernel's share is missing. Pages
have 512 bytes, half of those of the memorandum's VAX. A rerun gives the same numbers.
"""

from collections.abc import Iterator

from pgrerun.lab.quel import figures
from pgrerun.lab.relations import Parts
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.lab.university_ingres import UNITS, Command, UniversityIngres

ATTRIBUTES = {"pnum": "i2", "pname": "c20", "color": "c8", "weight": "i2", "qoh": "i2"}
WIDE = ATTRIBUTES | {"filler": "c166"}
SIZES = (1, 210, 3360)
# Sizes whose differences are what a tuple costs.
SLOPES = (1120, 2240, 3360)
# The benchmark's queries by their letter, as printed, without their declarations.
QUERIES = {
    query.label: " ".join(
        query.text.replace("range of p is PARTS", "").replace("range of q is PARTS", "").split()
    )
    for query in figures.queries("1981")
}
# Queries on the heaps, and on the keyed relation.
SCANS, KEYED = "bcd", "efghi"
# Scans that differ in one thing each: how much is asked of a tuple, and how much is printed.
MORE_SCANS = {
    "one qualification": "retrieve (p.pnum) where p.pnum < 4",
    "three qualifications": "retrieve (p.pnum) where p.pnum < 0 and p.weight > 3 and p.qoh > 10",
    "all attributes": "retrieve (p.all)",
}
# the qualification of Figure 1, and the same with nothing to convert
FIGURE_1 = {
    "integers beside a float": "13 + e.salary = 100",
    "floats alone": "13.0 + e.salary = 100.0",
}
# As many as section 2.1 has tuples checked against Figure 1.
EMPLOYEES = 1000
# one join, by the relation that its restriction leaves few tuples of: in either order
JOINED = ("parts", "stock")
JOIN = "retrieve (p.pname, s.pname) where p.pnum = s.pnum and p.qoh < {} and s.qoh < {}"
# What qoh is less than: three tuples of JOINED_TUPLES, or three quarters.
FEW = 1
MANY = 150
JOINED_TUPLES = 600
# A hashed relation's pages are filled by half, which is what INGRES does of its own, or as the ISAM
# one's: of that alone is the fill printed, by its number of pages.
_ORGANIZATIONS = (("isam", 100), ("hash", 50), ("hash", 100))


@experiment(units=UNITS | {"answer": "tuples"})
def ingres_benchmark(bed: Testbed) -> Iterator[Row]:
    """Queries a to i at the printed sizes, one row a process; e to i on isam and on hash, and that
    with pages filled by half and wholly.

    Once with INGRES's processes as on a large machine (together: `decomp70` decomposes and finds
    tuples), once as on a small one (separate: `ovqp` finds them). `answer` is the number of tuples
    returned. Relations larger than the parameter `ingres_tuples` are left out.
    """
    for separate in (False, True):
        with UniversityIngres(separate=separate) as ingres:
            for factors, command in _runs(ingres, bed.parameters.ingres_tuples):
                for process in command.processes:
                    yield factors | {"answer": len(command.rows)} | process.row()


@experiment(
    units={
        "instructions": "instructions",
        "inclusive": "instructions",
        "calls": "calls",
        "failed_branches": "branches",
        "taken_branches": "branches",
        "branches": "branches",
    }
)
def ingres_routines(bed: Testbed) -> Iterator[Row]:
    """The same commands, and scans at sizes whose differences are a tuple's, one row a routine.

    Its own instructions, those with all that it calls (of calls that have ended), its calls, its
    conditional branches that weren't taken and that were, and how many there are in its code.
    """
    for separate in (False, True):
        with UniversityIngres(separate=separate) as ingres:
            for run in (_runs, _slopes):
                for factors, command in run(ingres, bed.parameters.ingres_tuples):
                    yield from _routines(factors, command)


@experiment(units={"calls": "calls", "answer": "tuples"})
def ingres_figure_1(bed: Testbed) -> Iterator[Row]:
    """How often two routines are called for the qualification of Figure 1, one row each.

    `typecheck` looks at the types of two operands, `itof` makes a float of an integer. Once as
    printed, once with constants that are floats already. Salaries are 0 and up, so that one tuple
    of EMPLOYEE qualifies.
    """
    with UniversityIngres() as ingres:
        ingres.run("create employee (salary = f4, name = c10)")
        rows = ((salary, f"employee {salary}"[:10]) for salary in range(EMPLOYEES))
        ingres.append("employee", {"salary": "i2", "name": "c10"}, rows)  # copy converts it
        for constants, qualification in FIGURE_1.items():
            retrieve = f"retrieve (e.name) where {qualification}"
            command = ingres.run("range of e is employee", retrieve)[-1]
            for routine in ("typecheck", "itof"):
                yield {
                    "constants": constants,
                    "tuples": EMPLOYEES,
                    "routine": routine,
                    "calls": command.calls(routine),
                    "answer": len(command.rows),
                }


@experiment(units={"left": "tuples", "pages": "pages", "reads": "reads"})
def ingres_substitution(bed: Testbed) -> Iterator[Row]:
    """What INGRES reads of either partial result of a join, of which one has few tuples.

    Either relation is first restricted into a temporary one: `left` are its tuples, `pages` its
    pages, `reads` the requests for them once both are there. INGRES substitutes one relation: it
    takes its tuples one by one, each time with a scan of the other, so that the other's pages are
    read again and again. The same command twice, in which the two restrictions have changed places;
    both relations have the same tuples.
    """
    rows = list(Parts(JOINED_TUPLES).rows())
    with UniversityIngres() as ingres:
        for relation in JOINED:
            ingres.load(relation, ATTRIBUTES, rows)
        for few in JOINED:
            below = {relation: FEW if relation == few else MANY for relation in JOINED}
            ranges = [f"range of {relation[0]} is {relation}" for relation in JOINED]
            command = ingres.run(*ranges, JOIN.format(*below.values()), requests=True)[-1]
            for relation, (pages, reads) in _partial_results(command).items():
                yield {
                    "few": few,
                    "relation": relation,
                    "left": sum(int(row[-1]) < below[relation] for row in rows),
                    "pages": pages,
                    "reads": reads,
                }


def _partial_results(command: Command) -> dict[str, tuple[int, int]]:
    """By relation the pages of what it was restricted to, and reads of them for the join itself."""
    made, now, begun = {}, "", 0
    for place, (_, call, relation, _) in enumerate(command.requests):
        if relation in JOINED:
            now, begun = relation, place
        elif relation.startswith("_SYS") and call == "w":
            made[relation] = now  # the one that is scanned when a temporary one is written last
    found = {}
    for temporary, relation in made.items():
        pages = {page for _, _, name, page in command.requests if name == temporary}
        reads = [call for _, call, name, _ in command.requests[begun:] if name == temporary]
        found[relation] = len(pages), reads.count("r")
    return found


def _routines(factors: Row, command: Command) -> Iterator[Row]:
    for process in command.processes:
        for name, routine in process.routines.items():
            yield factors | {
                "process": process.process,
                "routine": name,
                "instructions": routine.instructions,
                "inclusive": routine.inclusive,
                "calls": routine.calls,
                "failed_branches": routine.failed_branches,
                "taken_branches": routine.taken_branches,
                "branches": routine.branches,
            }


@experiment(units={"request": "", "writes": "writes", "page": ""})
def ingres_requests(bed: Testbed) -> Iterator[Row]:
    """What queries b to i ask the kernel for, in order, one row a request for a page.

    `writes` is 1 for a write. Of the keyed relations the overflow pages lie behind the main ones.
    """
    with UniversityIngres() as ingres:
        for factors, command in _runs(ingres, bed.parameters.ingres_tuples, ask=True):
            for place, (process, call, relation, page) in enumerate(command.requests):
                yield factors | {
                    "request": place,
                    "process": process,
                    "writes": int(call == "w"),
                    "relation": relation,
                    "page": page,
                }


def _runs(
    ingres: UniversityIngres, largest: int, ask: bool = False
) -> Iterator[tuple[Row, Command]]:
    """The benchmark's commands, each after its declarations, on the relation that it asks for."""
    if not ask:
        yield _factors(ingres, "a", 0, "none"), _last(ingres, QUERIES["a"])
    for tuples in SIZES:
        if tuples > largest:
            return
        load(ingres, tuples)
        for query in SCANS:
            yield _factors(ingres, query, tuples, "heap"), _last(ingres, QUERIES[query], ask)
        ingres.run("destroy parts")
    for organization, fillfactor in _ORGANIZATIONS:
        load(ingres, Parts(wide=True).tuples, organization, fillfactor)
        for query in KEYED:
            factors = _factors(ingres, query, Parts(wide=True).tuples, organization, fillfactor)
            yield factors, _last(ingres, QUERIES[query], ask)
        ingres.run("destroy parts")


def _slopes(ingres: UniversityIngres, largest: int) -> Iterator[tuple[Row, Command]]:
    queries = MORE_SCANS | {letter: QUERIES[letter] for letter in SCANS}
    for tuples in SLOPES:
        if tuples > largest:
            return
        load(ingres, tuples)
        for query, text in queries.items():
            if tuples not in SIZES or query in MORE_SCANS:
                yield _factors(ingres, query, tuples, "heap"), _last(ingres, text)
        ingres.run("destroy parts")


def _factors(
    ingres: UniversityIngres, query: str, tuples: int, organization: str, fillfactor: int = 100
) -> Row:
    return {
        "query": query,
        "tuples": tuples,
        "organization": organization,
        "fillfactor": fillfactor,
        "processes": "separate" if ingres.separate else "together",
    }


def _last(ingres: UniversityIngres, query: str, ask: bool = False) -> Command:
    declared = [f"range of {name} is parts" for name in "pq" if f"{name}." in query]
    return ingres.run(*declared, query, requests=ask)[-1]


def load(
    ingres: UniversityIngres, tuples: int, organization: str = "heap", fillfactor: int = 100
) -> None:
    """PARTS as a heap of narrow tuples, or keyed of wide ones, with the inserts afterwards."""
    if organization == "heap":
        ingres.load("parts", ATTRIBUTES, Parts(tuples).rows())
        return
    parts = Parts(tuples, wide=True)
    rows = list(parts.rows())
    ingres.load("parts", WIDE, rows[: parts.loaded])
    ingres.run(f"modify parts to {organization} on pnum where fillfactor = {fillfactor}")
    ingres.append("parts", WIDE, rows[parts.loaded :])
