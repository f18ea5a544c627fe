"""The chapter `hot`: what its experiments find on a server, and that its claims can fail."""

import pytest
from judging import changed_word, opened, word

from pgrerun.chapters.hot.experiments import builds, growth, side_effects, throughput
from pgrerun.chapters.hot.experiments.wal import AT_EVERY_VISIT, WITHOUT_ROOM
from pgrerun.chapters.hot.variants import (
    BRIN,
    FULL,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    load,
    run_in_server,
    run_pgbench,
    vacuum,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments.counters import counts
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages
from pgrerun.lab.relations.pgbench import ACCOUNTS, BRANCHES, TELLERS, Pgbench
from pgrerun.lab.server.builds import registered
from pgrerun.record import evidence, printed, rows, verdicts

BALANCED = (BRANCHES, TELLERS, ACCOUNTS)
# versions beside each tuple's first, heap-only ones, and chains that leave their page
ON_PAGES = """
SELECT count(*) FILTER (WHERE lp_flags = 1) - %s,
       count(*) FILTER (WHERE t_infomask2 & 32768 <> 0),
       count(*) FILTER (WHERE t_xmax <> '0' AND (t_ctid::text::point)[0] <> block)
FROM generate_series(0, pg_relation_size('accounts') / 8192 - 1) AS block,
     LATERAL heap_page_items(get_raw_page('accounts', block::int))
"""
TINY = {
    "pairs": 5,
    "clients": 2,
    "accounts": 300,
    "timed_accounts": 50,
    "rounds": 1,
    "thread_scale": 1,
}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("runs"), "hot", TINY) as found:
        yield found


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.bed.server


on_the_commit_before_hot = pytest.mark.skipif(
    builds.BEFORE not in registered(),
    reason="the build before-hot isn't registered here (`pgrerun releases add`)",
)


def found(chapter, name, **changed):
    return chapter.run(name, **changed).frame


# ---- what is counted, and that it can come out otherwise


@pytest.mark.parametrize(
    ("claim", "expected"),
    {
        "hot-006": "holds",
        "hot-007": "holds",
        "hot-010": "holds",
        "hot-017": "holds",
        "hot-018": "partly",
        "hot-019": "holds",
        "hot-025": "holds",
        "hot-026": "holds",
        "hot-027": "fixed",
        "hot-029": "fixed",
        "hot-033": "holds",
    }.items(),
)
def test_what_counts_say(chapter, claim, expected):
    assert changed_word(chapter, claim) == expected


def only(frame, **values):
    """The rows in which columns have these values."""
    return (frame[list(values)] == list(values.values())).all(axis=1)


def with_(where, **values):
    """A change of rows: where `where` selects them, columns get these values."""

    def change(frame):
        frame.loc[only(frame, **where) if where else slice(None), list(values)] = list(
            values.values()
        )
        return frame

    return change


BTREE = {"what": "a column in a B-tree"}
ALONE = {"variant": HOT, "old_snapshot": False}


def waited_for(frame):
    """A twentieth more of the samples waits where any visit may prune."""
    return with_({"pruned": AT_EVERY_VISIT}, content_lock=0.25)(frame.assign(content_lock=0.2))


