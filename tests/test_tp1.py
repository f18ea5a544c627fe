"""The chapter `tp1`: how long an observation is, what a page is, what a first transaction reads."""

from dataclasses import replace

import pandas as pd
import pytest

from pgrerun.chapters import tp1
from pgrerun.chapters.tp1 import evidence, sentences, variants
from pgrerun.chapters.tp1.experiments import catalogs, commit, heap, page_counts, throughput
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.server import Cluster
from pgrerun.record import claims, statistics, verdicts
from pgrerun.record.verdicts import Verdict
from tests.servers import small_chapter

TINY = {"pairs": 5, "milliseconds": 50, "counted": 10, "clients": 2}
BLOCK = Block(0, 7, 0)


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    with small_chapter("tp1", tmp_path_factory.mktemp("runs"), **TINY) as chapter:
        yield chapter


@pytest.fixture
def other_chapter(tmp_path):
    """One whose record a test may change."""
    with small_chapter("tp1", tmp_path, **TINY) as chapter:
        yield chapter


# ---- throughput


@pytest.mark.parametrize(("tps", "transactions"), [(1000.0, 25), (1.0, throughput.TRIED)])
def test_an_observations_length_is_tried_out_once_for_each_variant(
    chapter, monkeypatch, tps, transactions
):
    ran = []

    def run(server, **load):
        ran.append(load["transactions"])
        return pgbench.PgbenchResult(tps, load["transactions"], *[0] * 6, None, "")

    monkeypatch.setattr(pgbench, "run", run)
    driver = throughput.Driver(chapter)
    for variant in ("a", "a", "b"):
        found = driver.drive(variant, chapter.server, script="x")
        assert found.keys() == throughput.UNITS.keys() and found["throughput"] == tps
    tried = throughput.TRIED
    assert ran == [tried, transactions, transactions, tried, transactions]


def test_relations_are_loaded_once_for_a_block_and_only_what_is_timed_restarts(
    chapter, monkeypatch
):
    done = []
    monkeypatch.setattr(Cluster, "restart", lambda server: done.append("restart"))
    monkeypatch.setattr(variants.DebitCredit, "load", lambda *given: done.append("load"))
    for restart in (True, False):
        fresh = throughput.Fresh(chapter, restart=restart)
        blocks = (Block(number, 1, 0) for number in (0, 0, 1))
        prepared = [fresh.prepare(variants.ALONE, block) for block in blocks]
        assert prepared == [True, False, True]
    assert done == ["restart", "load", "restart", "load", "load", "load"]


def test_stable_memory_is_a_setting_of_the_sessions(chapter, monkeypatch):
    settings = "current_setting('synchronous_commit'), current_schema()"
    script = f"INSERT INTO waited VALUES ({settings});\n"
    monkeypatch.setattr(type(tp1.SQL), "script", lambda sql, name: script)
    cluster = variants.pooled(chapter, variants.POOL_ENLARGED)
    variants.relations(chapter).load(cluster)
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE waited (how text, schema text)")
        for name, how in ((variants.STABLE, "off"), (variants.LOGGED, "on")):
            throughput.climb(chapter, throughput.Driver(chapter), name, BLOCK)
            found = connection.execute("SELECT DISTINCT how, schema FROM waited").fetchall()
            assert found == [(how, cluster.schema)]
            connection.execute("TRUNCATE waited")
        connection.execute("DROP TABLE waited")


def test_every_rung_runs_a_script_that_does_what_its_name_says():
    scripts = {name: tp1.SQL.script(rung.script) for name, rung in variants.RUNGS.items()}
    flushed = {name for name, script in scripts.items() if "\nCHECKPOINT;" in script}
    probed = {name for name, script in scripts.items() if "ctid" in script}
    assert flushed == variants.RUNGS.keys() - {
        variants.LOGGED,
        variants.STABLE,
        variants.LONE,
        variants.PAIR,
    }
    assert probed == flushed - {variants.APPEND}


def test_all_scripts_are_the_same_transaction():
    def work(name):
        lines = tp1.SQL.script(name).split("BEGIN;\n")[1].splitlines()
        return [line for line in lines if "ctid" not in line and line != "CHECKPOINT;"]

    names = ("transaction", "flushing", "probing")
    assert all(work(name) == work("transaction") for name in names)


# ---- pages


def test_pages_are_told_apart_by_where_they_lie():
    touched = pd.DataFrame(
        [
            ("account", "heap", 3),
            ("account", "heap", 9),
            ("account", "heap", 5),
            ("account_index", "btree root", 1),
            ("pg_class", "heap", 0),
            ("account", "vm", 0),
        ],
        columns=["relation", "kind", "block"],
    )
    assert list(page_counts.kinds_of(touched, {"account": 10, "account_index": 5})) == [
        page_counts.OLD_VERSION,
        page_counts.LAST_PAGE,
        page_counts.ROOMY,
        page_counts.ROOT,
        page_counts.CATALOG,
        "visibility map",
    ]


