"""The contenders run the 32 queries, block by block, and their answers are compared before a time counts."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from pgrerun import experiment, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin.contenders import AGAIN, CONFINED, NESTED_LOOPS, POSTGRESQL, Contender, DuckDB, PostgreSQL
from pgrerun.chapters.wisconsin.miniature import COMPILED, INTERPRETED, Miniature
from pgrerun.chapters.wisconsin.queries import BY_KEY, KEYS, QUERIES, SPECIFIED, Query, variant
from pgrerun.experiment import Arm, Block
from pgrerun.ingres import INTERPRETER, THREADED

REPORT = "queries at the report's size"
INDEX_CLAIMS = [f"lai-{number:03}" for number in (31, *range(33, 38), 40)]
PASSES = 7  # blocks, at most, at the largest size, where a block takes long
BETWEEN = 5  # and at sizes in between, which only bend or straighten a curve: no claim is judged by them
PATIENCE = 0.05  # a query that takes fewer seconds runs several times in a block, and its median counts


def race(
    chapter: Chapter, name: str, n: int, contenders: Sequence[Contender], queries: Sequence[Query] = QUERIES, pairs: int = 0, warmup: int = 0
) -> None:
    """Every contender runs every query in each block; observations in seconds, one metric per query.

    A query that is over in no time runs as often as the chapter's parameter says, and the median is the block's observation.

    RerunError if two contenders give different answers to a block's variants.
    """
    pairs = pairs or chapter.parameters.pairs
    if len(chapter.run.finished(name)) >= pairs * len(contenders):
        return
    answers: dict[str, tuple[int, int]] = {}
    with ExitStack() as open_ones:
        for contender in contenders:
            open_ones.enter_context(contender).load(n)
        arms = [Arm(contender.name, partial(_lap, contender, n, queries, answers, chapter.parameters.repeats)) for contender in contenders]
        experiment.interleave(
            chapter.run, name, arms, pairs=pairs, units={query.key: "s" for query in queries},
            seed=chapter.parameters.seed, warmup=warmup, answer=lambda block: sorted(answers.items()),
        )  # fmt: skip


def _lap(contender: Contender, n: int, queries: Sequence[Query], answers: dict, repeats: int, block: Block) -> dict[str, float]:
    seconds = {}
    shift = block.index % len(queries)  # no query always follows the same other
    for query in (*queries[shift:], *queries[:shift]):
        one, times = variant(query, n, block), []
        while not times or (len(times) < repeats and sum(times) < PATIENCE):
            if times:
                contender.tidy(one)
            times.append(contender.run(one))
        answers[query.key] = contender.answer(one)
        contender.tidy(one)
        seconds[query.key] = float(np.median(times))
    return seconds


def contenders(chapter: Chapter, n: int = SPECIFIED) -> list[Contender]:
    """Who runs at a size. Others take their seat here.

    PostgreSQL as it chooses runs twice, to know the noise. The miniature of INGRES, interpreted and compiled, runs
    where relations are small enough for it, with PostgreSQL confined to its joins to check the answers.
    """
    server = chapter.server
    confined = PostgreSQL(server, CONFINED, NESTED_LOOPS)
    if n <= chapter.parameters.miniature:
        return [confined, Miniature(INTERPRETED, INTERPRETER), Miniature(COMPILED, THREADED)]
    return [PostgreSQL(server), PostgreSQL(server, AGAIN), confined, DuckDB()]


def at_report_size(chapter: Chapter) -> None:
    """All contenders at the report's size."""
    race(chapter, REPORT, SPECIFIED, contenders(chapter))


def on_miniature(chapter: Chapter) -> None:
    """The miniature of INGRES, interpreted and compiled, at its own size."""
    n = chapter.parameters.miniature
    race(chapter, at(n), n, contenders(chapter, n))


def sizes(chapter: Chapter) -> list[int]:
    """Tuples of the large relations: from the report's to the largest, each as many times the one before."""
    return [round(n) for n in np.geomspace(SPECIFIED, chapter.parameters.largest, chapter.parameters.sizes)]


def at(n: int) -> str:
    """The name of the experiment at a size."""
    return REPORT if n == SPECIFIED else f"queries at {n} tuples"


def grown(chapter: Chapter) -> None:
    """PostgreSQL as it chooses and DuckDB at the larger sizes."""
    _, *between, largest = sizes(chapter)
    for n, passes in [*((n, BETWEEN) for n in between), (largest, PASSES)]:
        race(chapter, at(n), n, [PostgreSQL(chapter.server), DuckDB()], pairs=min(passes, chapter.parameters.pairs))