CHANGED = [
    ("hot-006", {"fillfactors": lambda f: f.assign(room=0, at_once=0.0)}, "not so"),
    ("hot-007", {"cases": with_(BTREE, heap_only=100, same_page=0)}, "not so"),
    ("hot-025", {"cases": with_(BTREE, heap_only=100, same_page=0)}, "not so"),
    ("hot-010", {"long_transaction": lambda f: f.assign(chain=1)}, "partly"),
    # alone as long as beside the snapshot: at one look, and at all
    (
        "hot-010",
        {"long_transaction": lambda f: with_(ALONE | {"updates": 60}, chain=f["chain"].max())(f)},
        "holds",
    ),
    (
        "hot-010",
        {"long_transaction": lambda f: with_(ALONE, chain=f["chain"].max())(f)},
        "partly",
    ),
    ("hot-017", {"reading": lambda f: f.assign(lookup=3.0)}, "no effect"),
    ("hot-018", {"update_prunes": lambda f: f.assign(free=100)}, "holds"),
    ("hot-019", {"page_steps": lambda f: f.assign(state="normal")}, "partly"),
    ("hot-027", {"broken_chains": lambda f: f.assign(old_finds=False)}, "still there"),
    ("hot-027", {"broken_chains": lambda f: f.assign(warnings="spam")}, "still there"),
    ("hot-029", {"rewrites": lambda f: f.assign(old_sees=0)}, "still there"),
    ("hot-032", {"queue": lambda f: f.assign(jobs=20, jobs_pkey=5)}, "partly"),
    ("hot-033", {"stock_pgbench": lambda f: f.assign(inserted=0)}, "not so"),
    ("hot-011", {"select_prunes": lambda f: f.assign(waited=True)}, "holds"),
    ("hot-011", {"page_waits": waited_for}, "holds"),
    ("hot-011", {"page_waits": lambda f: f.assign(content_lock=0.2)}, "partly"),
    (
        "hot-011",
        {
            "select_prunes": lambda f: f.assign(hole_left=0),
            "page_waits": lambda f: f.assign(content_lock=0.2),
        },
        "not so",
    ),
]


@pytest.mark.parametrize(("claim", "changes", "expected"), CHANGED)
def test_other_rows_give_another_word(chapter, claim, changes, expected):
    assert changed_word(chapter, claim, **changes) == expected


def test_the_least_fillfactor_lets_any_visit_prune(chapter):
    prunings = found(chapter, "page_waits").groupby("pruned")["prunings"].median()
    assert prunings[AT_EVERY_VISIT] > 2 * prunings[WITHOUT_ROOM]


def test_a_queue_that_shrinks_as_the_thread_hoped_holds(chapter):
    grown = with_({"variant": UNPRUNED, "moment": "at the end"}, jobs=60)
    hoped = lambda frame: grown(frame.assign(jobs=20, jobs_pkey=5))
    assert changed_word(chapter, "hot-032", queue=hoped) == "holds"


# ---- what is timed


def timed(tps, waiting=0.9, data=11.0):
    """Rows of `throughput` from a throughput per block of each variant."""
    load = {"script": REDUCED, "waiting": waiting, "writing": 0.0, "data_over_pool": data}
    kept = {"comparison": 0, "disturbed": "", "left_out": False}
    made = [
        load | kept | {"variant": variant, "tps": float(value), "block": block}
        for variant, series in tps.items()
        for block, value in enumerate(series)
    ]
    return rows.frame(made, throughput.UNITS)


@pytest.mark.parametrize(
    ("fast", "pruned", "given", "expected"),
    [
        (200, 130, {}, "partly"),
        (200, 180, {}, "holds"),
        (200, 150, {"waiting": 0.1}, "not tested here"),
        (200, 150, {"data": 2.0}, "not tested here"),
        (200, 200, {}, "holds"),
        (200, 100, {}, "not so"),
    ],
)
def test_stable_sizes_explain_a_jump_only_where_the_work_waits_for_pages(
    chapter, fast, pruned, given, expected
):
    series = {HOT: fast, throughput.AGAIN: fast, NO_HOT: pruned, UNPRUNED: 100}
    wobbling = {name: [one * (1 + b / 1000) for b in range(7)] for name, one in series.items()}
    chapter.run("wal_by_part")
    database = chapter.database
    database.add("run", "hot", "throughput", timed(wobbling, **given), throughput.UNITS)
    try:
        judge, rule = verdicts.Judge("hot"), chapter.rules["hot-004"]
        found = evidence.judge(judge, rule, database, chapter.aside, {}).verdict
    finally:
        database.add("run", "hot", "throughput", timed({}), throughput.UNITS)
    assert found == expected


THREADS = printed.table("hot_throughput")["tps_including"]  # by run: script and server


def on_disk(hot, full_hot=1.0, before=1.0, full_before=1.0, **given):
    """Rows of `on_the_threads_disk` from shares of the printed throughputs."""
    shares = {
        (builds.BEFORE, REDUCED): (before, "reduced_head"),
        (builds.WITH, REDUCED): (hot, "reduced_hot"),
        (builds.BEFORE, FULL): (full_before, "full_head"),
        (builds.WITH, FULL): (full_hot, "full_hot"),
    }
    usual = {"request_ms": 0.2, "requests": 4.0, "busy": 0.9, "data_over_pool": 11.0}
    usual |= {"pool_over_small_tables": 9.0, "disturbed": "", "left_out": False} | given
    for (server, script), (share, run) in shares.items():
        for block in range(5):
            tps = share * THREADS[run] * (1 + block / 1000)
            yield usual | {"server": server, "script": script, "block": block, "tps": tps}