def test_every_touched_page_is_counted_by_kind_and_by_place(other_chapter):
    page_counts.touched_pages(other_chapter)
    for names, joint in ((page_counts.KINDS, ": "), (page_counts.PLACES, " of ")):
        total = sum(other_chapter.table("touched", f"read{joint}{name}") for name in names)
        assert total[page_counts.ONE].between(10, variants.POOL_ENLARGED).all()
    least = evidence.bound_touched(other_chapter).frame.set_index("kind of page")["least"]
    assert least[page_counts.LEAF] == least[page_counts.OLD_VERSION] == 3


def test_every_backend_has_run_before_pages_are_counted(tmp_path):
    clients = page_counts.FILLING + 3
    with (
        small_chapter("tp1", tmp_path, **TINY | {"clients": clients}) as chapter,
        Cluster(settings={"shared_buffers": "128kB", "max_connections": 20}) as tiny,
        Counters(tiny) as counter,
    ):
        variants.relations(chapter).load(tiny)
        counter.idle_noise()
        found = page_counts.per_transaction(chapter, variants.TOGETHER, tiny, counter, BLOCK)
    assert found["reads of account"] > 0 == found["reads of catalogs"]
    assert found.keys() == page_counts.UNITS.keys()


# ---- catalogs


def test_a_first_transaction_reads_what_the_second_has_in_its_caches(chapter):
    cluster = catalogs.stocked(chapter, variants.POOL_TODAY)
    with catalogs.watched(cluster) as on:
        for _ in range(2):
            first = catalogs.first(chapter, on, {}, BLOCK)
            second = catalogs.second(chapter, on, BLOCK)
            assert first.keys() | second.keys() == catalogs.UNITS.keys()
            assert first["first: catalog pages read"] > 10
            assert second["second: catalog pages fetched"] == 0
            # the pool was emptied before either
            assert first["first: pages read"] > second["second: pages read"] > 0


def test_what_is_stocked_already_is_left_as_it_is(chapter):
    cluster = catalogs.stocked(chapter, variants.POOL_TODAY)
    with cluster.connect() as connection:
        connection.execute("DELETE FROM branch")
        assert catalogs.stocked(chapter, variants.POOL_TODAY) is cluster
        assert connection.execute("SELECT count(*) FROM branch").fetchone() == (0,)


def test_a_ratio_of_counts_is_the_least_of_the_blocks(other_chapter):
    fetched = "first: catalog pages fetched"
    counts = {catalogs.BY_SCAN: iter([900, 880]), catalogs.BY_INDEX: iter([300, 400])}
    compared = [
        Variant(
            f"{access}, {catalogs.GROWN}",
            lambda block, following=following: {fetched: next(following)},
        )
        for access, following in counts.items()
    ]
    other_chapter.compare("catalog access", compared, {fetched: ""}, pairs=2, warmup=0)
    assert evidence.scan_over_index(other_chapter) == 2.2


def test_an_attribute_is_found_by_either_index(chapter):
    found = catalogs.attribute_lookup(chapter)
    assert list(found["access"]) == ["hash", "btree"] and (found["heap pages"] == 1).all()
    # no first transaction was measured: what a backend has cached isn't told
    [pages] = evidence.accesses_by_hash(chapter, found).values()
    assert pages == 1 + found.at["hash", "index pages"]


def test_catalogs_are_sorted_by_their_size(chapter):
    found = catalogs.catalog_sizes(chapter)
    assert found["pages"].is_monotonic_decreasing and "pg_class" in set(found["catalog"])
    assert "pg_class_oid_index" not in set(found["catalog"])
    assert evidence.catalog_pages(found)["all system catalogs"] == found["pages"].sum()


# ---- heap pages, commit


def test_a_replaced_tuple_stays_beside_the_new_one(chapter):
    found = heap.versions_of_one_tuple(chapter)
    assert all(evidence.replaced_by_insertion(found).values())
    overwritten = found.assign(ended_by=False)[found["when"] == "before"]
    after = overwritten.assign(when="after", made_by=True)
    facts = evidence.replaced_by_insertion(pd.concat([overwritten, after]))
    assert not any(facts.values())


def test_appended_versions_share_their_pages(chapter):
    found = heap.appended_versions(chapter)
    assert found["tuples"].sum() > 100 and len(found) < 5


def test_full_pages_have_no_room_and_visited_ones_do(chapter):
    found = heap.pages_with_room(chapter).set_index(["transactions", "relation"])
    share = found["once_pruned"] / found["pages"]
    assert share[0].max() < 0.1 and share[3000].min() > 0.5