# ---- single tuples: over in no time, so that many blocks cost little

SINGLE = "single tuples"
SINGLE_KEYS = ("q7", "q26", "q29", "q30", "q31", "q32")
SINGLE_CLAIMS = ("lai-030", "lai-038", "lai-039")


def single(chapter: Chapter) -> None:
    """The queries of one tuple that no scan is needed for, by PostgreSQL at the largest size, in four times as many blocks."""
    race(chapter, SINGLE, sizes(chapter)[-1], [PostgreSQL(chapter.server)], [BY_KEY[key] for key in SINGLE_KEYS], pairs=4 * chapter.parameters.pairs, warmup=1)


def of_single(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> statistics.Interval | None:
    """Mean time of some of these queries over that of others."""
    frame = times(chapter.run.observations(SINGLE), POSTGRESQL)
    if frame.empty:
        return None
    return statistics.ratio(frame[list(above)].mean(axis=1), frame[list(below)].mean(axis=1), seed=chapter.parameters.seed)


# ---- two ways to store a result

STORED = "two ways to store a result"
INTO, APPENDED = "a new relation", "an existing relation"


def stored(chapter: Chapter) -> None:
    """Query 2 at the largest size, its result in a relation that it makes, or appended to an empty one that is there."""
    n = sizes(chapter)[-1]
    with PostgreSQL(chapter.server) as contender:
        contender.load(n)
        contender.execute("DROP TABLE IF EXISTS kept")
        contender.execute("CREATE TABLE kept (LIKE tenk1)")
        arms = [Arm(INTO, partial(_into, contender, n)), Arm(APPENDED, partial(_appended, contender, n))]
        chapter.compare(STORED, arms, {"seconds": "s"})
        contender.execute("DROP TABLE kept")


def _into(contender: PostgreSQL, n: int, block: Block) -> dict[str, float]:
    one = variant(BY_KEY["q2"], n, block)
    seconds = contender.run(one)
    contender.tidy(one)
    return {"seconds": seconds}


def _appended(contender: PostgreSQL, n: int, block: Block) -> dict[str, float]:
    one = variant(BY_KEY["q2"], n, block)
    contender.execute("TRUNCATE kept")
    return {"seconds": contender.run(replace(one, text=one.text.replace("retrieve into tmp", "append kept")))}


# ---- what is made of the times


def seconds(chapter: Chapter, n: int, contender: str) -> pd.DataFrame:
    """Times of one contender at a size: a row per block, a column per query; empty if it did not run."""
    observed = chapter.run.observations(at(n))
    return times(observed, contender)


def times(observed: pd.DataFrame, contender: str) -> pd.DataFrame:
    """The same from observations."""
    if observed.empty or contender not in set(observed["arm"]):
        return pd.DataFrame()
    return observed[observed["arm"] == contender].pivot(index="block", columns="metric", values="value").sort_index()


def over(chapter: Chapter, one: str, other: str, keys: Sequence[str] = KEYS, n: int = SPECIFIED) -> statistics.Interval | None:
    """One contender's times over another's: median over blocks of the geometric mean over queries."""
    a, b = (seconds(chapter, n, name) for name in (one, other))
    if a.empty or b.empty:
        return None
    return statistics.ratio(mean(a, keys), mean(b, keys), seed=chapter.parameters.seed)


def mean(frame: pd.DataFrame, keys: Sequence[str]) -> pd.Series:
    """Geometric mean over queries, block by block."""
    return np.exp(np.log(frame[list(keys)]).mean(axis=1))


def within(chapter: Chapter, above: Sequence[str], below: Sequence[str], n: int = 0, contender: str = POSTGRESQL) -> statistics.Interval | None:
    """Geometric mean of some queries' times over that of others, one contender's, at the largest size unless given."""
    frame = seconds(chapter, n or sizes(chapter)[-1], contender)
    return None if frame.empty else statistics.ratio(mean(frame, above), mean(frame, below), seed=chapter.parameters.seed)


def label(key: str) -> str:
    """How the page calls a query: "1: select 1% into temp, no index"."""
    return f"{key[1:]}: {published.table('wisconsin_figure_3_11').label[key]}" if key in KEYS else BESIDE[key]


BESIDE = {"onek": "project 100% of the 1-K relation", "plain": "update of an attribute without an index"}
