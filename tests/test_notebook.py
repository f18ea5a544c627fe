"""A chapter whose experiments yield rows: measured, resumed, shown from a record, run in part."""

import json
import math
import re
import shlex

import pytest
from bs4 import BeautifulSoup

from pgrerun import notebook, parameters, registry
from pgrerun.errors import ParameterError
from pgrerun.lab.testbed import Testbed, experiment, experiments_of
from pgrerun.page import charts, declared
from pgrerun.record import claims, evidence, rows, runs, verdicts
from pgrerun.record.database import Database, NotMeasured
from pgrerun.record.statistics import Interval

CHAPTER = "uuid_keys"
CLAIMS = ("uuidkeys-001", "uuidkeys-002")
WORDS = charts.Words("How large?", "An index.", "sizes")


def opened(**given):
    return notebook.Notebook(
        CHAPTER, parameters.chapter_parameters(CHAPTER, {"rows": 2000} | given)
    )


class Killed(BaseException):
    pass


def stopped(chapter):
    """Leave a run as one that is taken up again."""
    chapter.record.release()
    chapter.leave()


def test_a_run_is_resumed_after_a_kill_and_shown_without_a_server(records, monkeypatch):
    chapter, measure = opened(), Testbed.measure

    def killed(bed, *wanted):
        for number, row in enumerate(measure(bed, *wanted)):
            if number == 5:
                raise Killed
            yield row

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Testbed, "measure", killed)
        chapter.run("insert")
    before = chapter.record.rows("insert")
    stopped(chapter)

    chapter = opened()
    rows = chapter.run("insert")
    assert len(before) == 5 and chapter.record.rows("insert")[:5] == before
    assert rows.frame.groupby("keys").size().to_dict() == {"sequential": 7, "random": 7}
    drawn = chapter.chart("uuid-keys").spec()
    stopped(chapter)

    # it is taken up again with another rule for one of the two claims
    ours = verdicts.rule_text
    changed = lambda claim: ours(claim) + ("!" if claim.id == CLAIMS[0] else "")
    monkeypatch.setattr(verdicts, "rule_text", changed)
    chapter = opened()
    chapter.run("insert")
    judged = [chapter.judge(claim) for claim in CLAIMS]
    assert [one.stale_rule for one in judged] == [True, False]
    chapter.close()

    monkeypatch.setattr(notebook, "open_server", None)
    monkeypatch.setattr(Testbed, "__init__", None)  # nothing is started or measured
    shown = notebook.Notebook(CHAPTER, chapter.parameters, record=str(records / "ci" / CHAPTER))
    assert shown.run("insert").frame.equals(rows.frame)
    assert shown.chart("uuid-keys").spec() == drawn
    assert [shown.judge(claim).stale_rule for claim in CLAIMS] == [True, False]
    assert [shown.judge(claim).verdict for claim in CLAIMS] == [one.verdict for one in judged]
    assert verdicts.STALE in shown.verdicts(CLAIMS[0])._repr_html_()
    shown.close()


def test_a_record_without_the_rows_says_so_and_judges_nothing(records):
    with runs.Run.open("mine", CHAPTER, key="k", environment={"machine": {"cpus": 2}}):
        pass
    shown = notebook.Notebook(
        CHAPTER, parameters.chapter_parameters(CHAPTER, {}), record=str(records / "mine" / CHAPTER)
    )
    assert shown.run("insert") is None
    assert shown.judge("uuidkeys-001").evidence is None
    shown.close()


def test_rows_of_before_a_metric_leave_a_claim_aside_and_the_others_judged(records):
    """A record of an older commit ended at the first claim that asked it for a newer column."""
    with runs.Run.open("old", CHAPTER, key="k", environment={"machine": {"cpus": 2}}) as record:
        for block in range(5):
            for keys, pages in (("random", 9), ("sequential", 6)):
                record.append("insert", {"keys": keys, "block": block, "index_pages": pages})
        record.complete("insert", {"units": {"index_pages": "pages"}})
    shown = notebook.Notebook(
        CHAPTER, parameters.chapter_parameters(CHAPTER, {}), record=str(records / "old" / CHAPTER)
    )
    known, aside = map(shown.judge, CLAIMS)
    assert known.evidence is not None and aside.evidence is None
    assert "measured before wal_per_key was recorded; measure it again" in aside.remarks
    shown.close()


@pytest.mark.parametrize("own", [True, False])
def test_rows_that_are_the_published_runs_are_said_to_be(records, own):
    """A table of the published run stood unmarked below the reason why this run has none."""
    environment = {"machine": {"cpus": 2}}
    for run in (runs.PUBLISHED, "mine"):
        with runs.Run.open(run, CHAPTER, key="k", environment=environment) as record:
            if own or run == runs.PUBLISHED:
                record.append("insert", {"keys": "random", "block": 0, "index_pages": 7})
                record.complete("insert", {"units": {"index_pages": "pages"}})
    shown = notebook.Notebook(
        CHAPTER, parameters.chapter_parameters(CHAPTER, {}), record=str(records / "mine" / CHAPTER)
    )
    query = "FROM insert SELECT keys AS label, index_pages AS value, 'measured' AS kind"
    drawn = shown.draw(lambda frame: charts.compare(frame, WORDS, charts.Axis("size")), query)
    for caption in (shown.table(query, "Pages").caption, drawn.caption):
        assert (notebook.AS_PUBLISHED in caption) is not own
    shown.close()


