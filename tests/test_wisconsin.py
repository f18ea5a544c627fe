"""The Wisconsin chapter: queries at any size, contenders, experiments, and what is said of them."""

import pandas as pd
import pytest
from servers import small_chapter

from pgrerun.chapters.wisconsin import charts, contenders, evidence, experiments, queries, sentences
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.experiment import Block
from pgrerun.lab.ingres import INLINE, THREADED
from pgrerun.lab.quel import read, tree
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.relations.duck import Duck
from pgrerun.page import narrate
from pgrerun.record import claims, printed, statistics, verdicts
from pgrerun.record.verdicts import Verdict

SMALL = 1000


@pytest.fixture(scope="module")
def both(cluster):
    with contenders.PostgreSQL(cluster) as postgresql, contenders.DuckDB() as duckdb:
        for one in (postgresql, duckdb):
            one.load(SMALL)
        yield postgresql, duckdb


# ---- queries


def test_there_are_the_32_of_the_figure():
    assert (
        set(queries.KEYS)
        == set(printed.table("wisconsin_figure_3_11").index)
        <= set(queries.BY_KEY)
    )
    in_print = printed.table("wisconsin_figure_3_11").index
    assert {
        queries.BY_KEY[key].state
        for key in in_print
        if printed.table("wisconsin_figure_3_11")["index"][key] == "none"
    } == {"none"}


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
@pytest.mark.parametrize("block", [None, Block(0, 7, 0), Block(1, 8, 0), Block(-1, 9, 1)])
def test_a_variant_stays_within_the_relation(query, block):
    for n in (SMALL, 12_345):
        one = queries.instance(query, n, block)
        [statement] = read(one.text)
        constants = [int(node.text) for node in statement.nodes() if isinstance(node, tree.Number)]
        assert all(0 <= constant <= n + 1 for constant in constants)
        assert one == queries.instance(query, n, block)


def test_variants_alternate_and_differ():
    texts = {
        queries.instance(queries.BY_KEY["q2"], SMALL, Block(index, index, 0)).text
        for index in range(10)
    }
    assert len(texts) > 8 and {("tenk1" in text, "tenk2" in text) for text in texts} == {
        (True, False),
        (False, True),
    }


def test_the_specification_slips_are_mended():
    joined = queries.instance(queries.BY_KEY["q11"], SMALL).statement
    variables = {node.variable for node in joined.nodes() if isinstance(node, tree.Attribute)}
    assert variables == {"onek", "tenk1", "tenk2"}
    assert "unique1 < 100" in queries.instance(queries.BY_KEY["q15"], SMALL).text


def test_strings_count_in_the_queries_as_specified_and_where_relations_are_small():
    def lettered(n, block):
        return bool(queries.instance(queries.BY_KEY["q1"], n, block).answer.texts)

    assert lettered(queries.SPECIFIED, None) and lettered(SMALL, Block(0, 7, 0))
    assert not lettered(SMALL, Block(1, 7, 0)) and not lettered(queries.SPECIFIED, Block(0, 7, 0))


def test_the_letters_that_count_tell_strings_apart():
    columns = Wisconsin("t", queries.SPECIFIED).columns()

    def seen(name):
        return {tuple(text.decode()[at - 1] for at in queries.LETTERS) for text in columns[name]}

    assert [len(seen(name)) for name in ("stringu1", "stringu2", "string4")] == [
        queries.SPECIFIED,
        queries.SPECIFIED,
        4,
    ]


# ---- contenders


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_contenders_agree_and_leave_the_relations_as_they_were(both, query):
    tuples = {
        "q1": 10,
        "q2": 100,
        "q5": 10,
        "q6": 100,
        "q7": 1,
        "q8": 10,
        "q9": 100,
        "q10": 100,
        "q11": 100,
        "q18": 400,
        "q19": 1000,
        "q20": 1,
        "q21": 100,
    }
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one = queries.instance(query, SMALL, block)
        found = []
        for contender in both:
            before = contender.execute(
                "SELECT count(*), sum(unique1), sum(unique2), sum(fiftypercent) FROM tenk1_with"
            )
            assert contender.run(one) > 0
            found.append(contender.answer(one))
            contender.tidy(one)
            assert (
                contender.execute(
                    "SELECT count(*), sum(unique1), sum(unique2), sum(fiftypercent) FROM tenk1_with"
                )
                == before
            )
        assert found[0] == found[1]
        if query.key in tuples and query.key != "q18":
            assert found[0][0] == tuples[query.key]


