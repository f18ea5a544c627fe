"""The TP1 chapter's own verbs: how long an observation is, what a page is, and what a first transaction reads."""

from types import SimpleNamespace

import pandas as pd
import pytest

from pgrerun.chapters.tp1 import accounting, catalogs, ladder
from pgrerun.experiment import Block
from pgrerun.instruments.counters import Counters
from pgrerun.server import Cluster


@pytest.fixture
def chapter():
    """What these verbs need of a chapter."""
    return SimpleNamespace(parameters=SimpleNamespace(scale=1, milliseconds=100, clients=2, counted=10))


@pytest.mark.parametrize(("tps", "transactions"), [(1000.0, 50), (1.0, ladder.Length.TRIED)])
def test_an_observations_length_is_tried_out_once_for_each_arm(chapter, monkeypatch, tps, transactions):
    tried = []
    monkeypatch.setattr(ladder.pgbench, "run", lambda server, **load: tried.append(load) or SimpleNamespace(tps=tps))
    length = ladder.Length(chapter)
    assert [length(arm, None, 2, script="x") for arm in ("a", "a", "b")] == [transactions] * 3
    assert tried == [{"clients": 2, "transactions": ladder.Length.TRIED, "script": "x"}] * 2


def test_relations_are_loaded_once_for_a_block_and_only_what_is_timed_restarts(chapter, monkeypatch):
    done = []
    class Server:
        def restart(self):
            done.append("restart")

        def pin(self, cpus):
            pass

    server = Server()
    monkeypatch.setattr(ladder, "pool", lambda chapter, rung: server)
    monkeypatch.setattr(ladder, "relations", lambda chapter: SimpleNamespace(load=lambda cluster: done.append("load")))
    for restart in (True, False):
        fresh = ladder.Fresh(chapter, restart=restart)
        assert [fresh(ladder.RUNGS[0], Block(block, 1, 0)) for block in (0, 0, 1)] == [True, False, True]
    assert done == ["restart", "load", "restart", "load", "load", "load"]


def test_pages_are_told_apart_by_where_they_lie():
    found = pd.DataFrame(
        [("account", "heap", 3), ("account", "heap", 9), ("account", "heap", 5), ("account_index", "btree root", 1), ("pg_class", "heap", 0), ("account", "vm", 0)],
        columns=["relation", "kind", "block"],
    )
    kinds = accounting._kinds(found, {"account": 10, "account_index": 5})
    assert list(kinds) == [accounting.OLD_VERSION, accounting.LAST_PAGE, accounting.ROOMY, accounting.ROOT, "catalog", "visibility map"]


def test_pages_are_those_of_the_relations_as_they_are_now(cluster, chapter):
    ladder.relations(chapter).load(cluster)
    facts = ladder.relations(chapter).facts(cluster).set_index("relation")["pages"]
    assert accounting._pages(cluster) == facts.to_dict()


def test_a_first_transaction_reads_what_the_second_has_in_its_caches(cluster, chapter):
    ladder.relations(chapter).load(cluster)
    with catalogs.Watched(cluster) as watched:
        found = [catalogs._first(chapter, watched, Block(0, 7, 0)) | catalogs._second(chapter, watched, Block(0, 7, 0)) for _ in range(2)]
    assert found[0]["first: catalog pages read"] > 10 > found[0]["second: catalog pages fetched"] == 0
    assert found[1]["first: pages read"] > found[1]["second: pages read"] > 0  # the pool was emptied before either


def test_every_backend_has_run_before_pages_are_counted(chapter, monkeypatch):
    chapter.parameters.clients = chapter.parameters.counted = accounting.FILLING + 3
    with Cluster(settings={"shared_buffers": "128kB", "max_connections": 20}) as tiny, Counters(tiny) as counter:
        monkeypatch.setattr(accounting, "pool", lambda chapter, rung: tiny)
        ladder.relations(chapter).load(tiny)
        counter.idle_noise()
        found = accounting._account(chapter, lambda cluster: counter, ladder.named(ladder.TOGETHER), Block(0, 7, 0))
    assert found["reads of account"] > 0 == found["reads of catalogs"]


def test_a_ratio_of_counts_is_the_least_of_the_blocks():
    fetched = pd.DataFrame({f"{catalogs.BY_SCAN}, {catalogs.GROWN}": [900, 880], f"{catalogs.BY_INDEX}, {catalogs.GROWN}": [300, 400]})
    tables = SimpleNamespace(table=lambda name, metric: fetched)
    assert catalogs.scan_over_index(tables) == 2.2
    tables.table = lambda name, metric: pd.DataFrame()
    assert catalogs.scan_over_index(tables) is None


def test_what_is_stocked_already_is_left_as_it_is(cluster, chapter, monkeypatch):
    monkeypatch.setattr(chapter, "cluster", lambda **settings: cluster, raising=False)
    ladder.relations(chapter).load(cluster)
    with cluster.connect() as connection:
        connection.execute("DELETE FROM branch")
        assert catalogs._stocked(chapter, ladder.POOL_TODAY) is cluster
        assert connection.execute("SELECT count(*) FROM branch").fetchone() == (0,)


def test_of_somebodys_server_no_machine_is_told(cluster, chapter):
    chapter.run = SimpleNamespace(environment={
        "server": {"version": "18.6"},
        "machine": {"cpus_usable": 2, "cpu_model": "Z80", "memory_bytes": 1e9, "fdatasync_8k_seconds": 0.01},
    })  # fmt: skip
    chapter.server = cluster
    for borrowed, said in ((True, ["2 (Z80), where this page was made", "", "", "1,024 pages"]), (False, ["2 (Z80); the ladder uses one", "1,000 MB", "100 flushed writes per second", "16, then 48 pages"])):
        chapter.borrowed = borrowed
        told = ladder.apparatus(chapter).frame.set_index("")["this run"]
        assert told[["processors", "memory", "disk", "buffer pool"]].tolist() == said


def test_stable_memory_is_a_setting_of_the_sessions(cluster, chapter, monkeypatch):
    monkeypatch.setattr(ladder, "pool", lambda chapter, rung: cluster)
    monkeypatch.setattr(ladder.DebitCredit, "script", lambda tp1, **how: "INSERT INTO waited VALUES (current_setting('synchronous_commit'), current_schema());\n")
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE waited (how text, schema text)")
        try:
            for name, how in ((ladder.STABLE, "off"), (ladder.LOGGED, "on")):
                ladder._climb(chapter, ladder.Length(chapter), ladder.named(name), Block(0, 1, 0))
                assert connection.execute("SELECT DISTINCT how, schema FROM waited").fetchall() == [(how, cluster.schema)]
                connection.execute("TRUNCATE waited")
        finally:
            connection.execute("DROP TABLE waited")