def test_a_finding_of_which_nothing_was_measured_shows_nothing(records):
    """Pages of a run without old builds showed the two quotes of an empty text, eleven of them."""
    with runs.Run.open("mine", "since_when", key="k", environment={"machine": {"cpus": 2}}):
        pass
    given = parameters.chapter_parameters("since_when", {})
    shown = notebook.Notebook("since_when", given, record=str(records / "mine" / "since_when"))
    assert shown.found("faster") is None
    shown.close()


def test_unknown_names_are_refused_with_the_nearest(records):
    chapter = opened()
    with pytest.raises(ParameterError, match="did you mean insert"):
        chapter.run("inserts")
    with pytest.raises(ParameterError, match="no argument 'row'"):
        chapter.run("insert", row=3)
    with pytest.raises(ParameterError, match="did you mean uuid-keys"):
        chapter.chart("uuid-key")
    chapter.leave()


def test_beside_rows_stands_what_asks_their_run_and_no_row_is_told_as_none(
    records, monkeypatch, capsys
):
    """The command named the published run and the default parameters, whoever had measured, and
    nothing came where a sentence had announced a table.
    """
    monkeypatch.setenv("PGRERUN_RUN", "mine")
    chapter = opened(seed=7)
    told = BeautifulSoup(chapter.run("insert")._repr_html_(), "html.parser").find_all("pre")
    commands = next(one.get_text() for one in told if "pgrerun run" in one.get_text())
    again, asks = map(shlex.split, commands.splitlines())
    assert {"rows=2000", "seed=7"} <= set(again) and "pairs=7" not in again
    assert {"mine", f"FROM run.{CHAPTER}.insert"} <= set(asks)
    assert chapter.table("FROM insert WHERE keys = 'none of these'", "Keys of a kind") is None
    assert "Keys of a kind: none." in capsys.readouterr().out
    chapter.leave()


def test_what_an_experiment_goes_on_from_is_measured_before_it(records):
    @experiment(units={"double": ""}, after=["insert"])
    def doubled(bed):
        for row in bed.rows_of("insert"):
            yield {"keys": row["keys"], "block": row["block"], "double": 2 * row["index_pages"]}

    chapter = opened()
    chapter.experiments = {**chapter.experiments, "doubled": doubled}
    chapter.record.append("doubled", {"keys": "left by a killed run", "block": 0, "double": 1})
    found = chapter.run("doubled").frame
    assert len(found) == len(chapter.run("insert").frame) > 0
    assert set(found["keys"]) == {"sequential", "random"}
    chapter.leave()


@pytest.mark.parametrize("against, blocks", [("merge joins, as then", 15), ("probes", 7), ("", 15)])
def test_what_all_others_are_compared_with_may_have_a_comma_in_its_name(records, against, blocks):
    """It was looked for between commas, found nowhere, and the comparison ended at once."""
    times = {"probes": 1.0, "hashes": 9.0, "merge joins, as then": 9.0}

    @experiment(units={"time": "s"})
    def planted(bed):
        def measure(block, plan):
            # only merge joins waver about what hashes take, so far below what probes differ by
            wavers = 1 + 0.2 * (-1) ** block.index if plan.startswith("merge") else 1
            return {"time": times[plan] * wavers}

        yield from bed.compare(measure, {"plan": list(times)}, against=against, warmup=0)

    chapter = opened(pairs=15)
    chapter.experiments = {**chapter.experiments, "planted": planted}
    assert chapter.run("planted").frame["block"].nunique() == blocks
    chapter.leave()


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_what_was_found_has_its_times_once_and_no_markup(chapter):
    """A page said "3.2 times times", another "3.069 as fast", and a third showed two asterisks."""
    known = claims.ledger()
    for name, entry in declared.findings_of(parameters.folder(chapter)).entries.items():
        for text in (text for text in entry.values() if isinstance(text, str)):
            assert not re.search(r"[*`]", text), name
            if name in known and known[name].relative_to:
                assert "{found} times" not in text, name
            elif name in known:
                assert not re.search(r"{found} (as|the|what)\b", text), name


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Interval(2.0, 1.5, 2.5, 7), True),
        (Interval(2.0, -math.inf, math.inf, 1), True),  # a single value, told without an interval
        (Interval(2.0, 0.0, math.inf, 1), True),  # a single pair, as at profile ci
        (Interval(2.0, 0.0, math.inf, 5), False),
        (Interval(2.0, 0.0, math.inf, 0), False),  # some of it disturbed
        (Interval(math.nan, -math.inf, math.inf, 0), False),
    ],
)
def test_a_value_that_may_be_anything_is_in_no_sentence(found, told):
    """Sorting text was said to be "1.596 [0, ∞] times as fast" with sort support."""
    values = declared.filled({"ratio": "a / b"}, lambda _: found)
    assert bool(declared.said("It takes {ratio} times as long.", values)) is told