@pytest.mark.parametrize("key", ["q1", "q7", "q11", "q19", "q22", "q31"])
def test_an_answer_given_away_has_the_checksum_of_the_engine(both, key):
    one = queries.instance(queries.BY_KEY[key], SMALL)
    for contender in both:
        contender.run(one)
        assert tuple(map(int, contender.execute(one.answer.sql)[0])) == contender.answer(one)
        contender.tidy(one)


def test_an_answer_depends_on_what_the_query_did(both):
    one = queries.instance(queries.BY_KEY["q31"], SMALL)
    untouched = both[0].answer(one)
    both[0].run(one)
    assert both[0].answer(one) != untouched
    both[0].tidy(one)
    assert both[0].answer(one) == untouched


def test_relations_are_loaded_once_for_a_size(cluster, both):
    def made():
        return both[0].execute("SELECT oid FROM pg_class WHERE relname = 'tenk1'")

    first = made()
    with contenders.PostgreSQL(cluster) as other:
        other.load(SMALL)
        assert made() == first
        other.load(2000)
        assert made() != first and other.execute("SELECT count(*) FROM bprime_clustered") == [
            (200,)
        ]
        other.load(SMALL)


def test_confinement_confines(cluster, both):
    with contenders.PostgreSQL(cluster, contenders.CONFINED) as confined:
        assert experiments.plan(confined, "q10").shape().startswith("Nested Loop")
        assert confined.execute("SHOW enable_hashjoin") == [("off",)]


@pytest.mark.parametrize(
    ("name", "node"),
    [
        (contenders.SEQUENTIAL, "Seq Scan"),
        (contenders.PLAIN, "Index Scan"),
        (contenders.BITMAP, "Bitmap Heap Scan"),
    ],
)
def test_a_scan_is_forced_whatever_the_servers_default(cluster, both, name, node):
    with contenders.PostgreSQL(cluster, name) as forced:
        set_by_name = set(contenders.SETTINGS[name])
        assert set_by_name == {"enable_seqscan", "enable_indexscan", "enable_bitmapscan"}
        assert experiments.plan(forced, "q6").shape().startswith(node)


def test_duckdb_leaves_nothing_behind(tmp_path):
    with Duck(tmp_path) as duck:
        duck.execute("CREATE TABLE t (a int4)")
        assert (
            duck.execute("SELECT count(*) FROM t") == [(0,)] and len(list(tmp_path.iterdir())) == 1
        )
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
def chapter(tmp_path):
    with small_chapter("wisconsin", tmp_path, repeats=3) as small:
        yield small


def test_a_race_keeps_a_time_for_each_contender_query_and_block(chapter):
    one, other, keys = Told("one"), Told("other"), ["q1", "q2", "q3"]
    competing, among = [one, other], queries.QUERIES[:3]
    experiments.race(chapter, experiments.REPORT, SMALL, competing, among)
    frame = evidence.times(chapter, "other", keys)
    assert frame.shape == (chapter.parameters.pairs, 3) and one.n == SMALL
    assert evidence.over(chapter, "one", "other", keys[:2]).n == chapter.parameters.pairs
    runs = one.runs
    experiments.race(chapter, experiments.REPORT, SMALL, competing, among)  # nothing is left to do
    assert one.runs == runs


def test_a_race_ends_where_answers_differ(chapter):
    competing, among = [Told("one"), Told("other", (2,))], queries.QUERIES[:3]
    with pytest.raises(
        RerunError, match="other gives another answer than one|one gives another answer than other"
    ):
        experiments.race(chapter, experiments.REPORT, SMALL, competing, among)


