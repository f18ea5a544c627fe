"""The Wisconsin chapter's own verbs: the queries at any size, the contenders, and the words about them."""

import pandas as pd
import pytest

from pgrerun import narrate, published
from pgrerun.chapters.wisconsin import contenders, machines, miniature, queries, race, scans, words
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.experiment import Block
from pgrerun.ingres import INLINE, THREADED
from pgrerun.parameters import chapter_parameters
from pgrerun.quel import read, tree
from pgrerun.relations import Wisconsin
from pgrerun.relations.duck import Duck
from pgrerun.runs import Run

SMALL = 1000


@pytest.fixture(scope="module")
def both(cluster):
    with contenders.PostgreSQL(cluster) as postgresql, contenders.DuckDB() as duckdb:
        for one in (postgresql, duckdb):
            one.load(SMALL)
        yield postgresql, duckdb


# ---- queries


def test_there_are_the_32_of_the_figure():
    assert set(queries.KEYS) == set(published.table("wisconsin_figure_3_11").index) <= set(queries.BY_KEY)
    printed = published.table("wisconsin_figure_3_11").index
    assert {queries.BY_KEY[key].state for key in printed if published.table("wisconsin_figure_3_11")["index"][key] == "none"} == {"none"}
    assert len(queries.RUNNABLE_IN_1990) == published.table("wisconsin_figure_3_11").postgres.notna().sum()


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
@pytest.mark.parametrize("block", [None, Block(0, 7, 0), Block(1, 8, 0), Block(-1, 9, 1)])
def test_a_variant_stays_within_the_relation(query, block):
    for n in (SMALL, 12_345):
        one = queries.variant(query, n, block)
        [statement] = read(one.text)
        constants = [int(node.text) for node in statement.nodes() if isinstance(node, tree.Number)]
        assert all(0 <= constant <= n + 1 for constant in constants)
        assert one == queries.variant(query, n, block)


def test_variants_alternate_and_differ():
    texts = {queries.variant(queries.BY_KEY["q2"], SMALL, Block(index, index, 0)).text for index in range(10)}
    assert len(texts) > 8 and {("tenk1" in text, "tenk2" in text) for text in texts} == {(True, False), (False, True)}


def test_the_specification_slips_are_mended():
    joined = queries.variant(queries.BY_KEY["q11"], SMALL).statement
    variables = {node.variable for node in joined.nodes() if isinstance(node, tree.Attribute)}
    assert variables == {"onek", "tenk1", "tenk2"}
    assert "unique1 < 100" in queries.variant(queries.BY_KEY["q15"], SMALL).text


def test_strings_count_in_the_queries_as_specified_and_where_relations_are_small():
    lettered = lambda n, block: bool(queries.variant(queries.BY_KEY["q1"], n, block).answer.texts)
    assert lettered(queries.SPECIFIED, None) and lettered(SMALL, Block(0, 7, 0))
    assert not lettered(SMALL, Block(1, 7, 0)) and not lettered(queries.SPECIFIED, Block(0, 7, 0))


def test_the_letters_that_count_tell_strings_apart():
    columns = Wisconsin("t", queries.SPECIFIED).columns()
    seen = lambda name: {tuple(text.decode()[at - 1] for at in queries.LETTERS) for text in columns[name]}
    assert [len(seen(name)) for name in ("stringu1", "stringu2", "string4")] == [queries.SPECIFIED, queries.SPECIFIED, 4]


# ---- contenders


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_contenders_agree_and_leave_the_relations_as_they_were(both, query):
    tuples = {"q1": 10, "q2": 100, "q5": 10, "q6": 100, "q7": 1, "q8": 10, "q9": 100, "q10": 100, "q11": 100, "q18": 400, "q19": 1000, "q20": 1, "q21": 100}
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one = queries.variant(query, SMALL, block)
        found = []
        for contender in both:
            before = contender.execute("SELECT count(*), sum(unique1), sum(unique2), sum(fiftypercent) FROM tenk1_with")
            assert contender.run(one) > 0
            found.append(contender.answer(one))
            contender.tidy(one)
            assert contender.execute("SELECT count(*), sum(unique1), sum(unique2), sum(fiftypercent) FROM tenk1_with") == before
        assert found[0] == found[1]
        if query.key in tuples and query.key != "q18":
            assert found[0][0] == tuples[query.key]


