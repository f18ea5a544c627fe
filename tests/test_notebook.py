"""A chapter whose experiments yield rows: measured, resumed, shown from a record, run in part."""

import os

import pandas as pd
import pytest

from pgrerun import notebook, parameters, registry
from pgrerun.errors import CannotMeasure, ParameterError
from pgrerun.lab.testbed import Testbed, experiment
from pgrerun.notebook import Notebook
from pgrerun.page import declared
from pgrerun.record import runs, verdicts

CHAPTER = "uuid_keys"


@pytest.fixture
def records(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.delenv(notebook.RECORD, raising=False)
    return tmp_path


def opened(**given):
    return Notebook(CHAPTER, parameters.chapter_parameters(CHAPTER, {"rows": 2000} | given))


class Killed(BaseException):
    pass


def test_a_run_is_measured_resumed_after_a_kill_and_shown_without_a_server(records, monkeypatch):
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
    chapter.record.release()
    chapter.leave()
    assert len(before) == 5

    chapter = opened()
    rows = chapter.run("insert")
    assert chapter.record.rows("insert")[:5] == before
    assert rows.frame.groupby("keys").size().to_dict() == {"sequential": 7, "random": 7}
    words = repr(chapter.verdicts("uuidkeys-001", "uuidkeys-002"))
    drawn = chapter.chart("uuid-keys").spec()
    chapter.close()

    monkeypatch.setattr(notebook, "open_server", None)
    monkeypatch.setattr(Testbed, "__init__", None)  # nothing is started or measured
    shown = Notebook(CHAPTER, chapter.parameters, record=str(records / "ci" / CHAPTER))
    assert shown.run("insert").frame.equals(rows.frame)
    assert repr(shown.verdicts("uuidkeys-001", "uuidkeys-002")) == words
    assert shown.chart("uuid-keys").spec() == drawn
    shown.close()


def test_a_rule_that_changed_after_the_rows_were_measured_is_marked(records, monkeypatch):
    chapter = opened()
    chapter.run("insert")
    assert not chapter.judge("uuidkeys-001").stale_rule
    chapter.record.release()
    chapter.leave()
    # the run is taken up again with another rule for one of the two claims
    ours = verdicts.rule_text
    other = lambda claim: ours(claim) + ("!" if claim.id == "uuidkeys-001" else "")
    monkeypatch.setattr(verdicts, "rule_text", other)
    chapter = opened()
    chapter.run("insert")
    judged = {one: chapter.judge(one) for one in ("uuidkeys-001", "uuidkeys-002")}
    assert judged["uuidkeys-001"].stale_rule and not judged["uuidkeys-002"].stale_rule
    chapter.close()
    shown = Notebook(CHAPTER, chapter.parameters, record=str(records / "ci" / CHAPTER))
    shown.run("insert")
    assert shown.judge("uuidkeys-001").stale_rule
    assert verdicts.STALE in shown.verdicts("uuidkeys-001")._repr_html_()


def test_a_record_without_the_rows_says_so_and_judges_nothing(records):
    with runs.Run.open("mine", CHAPTER, key="k", environment={"machine": {"cpus": 2}}):
        pass
    shown = Notebook(
        CHAPTER, parameters.chapter_parameters(CHAPTER, {}), record=str(records / "mine" / CHAPTER)
    )
    shown.run("insert")
    assert shown.judge("uuidkeys-001").evidence is None


def test_unknown_names_are_refused_with_the_nearest(records):
    chapter = opened()
    try:
        with pytest.raises(ParameterError, match="did you mean insert"):
            chapter.run("inserts")
        with pytest.raises(ParameterError, match="no argument 'row'"):
            chapter.run("insert", row=3)
        with pytest.raises(ParameterError, match="did you mean uuid-keys"):
            chapter.chart("uuid-key")
    finally:
        chapter.leave()


def test_an_experiment_that_cannot_run_sets_its_claims_aside(records, monkeypatch):
    def missing(bed, *_):
        raise CannotMeasure("checkpoint", "it may not checkpoint")
        yield

    monkeypatch.setattr(Testbed, "measure", missing)
    chapter = opened()
    chapter.run("insert")
    assert chapter.judge("uuidkeys-001").capability == "checkpoint"
    chapter.judge("uuidkeys-002")
    chapter.close()
    assert runs.load("ci", CHAPTER).about[CHAPTER]["insert"]["reason"] == "it may not checkpoint"


def test_only_what_is_asked_for_is_measured(records, monkeypatch):
    monkeypatch.setitem(os.environ, parameters.ONLY, "another")
    chapter = opened()
    chapter.run("insert")
    chapter.close()
    assert "insert" not in runs.load("ci", CHAPTER).tables[CHAPTER]


def test_what_an_experiment_goes_on_from_is_measured_before_it(records, monkeypatch):
    @experiment(units={"double": ""}, after=["insert"])
    def doubled(bed):
        for row in bed.rows_of("insert"):
            yield {"keys": row["keys"], "block": row["block"], "double": 2 * row["index_pages"]}

    monkeypatch.setitem(os.environ, parameters.ONLY, "doubled")
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


def test_a_chart_shows_what_was_counted_beside_what_was_repeated():
    chart = declared.Chart(name="c", form="compare", question="?", axis={})
    rows = [("counted", 3.0, None)] + [("timed", 1.0 + n / 10, n) for n in range(7)]
    frame = pd.DataFrame(rows, columns=["label", "value", "block"]).assign(alpha=1.0)
    found = chart._summed(frame, "measured", 0).set_index("label")
    assert found.at["counted", "value"] == 3 and pd.isna(found.at["counted", "low"])
    assert found.at["timed", "low"] < found.at["timed", "value"] == 1.3


def test_the_chain_of_a_claim_is_whole():
    found = registry.chain("uuidkeys-001")
    assert found.experiments == ("insert",) and found.charts == ("uuid-keys",)
    assert found.section == "The experiment" and "holds" in found.sentences


def with_rows():
    return parameters.chapters()


@pytest.mark.parametrize("chapter", with_rows())
def test_every_claim_is_judged_in_the_notebook_and_every_table_that_it_asks_is_yielded(chapter):
    from pgrerun.lab.testbed import experiments_of

    for found in registry.chains(chapter):
        assert found.section, f"{found.claim.id} is judged nowhere"
        if found.rule:
            asks = found.experiments or "printed." in found.rule
            assert asks, f"the rule of {found.claim.id} asks nothing"
    known = set(experiments_of(chapter))
    from pgrerun.page import declared
    from pgrerun.record import evidence
    from pgrerun.record.database import Database

    folder = parameters.folder(chapter)
    with Database(chapter) as database:
        asked = [evidence.tables_of(rule, database) for rule in evidence.rules(folder).values()] + [
            database.tables_in(text)
            for one in declared.charts_of(folder).values()
            for text in (one.query, one.simulated)
            if text
        ]
    assert set().union(*asked) <= known


def test_an_experiment_is_called_by_its_function():
    @experiment(units={"n": ""})
    def twice(bed):
        yield {"n": 1}

    assert twice.name == "twice" and list(twice(None)) == [{"n": 1}]