@pytest.mark.parametrize(
    ("hot", "given", "expected"),
    [
        (1.0, {}, "holds"),
        (0.7, {}, "weaker"),
        (1.3, {}, "stronger"),
        (0.5, {}, "no effect"),
        (0.4, {}, "reversed"),
        (1.0, {"busy": 0.3}, "not tested here"),
        (1.0, {"data_over_pool": 2.0}, "not tested here"),
        # twice as fast, and neither is what the thread had
        (0.5, {"before": 0.5}, "not tested here"),
        (2.0, {"before": 2.0}, "not tested here"),
    ],
)
def test_what_hot_gains_is_judged_on_the_threads_servers_and_on_a_disk_as_slow(
    hot, given, expected
):
    found = word("hot-001", "hot", on_the_threads_disk=on_disk(hot, **given))
    assert found == expected


@pytest.mark.parametrize(
    ("full_hot", "given", "expected"),
    [
        (1.0, {}, "holds"),
        (1.15, {}, "different now"),
        (0.8, {}, "different now"),
        # what HOT gains on the other script is another claim's
        (1.0, {"hot": 0.7}, "holds"),
        (1.15, {"hot": 0.7}, "different now"),
        # the set-up isn't the thread's: of what it printed before HOT one isn't reached
        (1.0, {"before": 0.7}, "not tested here"),
        (1.0, {"full_before": 1.3}, "not tested here"),
        (1.0, {"pool_over_small_tables": 2.0}, "not tested here"),
    ],
)
def test_the_whole_transaction_is_judged_in_the_threads_set_up(full_hot, given, expected):
    rows_ = on_disk(**{"hot": 1.0, "full_hot": full_hot} | given)
    assert word("hot-012", "hot", on_the_threads_disk=rows_) == expected


@pytest.mark.parametrize(
    ("name", "capability"),
    [("full_script", "timed_accounts = 20000"), ("pools", "larger relations")],
)
def test_what_is_too_small_to_tell_is_set_aside(chapter, name, capability):
    with pytest.raises(CannotMeasure) as lacking:
        list(chapter.bed.measure(chapter.experiments[name], {}))
    assert lacking.value.capability == capability


# ---- what the experiments do


def test_every_update_went_somewhere(chapter):
    cases = found(chapter, "cases").set_index("what")
    places = ["heap_only", "same_page", "other_page", "other_partition"]
    assert (cases[places].sum(axis=1) == 100).all()
    assert cases.loc["the partition key, to another partition", "other_partition"] == 100
    assert cases.loc["a full page, an old snapshot open", "other_page"] == 100


def test_model_and_measurement_agree(chapter):
    place = ["variant", "vacuumed", "updates"]
    both = found(chapter, "steady").merge(found(chapter, "computed"), on=place)
    assert len(both) == len(found(chapter, "steady")) == len(found(chapter, "computed"))
    for relation in ("accounts", "accounts_pkey"):
        assert ((both[f"{relation}_x"] - both[f"{relation}_y"]).abs() <= 1).all()


def test_sizes_are_seen_at_the_threads_updates_and_vacuums():
    assert growth.stops(1, UNPRUNED, True) == [
        (0.2, False, True),
        (0.4, False, True),
        (0.5, True, False),
        (0.6, False, True),
        (0.8, False, True),
        (1.0, True, True),
    ]
    assert not any(stop.vacuum for stop in growth.stops(1, HOT, False))


def ours(branches: int, accounts: int) -> Pgbench:
    return Pgbench(branches, accounts, prefix="")


