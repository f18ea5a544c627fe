"""Keys inserted in ascending order and in none: the size of their index, and WAL for each key."""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import sizes, wal
from pgrerun.page import charts, narrate
from pgrerun.record.statistics import Interval

SQL = statements.beside(__file__)
VARIANTS = ("sequential", "random")  # headings of sql/keys.sql
INDEX, LOG = "size of the index", "WAL per key"


@experiment(claims=["uuidkeys-001", "uuidkeys-002"], needs=["checkpoint"])
def insert(chapter: Chapter) -> None:
    """Insert nine tenths of the keys, checkpoint, insert the rest: pages, and WAL of the rest.

    The checkpoint makes the first change of each page write the whole page to the WAL, as it does
    on a server that has been at work for a while.
    """
    variants = [Variant(name, partial(measure, chapter, name)) for name in VARIANTS]
    chapter.compare("insert", variants, {INDEX: "pages", LOG: "bytes/key"}, warmup=0)


def measure(chapter: Chapter, variant: str, block: Block) -> dict[str, float]:
    """One variant, made anew."""
    rows = chapter.parameters.rows
    before = rows - rows // 10
    insert = partial(SQL.run, name=f"keys.{variant}", seed=block.seed)
    with chapter.server.connect() as connection:
        SQL.run(connection, "keys.table")
        insert(connection, first=1, last=before)
        connection.execute("CHECKPOINT")
        with wal.written(connection) as written:
            insert(connection, first=before + 1, last=rows)
        pages = sizes.pages(connection, "item_pkey")
    return {INDEX: pages, LOG: written.bytes / (rows - before)}


def random_over_sequential(chapter: Chapter, metric: str) -> Interval:
    """The claims' numbers: what random keys take over what sequential ones take."""
    return chapter.ratio("insert", metric, "random", "sequential")


def sizes_and_wal(chapter: Chapter) -> charts.Figure:
    """Both metrics of both variants."""
    words = charts.Words(
        "What do random keys cost?",
        "An index of as many keys, inserted in ascending order and at random; the WAL of the last"
        " tenth, which a checkpoint precedes.",
        "uuid-keys",
    )
    rows = chapter.medians("insert", {INDEX: f"{INDEX} (pages)", LOG: f"{LOG} (bytes)"})
    return charts.compare(rows, words, charts.Axis("", zero=True), own_scales=True)


def said(chapter: Chapter, metric: str) -> narrate.Sentence:
    """One result in a sentence."""
    ratio = random_over_sequential(chapter, metric)
    return narrate.ratio_sentence(ratio, metric, "random keys", "sequential ones")
