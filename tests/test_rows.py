"""Rows from an experiment to Parquet and back, and what a record of rows refuses."""

import pytest

from pgrerun.record import rows, runs, sequential
from pgrerun.record.database import Database

UNITS = {"tps": "transactions/s", "plan": rows.TEXT, "hot": rows.TRUTH}


def block(index, variant, tps, **more):
    how = {"comparison": 0, "block": index, "looks": "7,15", "disturbed": "", "left_out": False}
    return {"variant": variant, "tps": tps, **how, **more}


def finished(records, table, name="mine"):
    with runs.Run.open(name, "hot", key="k", environment={}) as run:
        for row in table:
            run.append("throughput", rows.check("throughput", row, UNITS))
        run.complete("throughput", {"units": UNITS})
    return runs.load(name, "hot")


def test_rows_come_back_as_they_were_yielded(records):
    given = [
        {"variant": "HOT", "clients": 4, "tps": 12.5, "plan": "Seq Scan", "hot": True},
        {"variant": "no HOT", "clients": None, "tps": 3.0, "plan": "Index Scan", "hot": False},
    ]
    found = finished(records, given).tables["hot"]["throughput"]
    back = found[["variant", "clients", "tps", "plan", "hot"]].astype(object)
    assert back.where(back.notna(), None).to_dict("records") == given


def test_the_share_of_the_error_that_a_look_has_stands_with_each_row(records):
    many = [block(n, v, 1.0 + n) for n in range(15) for v in ("a", "b")]
    found = finished(records, many).tables["hot"]["throughput"]
    assert set(found["alpha"]) == {sequential.share([7, 15], 15)} != {1.0}
    few = finished(records, many[:14], "early").tables["hot"]["throughput"]
    assert set(few["alpha"]) == {sequential.share([7, 15], 7)}


def test_disturbed_rows_and_blocks_left_out_are_kept_and_do_not_count(records):
    given = [block(0, "a", 1.0), block(0, "b", -1.0, disturbed="tps = -1", left_out=True)]
    given += [block(1, "a", 2.0), block(1, "b", 4.0)]
    record = finished(records, given)
    assert len(record.tables["hot"]["throughput"]) == 4
    with Database("hot") as database:
        database.add_record("run", record)
        assert database.query("SELECT block, tps FROM throughput")["block"].tolist() == [1, 1]
        assert len(database.query("FROM throughput_all")) == 4
    assert set(record.observations["block"]) == {1}


@pytest.mark.parametrize(
    "row",
    [
        {"variant": "a"},
        {"variant": "a", "tps": "fast"},
        {"variant": "a", "tps": float("nan")},
        {"variant": ["a"], "tps": 1.0},
        {"a b": 1, "tps": 1.0},
    ],
    ids=["no metric", "text for a number", "not finite", "list", "no name"],
)
def test_what_cannot_be_a_row_is_refused(row):
    with pytest.raises(ValueError, match="throughput"):
        rows.check("throughput", row, UNITS)


def test_queries_read_no_files(records, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with Database("hot") as database, pytest.raises(Exception, match=r"disabled|allowed"):
        database.query(f"SELECT * FROM read_csv('{tmp_path}/secret.csv')")
