"""Free space: probing for it, reusing it, and how densely tuples are appended."""

from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import APPEND, ENLARGED, LOAD_UNITS, Length, drive, relations
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import pages


def pages_with_room(chapter: Chapter) -> pd.DataFrame:
    """Pages of each relation as loaded, and how many have room for one more tuple."""
    server, tp1 = chapter.server, relations(chapter)
    for extension in ("pageinspect", "pg_freespacemap"):
        server.extension(extension)
    tp1.load(server)
    rows = []
    with server.connect() as connection:
        for relation in ("branch", "teller", "account"):
            free = pages.free_space(connection, relation)
            needed = pages.heap_page(connection, relation, 0)["length"].iloc[0] + 4  # and its line pointer
            rows.append((relation, len(free), int((free["actual"] >= needed).sum())))
    return pd.DataFrame(rows, columns=["relation", "pages", "with_room"])


def reuse(chapter: Chapter) -> None:
    """Throughput and growth while dead versions' space is reused within pages, and while it can't be.

    Reuse is prevented without touching the statements or the indexes: another session
    holds an old snapshot, so that no version may be pruned. On a throwaway server the same
    blocks run the 85/15 branch rule and pgbench's own transaction, for comparison.
    """
    server, tp1 = chapter.server, relations(chapter)
    tp1.load(server)
    ours, length = {"variables": tp1.variables(server)}, Length(chapter)

    def load(block: Block) -> None:
        tp1.load(server)

    def run(arm: str, load: dict, block: Block) -> dict[str, float]:
        return drive(chapter, length, arm, server, seed=block.seed, **load)

    def run_beside_snapshot(block: Block) -> dict[str, float]:
        with server.connect(autocommit=False) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1")
            return run(NOT_REUSED, ours | {"script": tp1.script()}, block)

    arms = [
        Arm(REUSED, partial(run, REUSED, ours | {"script": tp1.script()}), load),
        Arm(NOT_REUSED, run_beside_snapshot, load),
        Arm(BRANCH_RULE, partial(run, BRANCH_RULE, ours | {"script": tp1.script(independent=False)}), load),
    ]
    if server.owned:
        # pgbench -i drops relations of its names wherever it finds them: never on somebody's server.
        server.tool("pgbench", "-i", "-q", "-s", max(1, tp1.accounts // 100_000))
        arms.append(Arm(TPCB_LIKE, partial(run, TPCB_LIKE, {"builtin": "tpcb-like"})))
    chapter.compare("reuse", arms, LOAD_UNITS, warmup=0)


REUSED, NOT_REUSED = "space reused in its page", "space not reused"
BRANCH_RULE, TPCB_LIKE = "85/15 branch rule", "pgbench tpcb-like"


def tuples_per_page(chapter: Chapter, inserts: int = 500) -> pd.DataFrame:
    """Append single tuples, each in a transaction of its own: how many share a page of `history`."""
    server, tp1 = chapter.server, relations(chapter)
    tp1.load(server)
    with server.connect() as connection:
        for number in range(inserts):
            connection.execute("INSERT INTO history VALUES (%s, 1, 1, 10.0, repeat('x', 30))", [number])
        query = "SELECT (ctid::text::point)[0]::int AS page, count(*) AS tuples FROM history GROUP BY 1 ORDER BY 1"
        return pd.DataFrame(connection.execute(query).fetchall(), columns=["page", "tuples"])


def versions_of_one_tuple(chapter: Chapter) -> pd.DataFrame:
    """What lies on the page of one branch tuple after a replace: the replaced version and the new one.

    Columns: version, line_pointer, next (line pointer of the next version), ended (whether a
    transaction has marked it invalid), flags.
    """
    server = chapter.server
    server.extension("pageinspect")
    relations(chapter).load(server)
    with server.connect() as connection:
        query = "UPDATE branch SET balance = balance + 10.0 WHERE bid = (SELECT max(bid) FROM branch) RETURNING ctid::text"
        block, _, new = connection.execute(query).fetchone()[0].strip("()").partition(",")
        page = pages.heap_page(connection, "branch", int(block))
    page = page.assign(next=page["ctid"].str.extract(r",(\d+)\)", expand=False).astype(int), ended=page["xmax"] > 0)
    chain = page[(page["next"] == int(new))]
    chain = chain.assign(version=["replaced" if ended else "new" for ended in chain["ended"]])
    return chain[["version", "line_pointer", "next", "ended", "flags"]].reset_index(drop=True)


def replaced_by_insertion(versions: pd.DataFrame | None) -> dict[str, bool] | None:
    """The two halves of a replacement, as found on the page."""
    if versions is None:
        return None
    return {
        "the replaced version stays, marked invalid": bool(versions.query("version == 'replaced'")["ended"].all()),
        "a new version is inserted": int((versions["version"] == "new").sum()) == 1,
    }


def probe_facts(chapter: Chapter, room: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a random page mostly has no room, and whether looking costs reads."""
    extra = chapter.ratio("io", "reads", ENLARGED, APPEND)
    if room is None or extra is None:
        return None
    return {
        "a random page usually has no room": bool((room["with_room"] / room["pages"]).max() < 0.5),
        "probing costs reads": extra.low > 1,
    }
