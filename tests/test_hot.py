"""The HOT chapter's own verbs: chains, kinds of update, growth and its theory, rewrites, and words under any outcome."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pgrerun import claims, published, statistics
from pgrerun.chapters.hot import bank, budget, chain, drawn, growth, speed, ways, words, worries
from pgrerun.chapters.hot.bank import AS_BEFORE, BRIN, HOT, INDEXED, NO_HOT, Bank, churn, counted, snapshot
from pgrerun.errors import CannotMeasure
from pgrerun.server import Cluster

TINY = {"profile": "ci", "seed": 2007, "pairs": 5, "clients": 2, "accounts": 300, "timed_accounts": 50, "rounds": 1}


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "32MB"}) as cluster:
        yield cluster


@pytest.fixture
def chapter(server):
    """What the verbs ask of a chapter, without a run record."""
    environment = {"machine": {"memory_bytes": 2**34}}
    return SimpleNamespace(server=server, parameters=SimpleNamespace(**TINY), run=SimpleNamespace(environment=environment))


@pytest.fixture(scope="module")
def told(server):
    return chain.story(SimpleNamespace(server=server))


def states(told: pd.DataFrame, step: int) -> dict[int, str]:
    title = list(dict.fromkeys(told["page"]))[step - 1]
    return told[told["page"] == title].set_index("line_pointer")["state"].to_dict()


def chained(*rows: tuple) -> pd.DataFrame:
    """A page from (line pointer, state, to)."""
    frame = pd.DataFrame(rows, columns=["line_pointer", "state", "to"])
    return frame.assign(to=frame["to"].astype("Int64"))


# ---- the page


def test_the_story_prunes_where_nothing_is_written(told):
    before, after = states(told, 4), states(told, 5)
    assert set(before.values()) == {"normal"} and len(before) == 7
    assert after == {1: "redirect", 2: "redirect", 3: "normal", 4: "normal", 5: "unused", 6: "normal", 7: "normal"}


def test_an_update_of_an_indexed_column_leaves_a_dead_line_pointer_until_vacuum(told):
    assert states(told, 9)[3] == "dead" and states(told, 10)[3] == "unused"
    last = told[told["page"] == told["page"].iloc[-1]]
    assert sorted(last.loc[last["state"] == "normal", "tuple"]) == ["A v4", "B v3", "C v2", "D v1"]
    assert int(last["entries"].sum()) == 4


def test_the_index_goes_on_pointing_to_the_root_of_a_chain(told):
    entries = told[told["entries"] > 0].groupby("page", sort=False)["line_pointer"].agg(set)
    assert entries.iloc[0] == entries.iloc[5] == {1, 2, 3, 4}
    assert entries.iloc[6] == {1, 2, 3, 4, 8}


def test_the_summary_counts_what_the_pictures_show(told):
    found = chain.summary(told).set_index("step")
    assert found["longest_chain"].tolist() == [1, 2, 3, 3, 1, 2, 2, 2, 1, 1]
    assert found[["normal", "redirect", "dead", "unused"]].sum(axis=1).tolist() == [4, 5, 6, 7, 7, 7, 8, 9, 9, 9]
    assert all(chain.all_chains_facts(told).values())


def test_a_chain_that_was_not_shortened_is_noticed(told):
    titles = list(dict.fromkeys(told["page"]))
    untouched = told.copy()
    before = told[told["page"] == titles[3]]
    untouched = pd.concat([untouched[untouched["page"] != titles[4]], before.assign(page=titles[4])])
    untouched["page"] = pd.Categorical(untouched["page"], titles)
    untouched = untouched.sort_values("page", kind="stable").astype({"page": str})
    assert not any(chain.all_chains_facts(untouched).values())


@pytest.mark.parametrize(
    "rows, length",
    [
        ([(1, "normal", None)], 1),
        ([(1, "normal", 2), (2, "normal", 3), (3, "normal", None)], 3),
        ([(1, "redirect", 2), (2, "normal", 3), (3, "normal", None)], 2),
        ([(1, "dead", None), (2, "unused", None)], 0),
        ([(1, "normal", 2), (2, "normal", 1)], 2),  # damaged: it still ends
    ],
)
def test_the_longest_chain(rows, length):
    assert chain.longest_chain(chained(*rows)) == length


def test_updates_prune_when_less_than_a_tenth_of_the_page_is_free(chapter):
    when = chain.pruned_when(chapter)
    pruned = when[when["pruned"]]
    assert len(pruned) >= 2
    assert (pruned["free"] < chain.NEARLY_FULL * chain.PAGE).all()
    assert (when.loc[~when["pruned"], "free"] >= chain.NEARLY_FULL * chain.PAGE).all()
    assert list(chain.when_facts(when).values()) == [True, False]


def test_a_server_that_waits_until_nothing_fits_would_fulfil_the_claim():
    late = pd.DataFrame({"update": [1, 2, 3], "free": [900, 200, 100], "needed": 124, "pruned": [False, False, True]})
    assert all(chain.when_facts(late).values())


def test_a_select_repairs_a_page_alone_and_passes_by_a_pinned_one(chapter):
    found = chain.repaired(chapter)
    assert found.hole > 2 * chain.WIDTH and found.hole_left == 0
    assert not found.pinned and not found.waited and found.locks == ("AccessShareLock",)


# ---- kinds of update


@pytest.fixture(scope="module")
def kinds(server):
    return ways.ways(SimpleNamespace(server=server))


def test_every_update_went_somewhere(kinds):
    assert (kinds[["heap_only", "same_page", "other_page", "other_partition"]].sum(axis=1) == ways.ROWS).all()


@pytest.mark.parametrize(
    "way, column",
    [
        (ways.PLAIN, "heap_only"), (ways.BRIN_INDEX, "heap_only"), (ways.BTREE, "same_page"), (ways.FULL_PAGE, "other_page"),
        (ways.NEW_TOAST, "heap_only"), (ways.MOVED, "other_partition"), (ways.GROWS, "heap_only"),
    ],
)  # fmt: skip
def test_where_new_versions_go(kinds, way, column):
    assert ways.of(kinds, way)[column] == ways.ROWS


def test_index_facts_can_fail(kinds):
    assert all(ways.index_facts(kinds).values()) and all(ways.overhead_facts(kinds).values())
    hot = kinds.copy()
    hot.loc[hot["way"] == ways.BTREE, ["heap_only", "same_page"]] = (ways.ROWS, 0)
    assert not any(ways.index_facts(hot).values())
    assert ways.worst_facts(kinds) == {
        "with a B-tree no update is HOT": True, "with a BRIN index neither": False, "nothing else tried here leaves so few": False,
    }  # fmt: skip


def test_a_fillfactor_decides_for_one_statement_as_arithmetic_says(chapter):
    found = ways.fillfactors(chapter).set_index("fillfactor")
    assert found.at[90, "tuples"] == 55 and found.at[90, "room"] == 6
    # the last page isn't full, so it has more room than the arithmetic allows
    assert (found["at_once"] - found["at_once_expected"]).between(0, 0.05).all()
    assert found.at[100, "one_by_one"] > 0.9 and found.at[100, "at_once"] < 0.05


def test_counters_agree_with_the_pages(chapter):
    found = ways.reconciled(chapter)
    assert (found["counted"] == found["on the pages"]).all() and (found["counted"] > 0).all()


def test_a_server_that_does_not_count_other_pages_is_told_from_one_that_does():
    with pytest.raises(CannotMeasure, match="another page") as refused:
        bank.require_newpage(SimpleNamespace(info=SimpleNamespace(server_version=150_004)))
    assert refused.value.capability == "PostgreSQL 16"
    bank.require_newpage(SimpleNamespace(info=SimpleNamespace(server_version=160_000)))


# ---- the arms


@pytest.mark.parametrize("arm, share", [(HOT, 1), (BRIN, 1), (NO_HOT, 0), (INDEXED, 0)])
def test_arms_take_hot_away_or_leave_it(server, arm, share):
    here = Bank(1, 500)
    with server.connect() as connection:
        here.load(connection, arm)
        before = bank.blocks(connection, "accounts")
        churn(connection, here, 250, seed=1)
        done = counted(connection, "accounts")
        assert (done["updates"], done["hot"]) == (250, 250 * share)
        assert bank.blocks(connection, "accounts") == before  # pruned in any case


def test_an_old_snapshot_keeps_versions_and_vacuum_as_before_hot_removes_them(server):
    here = Bank(1, 500)
    here.load(server, AS_BEFORE)
    dead = "SELECT count(*) FROM heap_page_items(get_raw_page('accounts', 0)) WHERE t_xmax <> '0'"
    server.extension("pageinspect")
    with server.connect() as connection, snapshot(server) as old:
        churn(connection, here, 200, seed=1)
        assert connection.execute(dead).fetchone()[0] > 0
        connection.execute("VACUUM accounts")
        assert connection.execute(dead).fetchone()[0] > 0
        bank.vacuum(connection, "accounts", old)
        assert connection.execute(dead).fetchone()[0] == 0
        churn(connection, here, 200, seed=2)  # the new snapshot keeps what dies from now on
        connection.execute("VACUUM accounts")
        assert connection.execute(dead).fetchone()[0] > 0


def test_the_same_seed_draws_the_same_accounts(server):
    here, sums = Bank(1, 300), []
    with server.connect() as connection:
        for seed in (1, 1, 2):
            here.load(connection)
            churn(connection, here, 100, seed=seed)
            sums.append(connection.execute("SELECT md5(string_agg(abalance::text, ',' ORDER BY aid)) FROM accounts").fetchone()[0])
    assert sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize("script, tables", [(bank.REDUCED, {"accounts"}), (bank.FULL, {"accounts", "tellers", "branches"})])
def test_what_runs_inside_the_server_does_what_pgbench_does(server, script, tables):
    here = Bank(2, 300)
    for run in (lambda k: bank.replay(k, here, script, 120, seed=1), lambda k: bank.drive(server, here, script, 120, seed=1)):
        here.load(server)
        with server.connect() as connection:
            run(connection)
            assert {name: counted(connection, name)["updates"] for name in bank.BALANCES} == {name: 120 * (name in tables) for name in bank.BALANCES}
            total = "SELECT sum(delta), count(*), (SELECT sum(abalance) FROM accounts) FROM history"
            deltas, inserted, balance = connection.execute(total).fetchone()
            assert deltas == balance > 120 and inserted == 120


# ---- growth and its theory


def pages(tuples: int = 110) -> growth.Pages:
    return growth.Pages(tuples, width=121, fillfactor=90)


def test_a_loaded_page_is_as_full_as_the_servers(server):
    with server.connect() as connection:
        Bank(1, 1000).load(connection)
        [(loaded,)] = connection.execute("SELECT count(*) FROM accounts WHERE ctid < '(1,0)'").fetchall()
    assert pages().live == [loaded, loaded] == [55, 55]


def test_a_page_takes_six_more_versions_and_then_sends_them_away():
    full = pages()
    for _ in range(6):
        full.update(0, pruning=False)
    assert (full.live, full.kept, full.home[0]) == ([55, 55], [6, 0], 0)
    full.update(0, pruning=False)  # 61 tuples of 132 bytes, header included: no room for one more
    assert full.home[0] == 2 and len(full.live) == 3  # nor on the last page, whose reserve is for its own


def test_versions_from_elsewhere_leave_the_fillfactors_room_alone():
    one = growth.Pages(55 + 10, width=121, fillfactor=90)
    one.dead[0] = 291 - 55  # no line pointer left on the first page
    for number in range(46):
        one.update(number, pruning=True)
    assert one.live == [9, 10 + 45, 1]


def test_a_pruned_version_costs_a_line_pointer_and_a_kept_one_a_tuple():
    # 55 tuples take 7260 of 8168 bytes; the rest is six versions of 132, or as many pointers of 4 as leave room for one version
    pruned, kept = pages(), pages()
    for updates in range(1, 400):
        pruned.update(0, pruning=True)
        if pruned.home[0] != 0:
            break
    assert updates - 1 == (8168 - 55 * 132 - 132) // 4 + 1
    assert kept.room(0) and (kept.kept, kept.dead) == ([0, 0], [0, 0])


def test_vacuum_gives_room_back_and_remembers_it():
    one = pages()
    for number in range(20):
        one.update(number, pruning=False)
    assert len(one.live) == 3
    one.vacuum()
    assert one.spare == [0, 2] and one.kept == [0, 0, 0]
    for number in range(55, 55 + 12):  # six stay, six go to pages that are there
        one.update(number, pruning=False)
    assert len(one.live) == 3 and sum(one.live) == 110


def test_no_more_line_pointers_than_a_page_may_have():
    one = growth.Pages(10, width=24, fillfactor=100)
    one.dead[0] = 280
    assert one.room(0)
    one.dead[0] = 281
    assert not one.room(0)


def test_theory_and_measurement_agree(chapter):
    measured, computed = growth.steady(chapter), growth.theory(chapter)
    assert set(measured["arm"]) == set(growth.STEADY)
    both = measured.merge(computed, on=["arm", "updates"], suffixes=("", "_computed"))
    assert len(both) == len(measured) == len(computed)
    for relation in ("accounts", "accounts_pkey"):
        assert ((both[relation] - both[f"{relation}_computed"]).abs() <= 1).all()
    assert growth.agreement(measured, computed).groupby("relation")["arm"].agg(list).tolist() == 2 * [list(growth.STEADY)]
    last = measured.groupby("arm")["accounts"].last()
    assert last[HOT] < last[growth.BEFORE_VACUUMED] < last[AS_BEFORE]
    assert growth.grown_although_vacuumed(measured) == pytest.approx(1.1, abs=0.1)


def test_looks_fall_on_the_prints_updates_and_vacuums(chapter):
    looks = growth._looks(chapter, growth.BEFORE_VACUUMED)
    assert [(look.until, look.seen, look.vacuum) for look in looks] == [
        (0.2, False, True), (0.4, False, True), (0.5, True, False), (0.6, False, True), (0.8, False, True), (1.0, True, True),
    ]  # fmt: skip
    assert not any(look.vacuum for look in growth._looks(chapter, HOT))


def test_a_loaded_index_is_as_large_as_the_servers(server):
    with server.connect() as connection:
        for tuples in (300, 1000, 3000):
            Bank(1, tuples).load(connection)
            assert bank.blocks(connection, "accounts_pkey") == [growth.Leaves(tuples).pages]


def test_every_full_leaf_splits_once_and_then_duplicates_are_put_together():
    tuples = 3 * 366 + 72
    index = growth.Leaves(tuples)
    for key in (0, 1, 2) * 14:  # forty free places on a leaf, which all versions of one key would fill as well
        index.update(key, pruning=False)
    assert len(index.first) == 4 and index.used[0] < 8152 - 20
    for key in range(tuples):
        index.update(key, pruning=False)
    assert len(index.first) == 7
    for _ in range(3):
        for key in range(0, tuples, 12):
            index.update(key, pruning=False)
    assert len(index.first) == 7 and all(used <= 8152 for used in index.used)


def test_a_leaf_whose_dead_entries_may_go_never_splits_and_vacuum_empties_without_merging():
    pruned, kept = growth.Leaves(1000), growth.Leaves(1000)
    for key in list(range(1000)) * 5:
        pruned.update(key, pruning=True)
        kept.update(key, pruning=False)
    before = kept.pages
    kept.vacuum()
    assert pruned.pages == growth.Leaves(1000).pages < kept.pages == before
    assert sum(kept.used) == 20 * (1000 + len(kept.first))


@pytest.mark.parametrize("count, size", [(1, 20), (2, 36), (3, 44), (4, 44), (5, 52)])
def test_the_size_of_a_posting_list(count, size):
    assert growth.Leaves._size(count) == size


def test_without_hot_an_index_helps_itself_until_its_entries_are_scattered(chapter):
    chapter.parameters.accounts = 1500  # of two branches, as many as fill eight leaves and a bit
    found = growth.scattered(chapter)
    assert found["per_leaf"].iloc[0] == 8 and found["per_leaf"].iloc[-1] > 2 * 8
    assert found["accounts_pkey"].iloc[3] == found["accounts_pkey"].iloc[0] < found["accounts_pkey"].iloc[-1]
    assert "keeps its" in words.helps_itself(found.assign(accounts_pkey=5))
    said = words.helps_itself(found.assign(accounts_pkey=[11, 11, 11, 11, 11, 19, 19]))
    assert said.startswith("By 5 updates per account the index has grown, in the end from 11 to 19 pages")


def test_autovacuum_comes_where_it_may(chapter):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "LATER", 1.0)
        patch.setattr(growth, "NAPTIMES", 0.1)
        found = growth.autovacuum(chapter).set_index("autovacuum")
    assert list(found.index) == list(growth.AUTOVACUUM) and found.at["off", "vacuums"] == 0
    assert (found["before"] <= found["after"]).all() and (found["after"] <= found["later"]).all()
    with chapter.server.connect() as connection:
        assert connection.execute("SHOW autovacuum").fetchone() == ("off",)



def test_growth_as_in_print_without_hot_and_pruning(chapter):
    found = growth.growth(chapter)
    assert growth.over_hot(found, "accounts", NO_HOT) == 1
    assert growth.over_hot(found, "accounts") == pytest.approx(1.35, abs=0.15)
    assert all(growth.stock_facts(found).values())
    assert growth.index_facts(found) == dict.fromkeys(growth.index_facts(found), True)
    never = found.assign(after=found["before"])
    assert list(growth.index_facts(never).values()) == [True, False]
    assert "neither needs its updates to be heap-only" in words.not_merely_hot(found)
    assert "pruning alone doesn't" in words.not_merely_hot(found.assign(after=found["before"] * (1 + (found["arm"] != HOT))))


def test_small_tables_between_two_vacuums(chapter, monkeypatch):
    assert growth.between_vacuums() == 60 * 976
    monkeypatch.setattr(growth, "between_vacuums", lambda: 3000)
    found = growth.small(chapter)
    assert (found["updates"] == 3000).all()
    assert all(growth.small_facts(found).values())
    assert list(growth.small_index_facts(found).values()) == [False, True]
    assert "59.54 s" in words.small_growth(found) and "were deleted again" in words.small_growth(found)
    swollen = found.assign(after=found["after"].mask(found["relation"] == "branches_pkey", 600))
    assert list(growth.small_index_facts(swollen).values()) == [True, False]
    assert "not deleted in time" in words.small_growth(swollen)


def test_a_queue_that_is_vacuumed_stops_growing(chapter):
    found = growth.queue(chapter, jobs=200, batches=20).set_index("arm")
    assert list(found.index) == [HOT, NO_HOT, growth.BEFORE_VACUUMED]
    assert found.at[growth.BEFORE_VACUUMED, "table_end"] >= found.at[HOT, "table_end"] >= found.at[HOT, "table_clustered"]


@pytest.mark.parametrize("end, clustered, facts", [(20, 15, [True, True, False]), (40, 15, [False, False, False])])
def test_queue_facts(end, clustered, facts):
    rows = [(arm, 20, end, clustered, 5, 5, 5) for arm in (HOT, NO_HOT, growth.BEFORE_VACUUMED)]
    columns = ["arm", "table_halfway", "table_end", "table_clustered", "index_halfway", "index_end", "index_clustered"]
    frame = pd.DataFrame(rows, columns=columns)
    found = list(growth.queue_facts(frame).values())
    assert found[:2] == facts[:2] and found[2] == (2 * clustered <= end)


# ---- the budget


def test_pruning_at_every_visit_writes_more_log(chapter):
    assert budget.eager_over_lazy(budget.when_to_prune(chapter)) > 1.2


@pytest.fixture(scope="module")
def written(server):
    return budget.budget(SimpleNamespace(server=server, parameters=SimpleNamespace(**TINY)))


def test_the_budget_of_a_transaction(written):
    per_arm = budget.per_arm(written).set_index("arm")
    assert per_arm.at[HOT, budget.ENTRIES] == 0
    assert per_arm.at[NO_HOT, budget.ENTRIES] == pytest.approx(1, abs=0.15)
    assert per_arm.at[INDEXED, budget.ENTRIES] == pytest.approx(2, abs=0.3)
    assert per_arm.at[NO_HOT, budget.REMOVED] > 0 == per_arm.at[AS_BEFORE, budget.REMOVED]
    assert per_arm.at[AS_BEFORE, budget.PRUNED] == 0
    assert set(written.pages.columns) >= {"arm", "accounts", "accounts_pkey", "history"}


def ratio(low: float, high: float, n: int = 7) -> statistics.Interval:
    return statistics.Interval((low * high) ** 0.5, low, high, n)


@pytest.mark.parametrize(
    "speed, counts, open_",
    [(ratio(1.08, 1.2), False, False), (ratio(0.98, 1.02), True, False), (ratio(0.9, 1.2), None, True), (ratio(1.1, 1.2, n=3), None, True)],
)
def test_only_a_resolved_ratio_becomes_a_fact(written, speed, counts, open_):
    facts = budget.jump_facts(1.3, written, speed)
    assert facts.get("where sizes are stable without HOT, HOT isn't faster") is counts
    assert bool(budget.jump_note(speed)) is open_


def test_a_pool_that_holds_most_of_the_data_is_no_small_pool(chapter):
    chapter.parameters.accounts, chapter.parameters.clients = 200, 2
    chapter.cluster = lambda **settings: pytest.fail("no cluster should be started")
    with pytest.raises(CannotMeasure, match="set accounts higher"):
        budget.pools(chapter)


def test_what_makes_a_load_bound_by_reading():
    rows = [("as in print", 16, 100, 1.5, 0.8), ("holds everything", 1024, 100, 0.04, 0.01)]
    frame = pd.DataFrame(rows, columns=["pool", "pages", "data", "reads", "waiting"])
    assert all(budget.bound_facts(frame).values())
    assert list(budget.bound_facts(frame.assign(waiting=0.05)).values()) == [True, True, False]


# ---- the worries


def test_a_chain_beside_an_old_snapshot_ends_with_its_page(chapter):
    found = worries.long_transaction(chapter)
    assert list(worries.chain_facts(found).values()) == [True, False, True]
    beside = found[found["arm"] == worries.BESIDE]
    assert beside["chain"].is_monotonic_increasing and beside["chain"].max() == 7
    assert found.loc[found["arm"] == HOT, "chain"].max() == 2
    assert "ends at 7 versions" in words.snapshot_cost(found)


def test_an_index_over_broken_chains_answers_both(chapter):
    found = worries.broken_chains(chapter)
    assert found.marked and not found.old_uses and found.new_uses and found.old_finds and found.new_finds
    assert found.unmarked_without_snapshot and not found.warnings
    assert worries.index_bug(found) is False
    wrong = worries.BrokenChains((), True, True, True, False, True, True)
    assert worries.index_bug(wrong) is True
    assert worries.index_bug(worries.BrokenChains(("found a HOT-updated tuple",), True, False, True, True, True, True)) is True


def test_which_rewrites_an_old_snapshot_survives(chapter):
    found = worries.rewrites(chapter).set_index("command")
    assert found["old_sees"].to_dict() == {"CLUSTER": 100, "VACUUM FULL": 100, "ALTER TABLE, another type": 0, "TRUNCATE": 0}
    assert found["new_sees"].tolist() == [50, 50, 50, 0] and not found["heap_only"].any()
    assert worries.loses_rows(found.reset_index()) is False
    assert worries.loses_rows(found.reset_index(), "TRUNCATE") is True


@pytest.mark.parametrize("pinned, waited, share, facts", [(False, False, 0.0, [True, False, False]), (True, True, 0.1, [False, True, True])])
def test_contention_facts(pinned, waited, share, facts):
    frame = pd.DataFrame({"waiting": [worries.RUNNING, worries.WAITS["BufferPin:BufferPin"]], "share": [1 - share, share]})
    assert list(worries.contention_facts(frame, waited, pinned).values()) == facts


def test_shares_of_a_tiny_tables_samples_add_up(chapter):
    found = worries.tiny_table(chapter, transactions=400)
    assert found["share"].sum() == pytest.approx(1) and found["waiting"].is_unique


# ---- what was set aside, and other outcomes


NOTHING = [
    chain.summary, chain.seen_of_pruning, chain.when_facts, chain.all_chains_facts, chain.seen_of_repair, chain.repair_facts,
    ways.shares, ways.overhead_facts, ways.index_facts, ways.worst_facts, ways.room_facts,
    growth.stock_facts, growth.worth_facts, growth.index_facts, growth.small_facts, growth.small_index_facts, growth.small_beside_print,
    growth.queue_facts, growth.grown_although_vacuumed, words.helps_itself, budget.per_arm, budget.changed_pages, budget.bound_facts, budget.eager_over_lazy,
    worries.chain_facts, worries.seen_of_broken_chains, worries.index_bug, worries.loses_rows,
    words.not_merely_hot, words.index_split, words.small_growth, words.snapshot_cost,
    drawn.page_by_page, drawn.by_way, drawn.by_fillfactor, drawn.beside_print, drawn.log_budget, drawn.long_chains, drawn.waiting,
]  # fmt: skip


@pytest.mark.parametrize("verb", NOTHING, ids=lambda verb: f"{verb.__module__.split('.')[-1]}.{verb.__name__}")
def test_what_was_set_aside_has_no_words_no_facts_and_no_chart(verb):
    assert verb(None) is None


class Unmeasured(SimpleNamespace):
    """A chapter whose experiments were set aside."""

    def ratio(self, *_):
        return None

    def table(self, *_):
        return pd.DataFrame()


def test_nothing_is_said_of_throughput_that_was_not_measured():
    chapter = Unmeasured(parameters=SimpleNamespace(**TINY))
    said = [words.noise, words.speed_at_equal_size, words.merlins_baseline, words.readers, words.rewriting, speed.volatility, speed.improvements]
    assert [verb(chapter) for verb in said] == [None] * len(said)
    assert worries.second_best(chapter) is None


@pytest.mark.parametrize("low, high, doubted", [(0.9, 1.0, True), (1.25, 1.4, True), (1.35, 1.5, False)])
def test_merlins_baseline_is_doubted_only_if_the_index_does_not_speed_up_here(low, high, doubted):
    chapter = SimpleNamespace(parameters=SimpleNamespace(**TINY), ratio=lambda *_: ratio(low, high))
    assert ("in doubt" in words.merlins_baseline(chapter)) is doubted


def test_how_long_a_run_would_have_to_be(chapter):
    steady = pd.DataFrame({"arm": AS_BEFORE, "updates": [0.0, 1.0], "accounts": [10, 20], "accounts_pkey": [1, 1]})
    # 2**34 bytes are 2,097,152 pages, and 10 are added by one update per account
    assert "209,714 updates per account" in words.long_enough(chapter, steady)


def test_the_printed_updates_per_account():
    assert bank.printed_updates() == 0.5
    assert Bank(10, 300).updates(0.5) == 1500


def test_print_would_hold_against_its_own_numbers():
    """The judged quantity, computed from the print's own cells, is the printed one."""
    printed = published.derived("hot_growth").loc["reduced_accounts"]
    own = statistics.exact(printed["final_head"] / printed["final_hot"])
    assert claims.ledger()["hot-002"].printed == pytest.approx(own.estimate)
    assert np.isclose(claims.ledger()["hot-015"].printed, printed["times_head"])
