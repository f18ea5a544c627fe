"""PARTS on PostgreSQL, and how its commands are timed."""

from functools import partial

from pgrerun.chapter import Chapter
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Server, set_session
from pgrerun.lab.statements import beside

STATEMENTS = beside(__file__)
SERIAL = {"max_parallel_workers_per_gather": 0}
COMMANDS = {name: STATEMENTS.text(f"commands.{name}") for name in ("short", "long")}


def load(chapter: Chapter, server: Server) -> None:
    """PARTS, as large as the parameter says, keyed on pnum."""
    Parts(chapter.parameters.tuples).load(server, "parts", "btree")


def timed(server: Server, name: str, query: str, times: int = 10) -> Variant:
    """A query by one session, without parallel workers: "seconds", the mean of so many runs."""
    return Variant(name, partial(_seconds, server, query, times))


def _seconds(server: Server, query: str, times: int, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        set_session(connection, SERIAL)
        with clock.stopwatch() as watch:
            for _ in range(times):
                connection.execute(query).fetchall()
    return {"seconds": watch.seconds / times}
