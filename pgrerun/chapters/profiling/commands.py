"""Commands of a batch, counted by the server."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import ladder, queries
from pgrerun.chapters.profiling.queries import REPORT_TRANSACTIONS


def batch(chapter: Chapter) -> dict[str, int]:
    """Run the report's batch one command at a time; what the server says it executed.

    Keys: transactions, commands (calls that pg_stat_statements counted), tuples appended (to history).
    """
    server = ladder.live(chapter)
    with server.connect() as watching, server.connect() as working:
        working.prepare_threshold = None  # pg_stat_statements counts a prepared BEGIN only once
        watching.execute("TRUNCATE history")
        watching.execute("SELECT pg_stat_statements_reset()")
        for command in queries.transactions(chapter, REPORT_TRANSACTIONS):
            working.execute(command)
        counted = working.execute("SELECT sum(calls)::int FROM pg_stat_statements WHERE query !~ 'pg_stat'").fetchone()[0]
        appended = working.execute("SELECT count(*) FROM history").fetchone()[0]
    return {"transactions": REPORT_TRANSACTIONS, "commands": counted, "tuples appended": appended}