@pytest.mark.parametrize("key", ["q1", "q7", "q11", "q19", "q22", "q31"])
def test_an_answer_given_away_has_the_checksum_of_the_engine(both, key):
    one = queries.variant(queries.BY_KEY[key], SMALL)
    for contender in both:
        contender.run(one)
        assert tuple(map(int, contender.execute(one.answer.sql)[0])) == contender.answer(one)
        contender.tidy(one)


def test_an_answer_depends_on_what_the_query_did(both):
    one = queries.variant(queries.BY_KEY["q31"], SMALL)
    untouched = both[0].answer(one)
    both[0].run(one)
    assert both[0].answer(one) != untouched
    both[0].tidy(one)
    assert both[0].answer(one) == untouched


def test_relations_are_loaded_once_for_a_size(cluster, both):
    made = lambda: both[0].execute("SELECT oid FROM pg_class WHERE relname = 'tenk1'")
    first = made()
    with contenders.PostgreSQL(cluster) as other:
        other.load(SMALL)
        assert made() == first
        other.load(2000)
        assert made() != first and other.execute("SELECT count(*) FROM bprime_clustered") == [(200,)]
        other.load(SMALL)


def test_confinement_confines(cluster, both):
    with contenders.PostgreSQL(cluster, contenders.CONFINED, contenders.NESTED_LOOPS) as confined:
        assert scans._shape(confined, "q10").startswith("Nested Loop")
        assert confined.execute("SHOW enable_hashjoin") == [("off",)]


@pytest.mark.parametrize(("name", "node"), [(scans.SEQUENTIAL, "Seq Scan"), (scans.PLAIN, "Index Scan"), (scans.BITMAP, "Bitmap Heap Scan")])
def test_a_scan_is_forced_whatever_the_servers_default(cluster, both, name, node):
    with contenders.PostgreSQL(cluster, name, {"enable_seqscan": "off", "enable_indexscan": "off", "enable_bitmapscan": "off"} | scans._FORCED[name]) as forced:
        assert scans._shape(forced, "q6").startswith(node)


def test_duckdb_leaves_nothing_behind(tmp_path):
    with Duck(tmp_path) as duck:
        duck.execute("CREATE TABLE t (a int4)")
        assert duck.execute("SELECT count(*) FROM t") == [(0,)] and len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


# ---- the race


class Told:
    """A contender whose times and answers are told."""

    def __init__(self, name, answers=(1,)):
        self.name, self._answers, self.runs, self.tidied = name, answers, 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def load(self, n):
        self.n = n

    def run(self, variant):
        self.runs += 1
        return 0.01 * self.runs

    def answer(self, variant):
        return (len(self._answers), self._answers[0])

    def tidy(self, variant):
        self.tidied += 1


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """What a race needs of a chapter."""
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))

    class Small:
        parameters = chapter_parameters("wisconsin", {})

    with Run.open("race", "wisconsin", key="k", environment={}) as Small.run:
        yield Small


def test_a_race_keeps_a_time_for_each_contender_query_and_block(chapter):
    one, other = Told("one"), Told("other")
    race.race(chapter, race.REPORT, SMALL, [one, other], queries.QUERIES[:3], warmup=0)
    frame = race.seconds(chapter, race.SPECIFIED, "other")
    assert frame.shape == (chapter.parameters.pairs, 3) and one.n == SMALL
    assert race.over(chapter, "one", "other", ["q1", "q2"]).n == chapter.parameters.pairs
    runs = one.runs
    race.race(chapter, race.REPORT, SMALL, [one, other], queries.QUERIES[:3])  # nothing is left to do
    assert one.runs == runs
    assert race.over(chapter, "one", "nobody", ["q1"]) is None


