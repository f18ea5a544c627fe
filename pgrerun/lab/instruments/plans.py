"""Plans: what the optimizer chose, as a tree.

Plans are taken in a pass of their own and stored beside the timing of the plain
statement. EXPLAIN ANALYZE is never a stopwatch here (it slowed a scan by 30 %
when we tried); `explain(..., execute=True)` runs the statement for its actual row
counts and buffers, with timing off, and rolls its effects back.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg

from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.instruments import text_plans
from pgrerun.lab.server import releases

_BUFFERS = {
    f"{kind} {verb} Blocks": f"{kind}_{verb}".lower()
    for kind in ("Shared", "Local", "Temp")
    for verb in ("Hit", "Read", "Dirtied", "Written")
}


@dataclass(frozen=True)
class Plan:
    """One node of a plan, with its children.

    Costs are in the planner's units, cumulative as EXPLAIN prints them. Rows are
    per loop; rows_actual (and loops, buffers) are None unless the statement was
    executed. `properties` is the node as EXPLAIN (FORMAT JSON) gave it, without
    its children; at the top it also holds "Planning Time", "Settings" and so on.
    """

    node_type: str
    relation: str | None
    index: str | None
    total_cost: float
    rows_estimated: float
    rows_actual: float | None
    loops: float | None
    properties: dict[str, Any]
    children: tuple["Plan", ...]

    def walk(self) -> Iterator["Plan"]:
        """This node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, node_type: str) -> list["Plan"]:
        """The nodes of one type, such as "Seq Scan"."""
        return [node for node in self.walk() if node.node_type == node_type]

    def scan_of(self, relation: str) -> "Plan":
        """The first node that scans a relation. RerunError if the plan has none."""
        for node in self.walk():
            if node.relation == relation:
                return node
        raise RerunError(f"The plan {self.shape()} has no scan of {relation}.")

    @property
    def joins(self) -> list[str]:
        """The plan's joins from the top: "Hash Join", "Merge Join", "Nested Loop"."""
        kinds = ("Hash Join", "Merge Join", "Nested Loop")
        return [node.node_type for node in self.walk() if node.node_type in kinds]

    @property
    def q_error(self) -> float | None:
        """By what factor the row estimate is off, in either direction; both at least one row.

        Moerkotte, Neumann, Steidl, "Preventing bad plans by bounding the impact of
        cardinality estimation errors", VLDB 2009.
        """
        if self.rows_actual is None or not self.loops:  # never executed: nothing to compare
            return None
        estimated, actual = max(1.0, self.rows_estimated), max(1.0, self.rows_actual)
        return max(estimated / actual, actual / estimated)

    @property
    def buffers(self) -> dict[str, int] | None:
        """Pages, children included: shared_hit, shared_read, ..., temp_written.

        None unless the statement was executed, or buffers asked for; CannotMeasure if it was
        executed before PostgreSQL 9.0.
        """
        found = {
            name: self.properties[key] for key, name in _BUFFERS.items() if key in self.properties
        }
        if not found and self.rows_actual is not None:
            raise CannotMeasure(
                "EXPLAIN (BUFFERS)",
                "It needs PostgreSQL 9.0 or later, whose EXPLAIN tells of the pages that a"
                " statement has used.",
            )
        return found or None

    @property
    def page_accesses(self) -> int | None:
        """Accesses to pages in the buffer pool, found there or read; None unless executed."""
        found = self.buffers
        return None if found is None else found["shared_hit"] + found["shared_read"]

    # Times in ms, of the top node of a plan that was executed; else None. They are EXPLAIN's
    # account, with what it costs to keep it: for the parts of one statement, not to compare two.

    @property
    def planning_ms(self) -> float | None:
        """Time to plan; also without executing if `summary=True` was asked for."""
        return self.properties.get("Planning Time")

    @property
    def execution_ms(self) -> float | None:
        """Time from the executor's start to its end, compiling included."""
        # until 9.3 under another name
        return self.properties.get("Execution Time", self.properties.get("Total Runtime"))

    @property
    def read_ms(self) -> float:
        """Time that reads of pages were waited for, children included; 0 unless track_io_timing
        was on.
        """
        times = self.properties.items()
        return float(sum(ms for key, ms in times if key.endswith("I/O Read Time")))

    @property
    def jit_ms(self) -> float | None:
        """Time that just-in-time compilation took; 0 where nothing was compiled."""
        if self.execution_ms is None:
            return None
        timing = self.properties.get("JIT", {}).get("Timing", {})
        return float(timing.get("Total", 0.0))

    def shape(self) -> str:
        """The plan in one line: "Hash Join(Seq Scan tenk1, Hash(Seq Scan onek))"."""
        words = [self._title()]
        if self.relation:
            words.append(self.relation)
        if self.index:
            words.append(f"using {self.index}" if self.relation else self.index)
        below = ", ".join(child.shape() for child in self.children)
        return " ".join(words) + (f"({below})" if below else "")

    def _title(self) -> str:
        """The node's name as EXPLAIN prints it in text format."""
        properties = self.properties
        title = self.node_type
        strategy = properties.get("Strategy", "")
        if title == "Aggregate":
            title = {
                "Sorted": "GroupAggregate",
                "Hashed": "HashAggregate",
                "Mixed": "MixedAggregate",
            }.get(strategy, "Aggregate")
        elif title == "SetOp" and strategy == "Hashed":
            title = "HashSetOp"
        elif title == "ModifyTable":
            title = properties["Operation"]
        join = properties.get("Join Type", "Inner")
        if join != "Inner":
            title = f"{title.removesuffix(' Join')} {join} Join"
        if properties.get("Scan Direction") == "Backward":
            title += " Backward"
        if properties.get("Partial Mode", "Simple") != "Simple":
            title = f"{properties['Partial Mode']} {title}"
        return f"Parallel {title}" if properties.get("Parallel Aware") else title


