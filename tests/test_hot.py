"""The chapter `hot`: what its experiments find on a server, and that its claims can fail."""

import pytest
from judging import changed_word, opened

from pgrerun.chapters.hot.experiments import builds, growth, throughput
from pgrerun.chapters.hot.variants import (
    BRIN,
    FULL,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    UPDATES,
    load,
    run_in_server,
    run_pgbench,
    updates,
    vacuum,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments.counters import counts
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages
from pgrerun.lab.relations.pgbench import ACCOUNTS, BRANCHES, TELLERS, Pgbench
from pgrerun.lab.server.builds import registered
from pgrerun.page import declared
from pgrerun.record import claims, evidence, rows, verdicts

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


def found(chapter, name, **changed):
    return chapter.run(name, **changed).frame


# ---- what is counted, and that it can come out otherwise


@pytest.mark.parametrize(
    ("claim", "expected"),
    {
        "hot-002": "holds",
        "hot-003": "holds",
        "hot-006": "holds",
        "hot-007": "holds",
        "hot-010": "holds",
        "hot-013": "stronger",
        "hot-014": "holds",
        "hot-017": "holds",
        "hot-018": "partly",
        "hot-019": "holds",
        "hot-025": "holds",
        "hot-026": "holds",
        "hot-027": "fixed",
        "hot-028": "holds",
        "hot-029": "fixed",
        "hot-030": "not so",
        "hot-031": "no effect",
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


def kept_sizes(frame):
    return frame.assign(after=frame["before"])


BTREE = {"what": "a column in a B-tree"}
CHANGED = [
    ("hot-002", {"sizes": kept_sizes}, "partly"),
    ("hot-003", {"sizes": kept_sizes}, "partly"),
    ("hot-006", {"fillfactors": lambda f: f.assign(room=0, at_once=0.0)}, "not so"),
    ("hot-007", {"cases": with_(BTREE, heap_only=100, same_page=0)}, "not so"),
    ("hot-025", {"cases": with_(BTREE, heap_only=100, same_page=0)}, "not so"),
    ("hot-010", {"long_transaction": lambda f: f.assign(chain=1)}, "partly"),
    ("hot-013", {"small_tables": lambda f: f.assign(after=f["before"] + 5)}, "no effect"),
    (
        "hot-014",
        {"small_tables": lambda f: f.assign(after=f["before"] + 5)},
        "partly",
    ),
    ("hot-015", {"steady": lambda f: f.assign(accounts=10)}, "no effect"),
    ("hot-017", {"reading": lambda f: f.assign(lookup=3.0)}, "no effect"),
    ("hot-018", {"update_prunes": lambda f: f.assign(free=100)}, "holds"),
    ("hot-019", {"page_steps": lambda f: f.assign(state="normal")}, "partly"),
    ("hot-027", {"broken_chains": lambda f: f.assign(old_finds=False)}, "still there"),
    ("hot-027", {"broken_chains": lambda f: f.assign(warnings="spam")}, "still there"),
    ("hot-028", {"broken_chains": lambda f: f.assign(marked=False)}, "partly"),
    ("hot-029", {"rewrites": lambda f: f.assign(old_sees=0)}, "still there"),
    ("hot-030", {"compaction": with_({"command": "VACUUM FULL"}, accounts=99)}, "holds"),
    ("hot-031", {"compaction": with_({"command": "VACUUM FULL"}, accounts=99)}, "holds"),
    ("hot-032", {"queue": lambda f: f.assign(jobs=20, jobs_pkey=5)}, "partly"),
    ("hot-033", {"stock_pgbench": lambda f: f.assign(inserted=0)}, "not so"),
    ("hot-011", {"select_prunes": lambda f: f.assign(waited=True)}, "holds"),
    ("hot-011", {"select_prunes": lambda f: f.assign(hole_left=0)}, "not so"),
]


@pytest.mark.parametrize(("claim", "changes", "expected"), CHANGED)
def test_other_rows_give_another_word(chapter, claim, changes, expected):
    assert changed_word(chapter, claim, **changes) == expected


def test_a_queue_that_shrinks_as_the_thread_hoped_holds(chapter):
    def hoped(frame):
        grown = only(frame, variant=UNPRUNED, moment="at the end")
        frame = frame.assign(jobs=20, jobs_pkey=5)
        frame.loc[grown, "jobs"] = 60
        return frame

    assert changed_word(chapter, "hot-032", queue=hoped) == "holds"


# ---- what is timed


def timed(tps, waiting=0.9, data=11.0):
    """Rows of `throughput` from a throughput per block of each variant."""
    made = [
        {
            "script": REDUCED,
            "variant": variant,
            "tps": float(value),
            "waiting": waiting,
            "writing": 0.0,
            "data_over_pool": data,
            "comparison": 0,
            "block": block,
            "disturbed": "",
            "left_out": False,
        }
        for variant, series in tps.items()
        for block, value in enumerate(series)
    ]
    return rows.frame(made, throughput.UNITS)


@pytest.mark.parametrize(
    ("given", "hot", "jump"),
    [
        ({}, "holds", "partly"),
        ({"waiting": 0.1}, "not tested here", "not tested here"),
        ({"data": 2.0}, "not tested here", "not tested here"),
        ({"pruned": 200}, "holds", "holds"),
        ({"hot": 150}, "weaker", "holds"),
        ({"hot": 100, "pruned": 80}, "no effect", "not so"),
        ({"hot": 100, "pruned": 100}, "no effect", "partly"),
        ({"hot": 300}, "stronger", "partly"),
    ],
)
def test_throughput_is_judged_by_its_number_where_the_work_waits_for_pages(
    chapter, given, hot, jump
):
    given = dict(given)
    fast, pruned = given.pop("hot", 200), given.pop("pruned", 150)
    series = {HOT: fast, throughput.AGAIN: fast, NO_HOT: pruned, UNPRUNED: 100}
    wobbling = {name: [one * (1 + b / 1000) for b in range(7)] for name, one in series.items()}
    chapter.run("wal_by_part")
    database = chapter.database
    database.add("run", "hot", "throughput", timed(wobbling, **given), throughput.UNITS)
    try:
        judge = verdicts.Judge("hot")
        words = [
            str(evidence.judge(judge, chapter.rules[one], database, chapter.aside, {}).verdict)
            for one in ("hot-001", "hot-004")
        ]
    finally:
        database.add("run", "hot", "throughput", timed({}), throughput.UNITS)
    assert words == [hot, jump]


@pytest.mark.parametrize(
    ("name", "capability"),
    [("full_script", "timed_accounts = 20000"), ("pools", "larger relations")],
)
def test_what_is_too_small_to_tell_is_set_aside(chapter, name, capability):
    with pytest.raises(CannotMeasure) as lacking:
        list(chapter.bed.measure(chapter.experiments[name], {}))
    assert lacking.value.capability == capability


# ---- what the experiments do


def test_a_page_is_pruned_where_nothing_is_written(chapter):
    steps = found(chapter, "page_steps")
    own = steps[steps["sequence"] == "read in between"].set_index(["step", "line_pointer"])
    before, after = own.loc[4]["state"], own.loc[5]["state"]
    assert set(before) == {"normal"} and len(before) == 7
    assert after.to_dict() == {
        **dict.fromkeys(range(1, 8), "normal"),
        1: "redirect",
        2: "redirect",
        5: "unused",
    }
    assert own.loc[(9, 3), "state"] == "dead" and own.loc[(10, 3), "state"] == "unused"
    assert set(own.loc[1].index[own.loc[1]["entries"] > 0]) == {1, 2, 3, 4}


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
    assert UPDATES == 0.5 and updates(Pgbench(10, 300, prefix="")) == 1500
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
    kinds = ("updated", "hot_updated", "newpage_updated")
    assert tuple(counted[kind] for kind in kinds) == on_pages and min(on_pages) > 0


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


@pytest.mark.parametrize(
    ("script", "tables"), [(REDUCED, {"accounts"}), (FULL, {"accounts", "tellers", "branches"})]
)
def test_what_runs_inside_the_server_does_what_pgbench_does(server, script, tables):
    few = ours(2, 300)
    for by_pgbench in (True, False):
        load(few, server)
        with server.connect() as connection:
            if by_pgbench:
                run_pgbench(server, few, script, 120, seed=1)
            else:
                run_in_server(connection, few, script, 120, seed=1)
            assert {name: counts(connection, name)["updated"] for name in BALANCED} == {
                name: 120 * (name in tables) for name in BALANCED
            }
            total = "SELECT sum(delta), count(*), (SELECT sum(abalance) FROM accounts) FROM history"
            deltas, inserted, balance = connection.execute(total).fetchone()
            assert deltas == balance > 120 and inserted == 120


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


# ---- what is told


def test_each_headline_has_a_sentence_for_each_outcome(chapter):
    told = declared.findings_of(chapter.folder).entries
    for claim in claims.ledger().values():
        if claim.chapter == "hot" and claim.headline:
            possible = {str(one).replace(" ", "_") for one in verdicts.VERDICTS[claim.predicate]}
            assert possible - {"not_tested_here"} <= set(told[claim.id]), claim


def test_every_chart_of_counts_draws_what_was_measured(chapter):
    drawn = declared.charts_of(chapter.folder)
    for name in ("hot-ways", "hot-fillfactor", "hot-growth", "hot-steady", "hot-log", "hot-chains"):
        for query in filter(None, (drawn[name].query, drawn[name].simulated)):
            for table in chapter.database.tables_in(query):
                chapter.run(table)
        figure = chapter.chart(name)
        assert "{" not in figure.caption and figure.caption != figure.question, name