def test_a_race_ends_where_answers_differ(chapter):
    with pytest.raises(RerunError, match="other gives another answer than one|one gives another answer than other"):
        race.race(chapter, race.REPORT, SMALL, [Told("one"), Told("other", (2,))], queries.QUERIES[:3], warmup=0)


def test_short_queries_are_repeated_and_the_median_counts():
    one = Told("one")
    answers = {}
    seconds = race._lap(one, SMALL, queries.QUERIES[:1], answers, 3, Block(0, 1, 0))
    assert seconds == {"q1": 0.02} and one.runs == 3 == one.tidied and answers == {"q1": (1, 1)}


def test_a_slow_query_runs_once():
    one = Told("one")
    one.runs = 99
    race._lap(one, SMALL, queries.QUERIES[:1], {}, 3, Block(0, 1, 0))
    assert one.runs == 100


def test_both_ways_store_the_same(both):
    block, [postgresql, _] = Block(0, 5, 0), both
    postgresql.execute("CREATE TABLE kept (LIKE tenk1)")
    assert race._appended(postgresql, SMALL, block)["seconds"] > 0 and race._into(postgresql, SMALL, block)["seconds"] > 0
    assert postgresql.execute("SELECT count(*) FROM kept") == [(100,)]
    postgresql.execute("DROP TABLE kept")


def test_single_tuples_are_averaged_and_compared_in_pairs(chapter):
    one = Told(contenders.POSTGRESQL)
    race.race(chapter, race.SINGLE, SMALL, [one], [queries.BY_KEY[key] for key in race.SINGLE_KEYS], pairs=6, warmup=0)
    frame = race.times(chapter.run.observations(race.SINGLE), contenders.POSTGRESQL)
    expected = ((frame["q29"] + frame["q30"]) / 2 / frame["q7"]).median()
    assert race.of_single(chapter, ["q29", "q30"], ["q7"]).estimate == pytest.approx(expected)


# ---- what is said


def test_three_summaries_of_the_print():
    assert list(words.about_three().values()) == [True, False, False]


@pytest.mark.parametrize(
    ("values", "said"),
    [((3.0, 3.5, 1.2), "all above one"), ((0.3, 0.5, 0.9), "all below one"), ((0.3, 1.5, 0.9), "makes the winner")],
)
def test_summaries_are_compared(values, said):
    frame = pd.DataFrame([("a over b", 10_000, *values)], columns=["pair", "tuples", "x", "y", "z"])
    sentence = words.decided_by_the_summary(frame)
    assert said in sentence and isinstance(sentence, narrate.Sentence)
    assert words.decided_by_the_summary(None) is None


def test_an_update_without_an_index_is_told_as_it_was():
    frame = lambda records: pd.DataFrame({"query": [race.label("q29"), race.BESIDE["plain"]], "log_records": [4, records]})
    assert "no room" in words.unindexed_update(frame(5)) and "found room" in words.unindexed_update(frame(1))


@pytest.mark.parametrize(("borrowed", "seen"), [(False, False), (True, True), (True, False)])
def test_a_server_that_may_be_elsewhere_is_not_credited_with_this_processor(borrowed, seen):
    class Server:
        name = "theirs"
        can = staticmethod(lambda capability: seen and capability == "processes")

    class Given:
        server = Server

    Given.borrowed = borrowed
    if borrowed and not seen:
        assert "theirs may run on another" in words.elsewhere(Given)
        with pytest.raises(CannotMeasure, match="theirs may run on another machine"):
            machines.processor_factor(Given)
    else:
        assert words.elsewhere(Given) is None and machines.processor_factor(Given) > 1