def test_counters_agree_with_the_pages(server):
    few = ours(1, 300)
    server.extension("pageinspect")
    load(few, server)
    # an old snapshot keeps every version where it is, so that all can be found
    with server.connect() as connection, snapshot(server):
        run_in_server(connection, few, "update_shuffled", 400, 0, step=7919)
        counted = counts(connection, "accounts")
        on_pages = connection.execute(ON_PAGES, (few.accounts,)).fetchone()
    assert min(on_pages) > 0
    kinds = ("updated", "hot_updated", "newpage_updated")
    assert tuple(counted[kind] for kind in kinds) == on_pages


@pytest.mark.parametrize(("variant", "hot"), [(HOT, 40), (BRIN, 40), (NO_HOT, 0), (INDEXED, 0)])
def test_variants_take_hot_away_or_leave_it_in_every_table(server, variant, hot):
    few = ours(2, 100)
    with server.connect() as connection:
        load(few, connection, variant)
        before = pages(connection, "accounts")
        run_in_server(connection, few, FULL, 40, seed=1)
        each = {name: counts(connection, name)["hot_updated"] for name in BALANCED}
        assert each == dict.fromkeys(BALANCED, hot)
        assert pages(connection, "accounts") == before  # pruned in any case


def test_an_old_snapshot_keeps_versions_and_vacuum_as_before_hot_removes_them(server):
    few = ours(1, 500)
    load(few, server, UNPRUNED)
    dead = "SELECT count(*) FROM heap_page_items(get_raw_page('accounts', 0)) WHERE t_xmax <> '0'"
    server.extension("pageinspect")
    with server.connect() as connection, snapshot(server) as old:
        run_in_server(connection, few, "update_account", 200, seed=1)
        connection.execute("VACUUM accounts")
        assert connection.execute(dead).fetchone()[0] > 0
        vacuum(connection, "accounts", old)
        assert connection.execute(dead).fetchone()[0] == 0


@pytest.mark.parametrize("load_by", [run_pgbench, run_in_server])
@pytest.mark.parametrize(
    ("script", "tables"), [(REDUCED, {"accounts"}), (FULL, {"accounts", "tellers", "branches"})]
)
def test_what_runs_inside_the_server_does_what_pgbench_does(server, load_by, script, tables):
    few = ours(2, 300)
    load(few, server)
    total = "SELECT sum(delta), count(*), (SELECT sum(abalance) FROM accounts) FROM history"
    with server.connect() as connection:
        load_by(server if load_by is run_pgbench else connection, few, script, 120, seed=1)
        updated = {name: counts(connection, name)["updated"] for name in BALANCED}
        deltas, inserted, balance = connection.execute(total).fetchone()
    assert updated == {name: 120 * (name in tables) for name in BALANCED}
    assert inserted == 120 and deltas == balance > 120


# ---- the servers that the thread compared


def test_without_its_builds_it_says_how_they_are_registered(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CannotMeasure, match="releases add before-hot FOLDER"):
        next(builds.on_the_threads_servers(chapter.bed))


@pytest.mark.skipif(
    not {builds.BEFORE, builds.WITH} <= set(registered()),
    reason="the builds before-hot and hot aren't registered here (`pgrerun releases add`)",
)
def test_what_stands_in_for_the_server_before_hot_grows_as_that_did(chapter):
    rows_ = found(chapter, "on_the_threads_servers", accounts=2000)
    each = rows_.set_index(["server", "relation"])[["before", "after", "updated", "hot_updated"]]
    for relation in ("accounts", "accounts_pkey"):
        then, with_hot = each.loc[("before-hot", relation)], each.loc[("hot", relation)]
        assert then["after"] > then["before"] == with_hot["before"] == with_hot["after"]
        assert each.loc[("stand-in", relation)].tolist()[:3] == then.tolist()[:3]
        assert each.loc[("today", relation)].tolist() == with_hot.tolist()
    assert each.loc[("hot", "accounts"), "hot_updated"] == 1000


def reduced(relation, **grown):
    """Rows of `on_the_threads_servers` of one relation, from its pages before and after."""
    for server, (before, after) in grown.items():
        sizes = {"before": before, "after": after, "updated": 0, "hot_updated": 0}
        yield {"server": server.replace("_", "-"), "relation": relation, **sizes}


