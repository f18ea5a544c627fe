"""One experiment that compares two variants, and what it says of one claim."""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import sizes, wal
from pgrerun.page import charts, narrate
from pgrerun.record.statistics import Interval

SQL = statements.beside(__file__)
VARIANTS = ("first", "second")  # headings of sql/variants.sql


@experiment(claims=["CLAIM"])
def load(chapter: Chapter) -> None:
    """Load the same rows into each variant: pages of the relation, and WAL for each row."""
    variants = [Variant(name, partial(measure, chapter, name)) for name in VARIANTS]
    chapter.compare("load", variants, {"pages": "pages", "wal": "bytes/row"})


def measure(chapter: Chapter, variant: str, block: Block) -> dict[str, float]:
    """One variant, made anew."""
    rows = chapter.parameters.rows
    with chapter.server.connect() as connection:
        SQL.run(connection, f"variants.{variant}")
        with wal.written(connection) as written:
            SQL.run(connection, "variants.load", rows=rows)
        return {"pages": sizes.pages(connection, "item"), "wal": written.bytes / rows}


def second_over_first(chapter: Chapter) -> Interval:
    """The claim's number: pages of the second variant over those of the first."""
    return chapter.ratio("load", "pages", "second", "first")


def chart(chapter: Chapter) -> charts.Figure:
    """Pages of each variant."""
    words = charts.Words("How large is each variant?", "Pages after the load.", "NAME-pages")
    return charts.compare(
        chapter.medians("load", "pages"), words, charts.Axis("size", "pages", zero=True)
    )


def said(chapter: Chapter) -> narrate.Sentence:
    """The result in a sentence."""
    return narrate.ratio_sentence(second_over_first(chapter), "size", "the second", "the first")