def test_what_was_not_raced_sets_its_claims_aside(chapter):
    reason = CannotMeasure("restart", "it is not ours")
    chapter.set_aside(reason, ["lai-028"])
    chapter.judge("lai-028", evidence.joins_without_an_index)
    [judgement] = chapter.evidence.judgements
    assert judgement.verdict is Verdict.NOT_TESTABLE
    for told in (sentences.noise, charts.joins, evidence.summaries):
        assert chapter.show(told) is None


@pytest.mark.parametrize(("before", "runs", "seconds"), [(0, 3, 0.02), (99, 1, 1.0)])
def test_short_queries_are_repeated_and_the_median_counts(chapter, before, runs, seconds):
    one = Told("one")
    one.runs = before
    experiments.race(chapter, experiments.REPORT, SMALL, [one], queries.QUERIES[:1], pairs=1)
    [[observed]] = evidence.times(chapter, "one", ["q1"]).to_numpy()
    assert observed == pytest.approx(seconds)
    assert one.runs - before == runs == one.tidied


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    small = {"largest": 20_000, "sizes": 3, "pairs": 5}
    with small_chapter("wisconsin", tmp_path_factory.mktemp("runs"), **small) as chapter:
        yield chapter


@pytest.mark.parametrize(
    ("count", "columns", "rows"),
    [
        (experiments.answers, ["query", "tuples", "checksum"], len(queries.QUERIES)),
        (experiments.chosen_plans, ["query", "as_it_chooses", "nested_loops_only"], 32),
        (experiments.pairs_compared, ["query", "rejected", "joined"], 4),
        (experiments.pages_touched, ["query", "scan", "pages", "tuples"], 13),
        (experiments.changes, ["query", "found_by", "pages", "wal_records"], 8),
        (experiments.bytes_per_tuple, ["part", "bytes"], 4),
    ],
)
def test_what_is_counted_comes_as_promised(measured, count, columns, rows):
    frame = measured.attempt(count)
    assert list(frame) == columns and len(frame) == rows
    if count is not experiments.changes:  # what is on a page before a change decides what it logs
        assert count(measured).equals(frame)


def test_scans_are_counted_in_instructions_and_leave_no_relation(measured):
    found = measured.attempt(experiments.instructions)
    assert set(found.index) == {*experiments.SCANS, experiments.SEEN, experiments.CHECKED}
    assert found.min() > 0 and evidence.checking_versions(found) > 1
    with measured.server.connect() as connection:
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relname IN ('tmp', 'seen', 'checked')"
        ).fetchall()
    assert left == []


# ---- evidence


def judged(id, facts):
    return verdicts.judge(claims.ledger()[id], facts).verdict


@pytest.mark.parametrize(("with_index", "denied"), [(1.0, True), (2.0, False), (None, None)])
def test_won_here_asks_only_queries_whose_plan_changes(chapter, monkeypatch, with_index, denied):
    def over(chapter, one, other, keys):
        if keys[0] in evidence.WITHOUT_INDEX:
            return statistics.exact(50.0)
        if with_index is None:
            return statistics.Interval(1.25, 1.1, 1.4, n=7)
        return statistics.exact(with_index)

    monkeypatch.setattr(evidence, "over", over)
    chosen = pd.DataFrame(
        [(queries.label(key), "Hash Join", "Nested Loop") for key in evidence.JOINS],
        columns=["query", "as_it_chooses", "nested_loops_only"],
    )
    assert list(evidence.won_here(chapter, chosen).values()) == [True, denied]


def test_what_sums_up_the_printed_column_is_recomputed_from_it():
    only, all_of_them = evidence.only_circumstance().values()
    assert only and not all_of_them.value  # queries 9 and 10, and not 11
    assert judged("lai-029", evidence.only_circumstance()) is Verdict.HOLDS
    assert judged("lai-030", evidence.changes_over_retrievals()) is Verdict.HOLDS