@pytest.mark.parametrize(
    ("claim", "relation", "hot", "before_hot", "expected"),
    [
        ("hot-002", "accounts", (157_895, 157_938), (157_895, 207_179), "holds"),  # as printed
        ("hot-002", "accounts", (10_000, 10_000), (10_000, 13_600), "holds"),
        ("hot-002", "accounts", (10_000, 10_010), (10_000, 13_600), "partly"),
        ("hot-002", "accounts", (10_000, 10_000), (10_000, 12_700), "partly"),
        ("hot-002", "accounts", (10_000, 12_700), (10_000, 12_700), "not so"),
        ("hot-003", "accounts_pkey", (19_709, 19_709), (19_709, 39_414), "holds"),  # as printed
        ("hot-003", "accounts_pkey", (19_709, 19_709), (19_709, 39_413), "partly"),
        ("hot-003", "accounts_pkey", (19_709, 19_710), (19_709, 39_414), "partly"),
        ("hot-003", "accounts_pkey", (200, 200), (200, 397), "holds"),
        ("hot-003", "accounts_pkey", (200, 300), (200, 300), "not so"),
    ],
)
def test_sizes_are_judged_on_the_two_commits(claim, relation, hot, before_hot, expected):
    """The table by the printed growth, its index by the pages that can split."""
    found = list(reduced(relation, hot=hot, before_hot=before_hot))
    assert word(claim, "hot", on_the_threads_servers=found) == expected


def over_chains(server, mark="as made", **looked_up):
    """A row of `broken_chains_then`, of an index that finds what it is asked for but as given."""
    usual = {"marked": False, "old_uses": True, "old_finds": True}
    return {"server": server, "mark": mark} | usual | looked_up


@pytest.mark.parametrize(
    ("as_made", "unmarked", "expected"),
    [
        ({"marked": True, "old_uses": False}, {"old_finds": False}, "holds"),
        ({"marked": True, "old_uses": False}, {}, "partly"),  # nothing is lost without the mark
        ({"marked": True, "old_finds": False}, {"old_finds": False}, "partly"),
        ({}, {}, "not so"),
    ],
)
def test_create_index_had_to_change_if_old_snapshots_miss_rows_without_its_mark(
    as_made, unmarked, expected
):
    found = [
        over_chains(builds.BEFORE),
        over_chains(builds.WITH, **as_made),
        over_chains(builds.WITH, side_effects.TAKEN_AWAY, **{"marked": True} | unmarked),
    ]
    assert word("hot-028", "hot", broken_chains_then=found) == expected


def grown(tellers, branches, key=(3, 0), chance=0.0, pairs=5):
    """Rows of `small_tables_by_clients` from the growth before HOT and with it.

    By chance the tables grow further in every second run on the commit before HOT, by that share.
    """
    for block in range(pairs):
        for at, server in enumerate((builds.BEFORE, builds.WITH)):
            times = 1 + chance * (block % 2) * (1 - at)
            sizes = {"tellers": tellers[at] * times, "branches": branches[at] * times}
            row = {"server": server, "block": block} | {n: round(v) for n, v in sizes.items()}
            row |= {"tellers_pkey": 0, "branches_pkey": key[at], "disturbed": "", "left_out": False}
            yield row | {"updated": 117_000, "hot_updated": 0}


@pytest.mark.parametrize(
    ("tellers", "branches", "given", "expected"),
    [
        ((2017, 87), (256, 66), {}, "holds"),
        ((300, 87), (256, 1), {}, "holds"),
        ((300, 87), (256, 0), {"chance": 0.5}, "holds"),
        ((300, 87), (60, 66), {}, "partly"),
        ((300, 300), (256, 256), {}, "no effect"),
        ((20, 87), (50, 66), {}, "reversed"),
        ((300, 290), (256, 250), {"chance": 0.5}, "inconclusive"),
        ((300, 87), (256, 66), {"pairs": 3}, "inconclusive"),
    ],
)
def test_the_growth_of_small_tables_is_judged_by_as_many_clients(
    tellers, branches, given, expected
):
    alone = [
        {"variant": variant, "relation": relation, "before": 1, "after": 1 + pages_}
        | {"updated": 9, "hot_updated": 0}
        for relation in ("tellers", "branches")
        for variant, pages_ in ((HOT, 7), (UNPRUNED, 7))
    ]
    then = list(grown(tellers, branches, **given))
    assert word("hot-013", "hot", small_tables_by_clients=then, small_tables=alone) == expected
    assert word("hot-013", "hot", small_tables=alone) == "not tested here"