def test_sizes_begin_with_the_reports():
    class Given:
        parameters = chapter_parameters("wisconsin", {"largest": 1_000_000, "sizes": 3})

    assert race.sizes(Given) == [10_000, 100_000, 1_000_000]


@pytest.mark.parametrize(("pairs", "blocks"), [(11, [race.BETWEEN, race.BETWEEN, race.PASSES]), (5, [5, 5, 5])])
def test_sizes_between_get_fewer_blocks_than_the_largest(monkeypatch, pairs, blocks):
    class Given:
        parameters, server = chapter_parameters("wisconsin", {"largest": 1_000_000, "sizes": 4, "pairs": pairs}), None

    run = []
    monkeypatch.setattr(race, "race", lambda chapter, name, n, contenders, pairs: run.append((n, pairs)))
    race.grown(Given)
    assert run == list(zip(race.sizes(Given)[1:], blocks))


def test_the_print_disagrees_with_its_prose_where_we_say():
    where = " / ".join(published.disagreements("wisconsin")["where"])
    assert "joinCselAselB" in where and "median" in where and "geometric" not in where


# ---- the miniature of INGRES


@pytest.fixture(scope="module")
def ingres():
    with miniature.Miniature(miniature.COMPILED, THREADED) as one:
        one.load(SMALL)
        yield one


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_the_miniature_answers_for_itself_and_as_the_others(both, ingres, query):
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one, found = queries.variant(query, SMALL, block), []
        for contender in (both[1], ingres):
            assert contender.run(one) > 0
            found.append(contender.answer(one))
            contender.tidy(one)
        assert found[0] == found[1] and found[0][0] > 0


def test_the_miniatures_answer_depends_on_what_it_did(ingres):
    one = queries.variant(queries.BY_KEY["q8"], SMALL)
    ingres.run(one)
    right = ingres.answer(one)
    ingres._rows = ingres._rows[1:]
    assert ingres.answer(one)[0] == right[0] - 1
    stored = queries.variant(queries.BY_KEY["q1"], SMALL)
    ingres.run(stored)
    right = ingres.answer(stored)
    ingres.base.run("delete tmp where tmp.unique2 = 3")
    assert ingres.answer(stored)[0] == right[0] - 1
    ingres.tidy(stored)


def test_the_miniatures_pages_are_those_that_its_structures_imply(ingres):
    touched = lambda key: ingres.pages(queries.variant(queries.BY_KEY[key], SMALL))[0]
    pages = ingres.base.relations["tenk1"].pages
    assert touched("q1") == pages >= SMALL // 4  # an insert may have made it a page longer
    # a nested loop scans the other relation once for each tuple of the first, which it has read, stored and read again
    assert touched("q10") == ingres.base.relations["bprime"].pages * 2 + SMALL // 10 * pages
    assert touched("q7") == 3 and touched("q12") < touched("q9") / 50


def test_a_miniature_leaves_no_files(base):
    before = list(base.iterdir())
    with miniature.Miniature("", INLINE) as one:
        one.load(100)
    assert list(base.iterdir()) == before


def test_the_miniature_sits_where_relations_are_small(chapter):
    chapter.server = None
    names = lambda n: [contender.name for contender in race.contenders(chapter, n)]
    assert miniature.INTERPRETED in names(chapter.parameters.miniature) and miniature.INTERPRETED not in names(race.SPECIFIED)


def test_pages_are_held_against_the_print():
    frame = pd.DataFrame({"query": [race.label(key) for key in queries.KEYS], "touched": range(1, 33), "read": 0, "seconds_1990": [float(n) for n in range(1, 33)]})
    assert "is 1.00 over 32 queries" in words.explained(frame)
    frame.loc[4, "seconds_1990"] = 500.0
    assert f"above what its pages let expect lies query {race.label('q5')}" in words.explained(frame)
    assert "touch 30 pages without an index" in words.substitution(frame) and "a factor of 1" in words.substitution(frame)