@pytest.mark.parametrize(
    ("pages", "word"),
    [
        ((300, 3, 300, 300), Verdict.GONE),
        ((300, 300, 300, 400), Verdict.HOLDS),
        ((300, 3, 300, 200), Verdict.REVERSED),
    ],
)
def test_what_an_index_does_for_min_is_read_off_pages(pages, word):
    labels = [queries.label(f"q{number}") for number in (20, 23, 21, 24)]
    facts = evidence.min_by_index(pd.DataFrame({"query": labels, "pages": pages}))
    assert judged("lai-040", facts) is word


@pytest.mark.parametrize(("key", "word"), [(1, Verdict.REVERSED), (12, Verdict.GONE)])
def test_an_update_is_judged_by_what_it_touches_and_logs(key, word):
    labels = [queries.label("q32"), queries.label("q31")]
    frame = pd.DataFrame({"query": labels, "pages": [12, 12], "wal_records": [12, 12]})
    frame.loc[0, ["pages", "wal_records"]] = key
    assert judged("lai-039", evidence.of_changes(frame, "q32", "q31")) is word


@pytest.mark.parametrize(
    ("plain", "less", "word"), [(1.9, False, Verdict.HOLDS), (0.5, True, Verdict.GONE)]
)
def test_a_tenth_by_index_is_judged_by_the_scan_of_1990(chapter, monkeypatch, plain, less, word):
    monkeypatch.setattr(type(chapter), "ratio", lambda *given: statistics.exact(plain))
    assert judged("lai-032", evidence.tenth_by_index(chapter)) is word
    counted = pd.Series({contenders.SEQUENTIAL: 100, contenders.PLAIN: 100 * plain})
    assert list(evidence.in_instructions(counted).values()) == [not less]


def test_a_server_without_memory_waits_for_reads(measured):
    measured.attempt(experiments.two_machines)
    assert 0 < evidence.waiting(measured).estimate < 1
    assert evidence.without_memory(measured, ["q5"], ["q3"]).estimate > 0
    assert len(evidence.tenth_by_index(measured)) == 1


# ---- what is said


def test_three_summaries_of_the_print():
    found = evidence.about_three().values()
    assert [part.value for part in found] == [True, False, False]
    assert [part.essential for part in found] == [True, False, False]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((3.0, 3.5, 1.2), "all above one"),
        ((0.3, 0.5, 0.9), "all below one"),
        ((0.3, 1.5, 0.9), "makes the winner"),
    ],
)
def test_summaries_are_compared(values, said):
    frame = pd.DataFrame([("a over b", 10_000, *values)], columns=["pair", "tuples", "x", "y", "z"])
    sentence = sentences.decided_by_the_summary(frame)
    assert said in sentence and isinstance(sentence, narrate.Sentence)


def test_the_first_chart_says_who_wins_at_which_size():
    first, *_ = printed.wisconsin.summaries()
    frame = pd.DataFrame(
        [("POSTGRES over INGRES, 1990", 10_000, 3.0)]
        + [("PostgreSQL over DuckDB", n, ratio) for n, ratio in ((10_000, 0.5), (600_000, 2.5))],
        columns=["pair", "tuples", first],
    )
    assert sentences.who_wins(frame).endswith(
        "at 10,000 tuples PostgreSQL takes 0.50 times as long as DuckDB and at 600,000 tuples"
        " PostgreSQL takes 2.50 times as long as DuckDB."
    )


@pytest.mark.parametrize(("records", "said"), [(5, "no room"), (1, "found room")])
def test_an_update_without_an_index_is_told_as_it_was(records, said):
    labels = [queries.label("q29"), queries.label("plain")]
    frame = pd.DataFrame({"query": labels, "wal_records": [4, records]})
    assert said in sentences.unindexed_update(frame)


class Elsewhere:
    """A chapter on somebody's server, of which it is known or not where it runs."""

    borrowed = True

    def __init__(self, server, seen):
        self.server, self.name, self._seen = self, server, seen

    def can(self, capability):
        return self._seen and capability == "processes"