@pytest.mark.parametrize(
    ("key", "expected"),
    [((3, 0), "holds"), ((3, 3), "partly"), ((0, 0), "partly"), ((0, 3), "not so")],
)
def test_the_index_of_branches_is_judged_on_the_two_commits(key, expected):
    then = list(grown((2017, 87), (256, 66), key))
    assert word("hot-014", "hot", small_tables_by_clients=then) == expected
    # once it didn't grow before HOT
    then[0]["branches_pkey"] = 3 - key[0]
    assert word("hot-014", "hot", small_tables_by_clients=then) == "inconclusive"


@pytest.mark.parametrize(
    ("grows", "vacuumed", "expected"),
    [
        (1.31, 1, "holds"),
        (1.08, 1, "holds"),
        (1.0, 1, "no effect"),
        (0.9, 1, "reversed"),
        (1.31, 0, "not tested here"),
    ],
)
def test_growth_is_judged_under_an_autovacuum_that_came(grows, vacuumed, expected):
    run = {"server": builds.BEFORE, "before": 10_000, "disturbed": "", "left_out": False}
    rows_ = [
        run | {"block": block, "after": round(10_000 * grows) + block, "vacuumed": 1}
        for block in range(5)
    ]
    rows_[3]["vacuumed"] = vacuumed  # in one of the runs
    assert word("hot-015", "hot", under_autovacuum=rows_) == expected


@on_the_commit_before_hot
def test_accounts_are_loaded_anew_for_each_run_under_autovacuum(chapter):
    each = found(chapter, "under_autovacuum", accounts=2000)
    assert len(each) == 5 and each["before"].nunique() == 1 and (each["after"] > 0).all()


def merlins(gain, transactions, pairs=5, **factors):
    """Rows of one of Merlin's comparisons, with these factors."""
    for block in range(pairs):
        for server, tps in ((builds.BEFORE, 100.0), (builds.WITH, 100.0 * gain)):
            measured = {"server": server, "block": block, "tps": tps * (1 + block / 1000)}
            measured |= {"hot_share": 0.5, "transactions": transactions, "disturbed": ""}
            yield factors | measured | {"left_out": False}


@pytest.mark.parametrize(
    ("claim", "clients", "gain", "expected"),
    [
        ("hot-022", 1, 1.0, "holds"),
        ("hot-022", 1, 1.2, "different now"),
        ("hot-023", 10, 0.95, "holds"),
        ("hot-023", 10, 1.2, "different now"),
    ],
)
def test_merlins_comparisons_are_judged_by_runs_as_long_as_his(claim, clients, gain, expected):
    for transactions, told in ((100_000, expected), (20_000, "not tested here")):
        found = merlins(gain, transactions, index="on abalance", clients=clients)
        assert word(claim, "hot", merlins_servers=found) == told


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ((2.05, 1.4, 1.0), "holds"),
        ((1.0, 1.1, 2.0), "holds"),
        ((3.0, 1.5, 1.0), "stronger"),
        ((1.5, 1.1, 1.0), "weaker"),
        ((1.0, 1.0, 1.02), "no effect"),
        ((0.8, 0.9, 0.7), "reversed"),
    ],
)
def test_ten_clients_without_the_index_are_judged_at_the_scale_that_gains_most(gains, expected):
    def swept_(transactions):
        for scale, gain in zip(builds.SCALES, gains, strict=True):
            yield from merlins(gain, transactions, scale=scale, clients=10, autovacuum="off")
        # what runs with autovacuum is another claim's
        yield from merlins(9.0, transactions, pairs=2, scale=1, clients=10, autovacuum="on")

    assert word("hot-024", "hot", merlins_setups=swept_(100_000)) == expected
    assert word("hot-024", "hot", merlins_setups=swept_(20_000)) == "not tested here"


def compacted(clustered, vacuumed):
    """Rows of either experiment: pages of accounts and its index after each command."""
    for command, (accounts, index) in (("CLUSTER", clustered), ("VACUUM FULL", vacuumed)):
        yield {"command": command, "accounts": accounts, "accounts_pkey": index}