def test_a_fact_may_be_undecided_and_a_query_without_rows_is_in_no_sentence():
    """On a machine without builds sentences had "undecided" where an aggregate was NULL."""
    asked = {"fact": "a < b", "number": "SELECT max(a) FROM t WHERE b"}
    assert declared.filled(asked, lambda _: None) == {"fact": "undecided"}


@pytest.mark.parametrize(
    "number, outcome, title",
    [
        (2, "SELECT CASE WHEN 2 > 1 THEN 'yes' END", "Twice, that is 2"),
        (1, "SELECT CASE WHEN 1 > 1 THEN 'yes' END", "How often?"),  # no title for that outcome
        (1, "missing.tps > 1", "How often?"),  # what would decide wasn't measured
        (3, "", "Found: 3"),
    ],
)
def test_a_title_states_what_was_found_and_asks_where_it_is_open(number, outcome, title):
    chart = declared.Chart(
        name="c",
        form="compare",
        query=f"SELECT 'a' AS label, {number} AS value",
        question="How often?",
        outcome=outcome,
        titles={"yes": "Twice, that is {number}", "found": "Found: {number}"},
        shows="It is {number}.",
        values={"number": f"SELECT {number}"},
        axis={"quantity": "times"},
    )
    with Database("uuid_keys") as database:
        found = chart.figure(database, lambda claim: "")
    assert found.question == title and found.caption == f"It is {number}."


@pytest.mark.parametrize("other", [0, 1])
def test_the_published_run_is_drawn_once_on_its_own_page(other):
    """Charts of two chapters showed it twice: the same rows had come in another order."""
    chart = declared.Chart(
        name="c",
        form="observations",
        query="SELECT keys AS label, block, index_pages AS value FROM insert",
        question="How many?",
        shows="So many.",
        axis={"quantity": "pages"},
    )
    units = {"index_pages": "pages"}
    found = [{"keys": "random", "block": n, "index_pages": n * 0.1 + 1} for n in range(9)]
    published = [*found[:0:-1], found[0] | {"index_pages": 1.0 + other}]
    with Database("uuid_keys") as database:
        for run, kept in (("run", found), ("published", published)):
            database.add(run, "uuid_keys", "insert", rows.frame(kept, units), units)
        drawn = chart.figure(database, lambda claim: "").spec()
    assert ("published run" in json.dumps(drawn)) is bool(other)


def test_a_published_run_of_other_columns_leaves_a_chart_to_this_run():
    """A run of Explorations ended at the first chart that asked the published rows for a column
    which they didn't have yet.
    """
    text, units = "SELECT keys AS label, index_pages AS value FROM insert", {"index_pages": "pages"}
    with Database("uuid_keys") as database:
        for run, factor in (("run", "keys"), ("published", "key_type")):
            kept = rows.frame([{factor: "random", "index_pages": 1}], units)
            database.add(run, "uuid_keys", "insert", kept, units)
        assert list(database.query(text)["label"]) == ["random"]
        with pytest.raises(NotMeasured, match="keys") as missing:
            database.query(text, "published")
        assert missing.value.table == "insert"
        with pytest.raises(ParameterError, match="kyes"):
            database.query(text.replace("keys", "kyes"))


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_every_chart_says_what_it_shows_with_values_of_its_chapters_experiments(chapter):
    drawn = declared.charts_of(parameters.folder(chapter)).values()
    assert [one.name for one in drawn if not one.shows] == []
    with Database(chapter) as database:
        texts = [text.partition(" | ")[0] for one in drawn for text in one.values.values()]
        texts += [one.outcome for one in drawn if one.outcome]
        asked = [evidence.experiments_in(text, database) for text in texts]
    assert set().union(*asked) <= set(experiments_of(chapter))


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_every_claim_is_judged_in_the_notebook_and_every_table_that_it_asks_is_yielded(chapter):
    for found in registry.chains(chapter):
        assert found.section, f"{found.claim.id} is judged nowhere"
        asks = found.experiments or "printed." in found.rule
        assert asks or not found.rule, f"the rule of {found.claim.id} asks nothing"
    folder = parameters.folder(chapter)
    drawn = declared.charts_of(folder).values()
    queries = filter(None, (text for one in drawn for text in (one.query, one.simulated)))
    with Database(chapter) as database:
        asked = [evidence.tables_of(rule, database) for rule in evidence.rules(folder).values()]
        asked += [database.tables_in(text) for text in queries]
    assert set().union(*asked) <= set(experiments_of(chapter))