def explain(
    conn: psycopg.Connection, sql: str, *, execute: bool = False, **options: bool | str
) -> Plan:
    """The plan of one statement.

    `options` are EXPLAIN's own (`settings=True`, `generic_plan=True`, `wal=True`).
    With `execute` the statement runs, with ANALYZE, BUFFERS and timing off, inside a
    transaction (a savepoint, if one is open) that is rolled back: actual rows, no times
    of single nodes. `sql` may be an EXECUTE of a prepared statement. CannotMeasure for options
    that the release doesn't know. Before 9.0 a plan has what EXPLAIN tells as text, and no buffers.
    """
    version = conn.info.server_version
    releases.require_options(version, options)
    if execute:
        untimed = {"timing": False} if releases.has_late(conn, "EXPLAIN (TIMING)") else {}
        options = {"analyze": True, "buffers": True, **untimed, **options}
    word = {True: "ON", False: "OFF"}
    settings = "".join(
        f", {name} {to if isinstance(to, str) else word[to]}" for name, to in options.items()
    )
    statement = f"{_explain(version, settings, execute)} {sql}"
    # by itself it needs no transaction, which takes two round trips
    idle = conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    alone = conn.autocommit and idle and not execute
    inside = nullcontext() if alone else conn.transaction(force_rollback=execute)
    with inside:
        return _read(conn.execute(statement, prepare=False).fetchall())


def _explain(version: int, settings: str = "", execute: bool = False) -> str:
    if releases.has(version, "EXPLAIN (FORMAT)"):
        return f"EXPLAIN (FORMAT JSON{settings})"
    return "EXPLAIN ANALYZE" if execute else "EXPLAIN"


def _read(rows: list[Any]) -> Plan:
    """The plan that EXPLAIN has sent: a document of JSON, or before 9.0 lines."""
    [first, *others] = (line for (line,) in rows)
    if others or (isinstance(first, str) and not first.startswith("[")):
        return _node(text_plans.document([first, *others]), {})
    [top] = first if not isinstance(first, str) else json.loads(first)
    return _node(top["Plan"], {name: value for name, value in top.items() if name != "Plan"})


def _node(document: dict[str, Any], about: dict[str, Any]) -> Plan:
    return Plan(
        node_type=document["Node Type"],
        relation=document.get("Relation Name"),
        index=document.get("Index Name"),
        total_cost=document["Total Cost"],
        rows_estimated=document["Plan Rows"],
        rows_actual=document.get("Actual Rows"),
        loops=document.get("Actual Loops"),
        properties={name: value for name, value in document.items() if name != "Plans"} | about,
        children=tuple(_node(child, {}) for child in document.get("Plans", ())),
    )


def explain_many(
    conn: psycopg.Connection, statements: Sequence[str], batch: int = 500
) -> Iterator[Plan]:
    """The plans of many statements, in their order, planned and not executed.

    Statements are sent in batches without waiting for each answer (libpq's pipeline mode), which
    makes thousands a matter of seconds. A statement that can't be planned raises psycopg's error
    when its batch is read.
    """
    for first in range(0, len(statements), batch):
        with conn.pipeline():
            cursors = [
                conn.execute(f"{_explain(conn.info.server_version)} {sql}")
                for sql in statements[first : first + batch]
            ]
        for cursor in cursors:
            yield _read(cursor.fetchall())