@pytest.mark.parametrize(
    ("roomy", "value", "opposite"), [(1, True, False), (9, False, True), (5, False, False)]
)
def test_a_look_fails_where_most_pages_are_full(chapter, monkeypatch, roomy, value, opposite):
    monkeypatch.setattr(type(chapter), "ratio", lambda *given: statistics.exact(2.0))
    row = (variants.REPORT_BATCH, "account", 10, roomy)
    room = pd.DataFrame([row], columns=["transactions", "relation", "pages", "with_room"])
    failing, read = evidence.probe_facts(chapter, room).values()
    assert (failing.value, failing.opposite) == (value, opposite)
    assert read.value is True and not read.essential


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ({"accesses": 0.8, "wal": 0.8, "growth": 0.3}, Verdict.REVERSED),
        ({"accesses": 1.2, "wal": 1.2, "growth": 0.95}, Verdict.HOLDS),
        ({"accesses": 1.2, "wal": 1.2, "growth": 0.3}, Verdict.WEAKER),
    ],
)
def test_reuse_that_costs_nothing_and_saves_space_reverses_the_claim(
    chapter, monkeypatch, ratios, word
):
    def ratio(self, experiment, metric, variant, base):
        return statistics.exact(ratios.get(metric, 1.0))

    monkeypatch.setattr(type(chapter), "ratio", ratio)
    claim = claims.ledger()["lai-055"].model_copy(update={"basis": claims.Basis.COUNTED})
    assert verdicts.judge(claim, evidence.reuse_facts(chapter)).verdict is word


def test_a_crash_loses_nothing_and_what_was_undecided_is_not_seen(chapter):
    found = commit.crash(chapter, transactions=20)
    assert found.committed == found.kept == 20 and found.balanced
    assert found.uncommitted_on_disk == found.uncommitted_left == found.former_visible > 0
    assert found.uncommitted_visible == 0
    assert not any(evidence.flush_facts(found).values())
    table = evidence.recovery_seen(found).set_index("finding")["value"]
    assert table["history tuples after recovery"] == 20


def test_wal_holds_more_than_transaction_status(chapter):
    written = commit.wal_by_kind(chapter, transactions=20)
    recovery = commit.Recovery(20, 20, True, 0, 1000, 1000, 0, 1000)
    left, unseen, status = evidence.undo_facts(recovery, written).values()
    assert left and unseen and status == verdicts.supporting(False)
    undone = replace(recovery, uncommitted_left=0)
    left, unseen, _ = evidence.undo_facts(undone, written).values()
    assert not left and unseen
    assert written["bytes"].is_monotonic_decreasing


# ---- the page


def test_of_somebodys_server_no_machine_is_told(chapter, monkeypatch):
    machine = {
        "cpus_usable": 2,
        "cpu_model": "Z80",
        "memory_bytes": 1e9,
        "fdatasync_8k_seconds": 0.01,
    }
    monkeypatch.setitem(chapter.run.environment, "machine", machine)
    server = chapter.server
    with server.connect() as connection:
        [own] = connection.execute(
            "SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers'"
        ).fetchone()
    known = [
        "2 (Z80); the ladder uses one",
        "1,000 MB",
        "100 flushed writes per second",
        "16, then 48 pages",
    ]
    unknown = ["2 (Z80), where this page was made", "", "", f"{own:,d} pages"]
    for borrowed, said in ((None, known), (server, unknown)):
        monkeypatch.setattr(chapter, "guest", borrowed)
        told = variants.apparatus(chapter).frame.set_index("")["this run"]
        assert told[["processors", "memory", "disk", "buffer pool"]].tolist() == said


def test_the_rungs_differ_as_their_table_says(chapter):
    frame = variants.rungs(chapter).frame.set_index("rung")
    assert frame.loc[variants.ALONE, "backends"] == 1
    assert frame.loc[variants.TOGETHER, "backends"] == TINY["clients"]
    assert frame.loc[variants.STABLE, "settings"] == "synchronous_commit = off"
    assert set(frame["script"]) == {"probing.pgbench", "flushing.pgbench", "transaction.pgbench"}


def test_the_simulation_is_told_by_its_number_of_backends():
    names = list(variants.printed_ladder()["name"])
    last = variants.STABLE

    def simulated(several: float, one: float) -> pd.DataFrame:
        rows = [(names[0], 1, 0.0), (variants.TOGETHER, 2, 0.1), (last, 2, several), (last, 1, one)]
        return pd.DataFrame(rows, columns=["name", "backends", "off"])

    said = sentences.simulation(simulated(0.14, -0.16))
    assert "10% to 14% above with 2 backends and 16% below with 1 backend." in said
    assert "What the simulation leaves out" in said
    said = sentences.simulation(simulated(-0.14, 0.02))
    assert "from 14% below to 10% above with 2 backends and 2% above with 1 backend." in said
    assert "What the simulation leaves out" not in said
