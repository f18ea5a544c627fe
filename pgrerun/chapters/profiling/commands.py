"""Commands of a batch, counted by the server."""

import random

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import queries
from pgrerun.chapters.profiling.queries import REPORT_TRANSACTIONS


def batch(chapter: Chapter) -> dict[str, int]:
    """Run the report's batch one command at a time; what the server says it executed.

    Keys: transactions, commands (calls that pg_stat_statements counted), tuples appended (to history).
    """
    server = chapter.cluster(shared_preload_libraries="pg_stat_statements")
    server.require("contrib:pg_stat_statements")
    server.extension("pg_stat_statements")
    bank, draws = queries.relations(chapter), random.Random(chapter.parameters.seed)
    bank.load(server)
    with server.connect() as watching, server.connect() as working:
        working.prepare_threshold = None  # pg_stat_statements counts a prepared BEGIN only once
        watching.execute("SELECT pg_stat_statements_reset()")
        for _ in range(REPORT_TRANSACTIONS):
            bank.run_once(working, draws)
        counted = working.execute("SELECT sum(calls)::int FROM pg_stat_statements WHERE query !~ 'pg_stat'").fetchone()[0]
        appended = working.execute("SELECT count(*) FROM history").fetchone()[0]
    return {"transactions": REPORT_TRANSACTIONS, "commands": counted, "tuples appended": appended}