@pytest.mark.parametrize(
    ("vacuumed", "better", "second_best"),
    [
        ((55, 30), "holds", "holds"),
        ((55, 12), "holds", "no effect"),
        ((55, 11), "not so", "no effect"),
        ((40, 11), "not so", "reversed"),
    ],
)
def test_compaction_is_judged_on_the_commit_before_hot(vacuumed, better, second_best):
    then = [row | {"loaded": 60} for row in compacted((55, 11), vacuumed)]
    other = list(compacted((55, 11), (99, 11)))  # today's server says something else
    tables = {"compaction_before_hot": then, "compaction": other}
    assert [word(one, "hot", **tables) for one in ("hot-030", "hot-031")] == [better, second_best]
    alone = [word(one, "hot", compaction=other) for one in ("hot-030", "hot-031")]
    assert alone == ["not tested here"] * 2


@on_the_commit_before_hot
def test_the_commit_before_hot_compacts_by_either_command(chapter):
    each = found(chapter, "compaction_before_hot").set_index("command")
    assert list(each.index) == list(side_effects.COMPACTING)
    # both keep every row, at the density of a table loaded anew or less
    assert (each["accounts"] >= found(chapter, "compaction")["accounts"].min()).all()


def swept(*gains, pairs=2, transactions=100_000):
    """Rows of `merlins_setups`: a set-up for each gain."""
    for scale, gain in enumerate(gains):
        setup = {"scale": scale, "clients": 1, "autovacuum": "off", "transactions": transactions}
        for block in range(max(pairs, 5 * (scale == 0))):
            for server, tps in ((builds.BEFORE, 100.0), (builds.WITH, 100.0 * gain)):
                measured = {"server": server, "tps": tps, "hot_share": 0.5, "block": block}
                yield setup | measured | {"disturbed": "", "left_out": False}


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([1.2] * 18 + [1.0] * 6, "holds"),
        ([1.2] * 17 + [1.0] * 7, "inconclusive"),
        ([1.6] * 20 + [1.2] * 4, "not so"),
        ([1.0] * 20 + [1.2] * 4, "not so"),
        # few within the range decide, whatever is open of those that gain at least so much
        ([1.0] * 12 + [1.6] * 10 + [1.2] * 2, "not so"),
        ([1.0] * 12 + [1.2] * 12, "inconclusive"),
        ([1.2] * 5, "inconclusive"),
        # as many as there are: all but one decide
        ([1.2] * 8 + [1.0], "holds"),
        ([1.0] * 8 + [1.2], "not so"),
    ],
)
def test_most_set_ups_are_surely_more_than_half_of_them(gains, expected):
    assert word("hot-021", "hot", merlins_setups=swept(*gains)) == expected
    short = swept(*gains, transactions=30_000)
    assert word("hot-021", "hot", merlins_setups=short) == "not tested here"


def test_a_set_up_that_ran_once_decides_nothing():
    once = swept(*[1.2] * 24, pairs=1)
    assert word("hot-021", "hot", merlins_setups=once) == "inconclusive"


GOOD = {"ended": False, "error": "", "committed": 5, "scanned": 5, "found": 5, "missed": 0}
MISSED = GOOD | {"found": 3, "missed": 2}
ENDED = {"ended": True, "error": "", "committed": 5}


@pytest.mark.parametrize(
    ("own", "before", "asserted", "expected"),
    [
        (GOOD, MISSED, ENDED, "holds"),
        (GOOD, GOOD, ENDED, "holds"),
        (GOOD, MISSED, GOOD, "holds"),
        (GOOD, GOOD, GOOD, "partly"),
        (MISSED, MISSED, ENDED, "partly"),
        (ENDED, GOOD, GOOD, "not so"),
    ],
)
def test_vacuum_full_had_to_change_if_only_its_own_finds_all_rows(own, before, asserted, expected):
    each = zip(side_effects.BUILDS, (own, before, asserted), strict=True)
    found = [
        {"server": server, "assertions": assertions, "chains": "updated once", **row}
        for (server, assertions), row in each
    ]
    assert word("hot-036", "hot", vacuum_full_of_before=found) == expected