def test_a_server_that_may_be_elsewhere_is_said_to(chapter):
    for here in (chapter, Elsewhere("theirs", seen=True)):
        assert sentences.elsewhere(here) is None
    unknown = Elsewhere("theirs", seen=False)
    assert "theirs may run on another" in sentences.elsewhere(unknown)


def test_sizes_begin_with_the_reports(tmp_path):
    with small_chapter("wisconsin", tmp_path, largest=1_000_000, sizes=3) as chapter:
        assert experiments.all_sizes(chapter) == [10_000, 100_000, 1_000_000]


def test_the_print_disagrees_with_its_prose_where_we_say():
    where = " / ".join(printed.disagreements("wisconsin")["where"])
    assert "joinCselAselB" in where and "median" in where and "geometric" not in where


# ---- the miniature of INGRES


@pytest.fixture(scope="module")
def ingres():
    with contenders.Miniature("", THREADED) as one:
        one.load(SMALL)
        yield one


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_the_miniature_answers_for_itself_and_as_the_others(both, ingres, query):
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one, found = queries.instance(query, SMALL, block), []
        for contender in (both[1], ingres):
            assert contender.run(one) > 0
            found.append(contender.answer(one))
            contender.tidy(one)
        assert found[0] == found[1] and found[0][0] > 0


def test_the_miniatures_answer_depends_on_what_it_did(ingres):
    stored = queries.instance(queries.BY_KEY["q1"], SMALL)
    ingres.run(stored)
    right = ingres.answer(stored)
    ingres.base.run("delete tmp where tmp.unique2 = 3")
    assert ingres.answer(stored)[0] == right[0] - 1
    ingres.tidy(stored)


def test_the_miniatures_pages_are_those_that_its_structures_imply(ingres):
    def touched(key):
        return ingres.pages(queries.instance(queries.BY_KEY[key], SMALL))[0]

    pages = ingres.base.relations["tenk1"].pages
    assert touched("q1") == pages >= SMALL // 4  # an insert may have made it a page longer
    # a nested loop scans the other relation once for each tuple of the first, which it has read,
    # stored and read again
    assert touched("q10") == ingres.base.relations["bprime"].pages * 2 + SMALL // 10 * pages
    assert touched("q7") == 3 and touched("q12") < touched("q9") / 50


def test_a_miniature_leaves_no_files(base):
    before = list(base.iterdir())
    with contenders.Miniature("", INLINE) as one:
        one.load(100)
    assert list(base.iterdir()) == before


def test_pages_are_held_against_the_print():
    frame = pd.DataFrame(
        {
            "query": [queries.label(key) for key in queries.KEYS],
            "touched": range(1, 33),
            "read": 0,
            "seconds_1990": [float(n) for n in range(1, 33)],
        }
    )
    assert "is 1.00 over 32 queries" in sentences.explained(frame)
    assert "seconds is 1.00, where one" in charts.pages_and_seconds(frame).caption
    frame.loc[4, "seconds_1990"] = 500.0
    number, name = queries.label("q5").split(": ")
    longest = f"query {number} ({name}) took the longest for its pages"
    assert longest in sentences.explained(frame)
    assert "touch 30 pages without an index" in sentences.substitution(
        frame
    ) and "a factor of 1" in sentences.substitution(frame)


def test_whether_an_index_scan_is_worth_it_is_told_by_its_interval():
    faster, open_ = statistics.Interval(0.5, 0.4, 0.6, n=9), statistics.Interval(1, 0.9, 1.1, n=9)
    rows = [
        charts.charts.row(charts.PLAIN, "printed", 3.0, panel="1 %"),
        charts.charts.row(charts.PLAIN, "measured", faster, panel="1 %"),
        charts.charts.row(charts.BITMAP, "measured", open_, panel="1 %"),
    ]
    said = charts.worth(pd.DataFrame(rows))
    assert "for 1 %, 0.50 [0.40, 0.60] by a plain index scan (faster) and 1.00" in said
    assert said.endswith("(not resolved).") and charts.worth(pd.DataFrame(rows[:1])) == ""
