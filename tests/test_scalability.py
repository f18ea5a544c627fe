"""The scalability chapter on small servers and on made-up observations."""

import os
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from servers import small_chapter, unless_disturbed

from pgrerun.chapters.scalability import charts, evidence, sentences
from pgrerun.chapters.scalability.experiments import (
    clients,
    commits,
    idle,
    large_machines,
    load,
    locks,
    wal,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.disk import Disk
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import sessions
from pgrerun.lab.models import group_commit
from pgrerun.lab.models import lookups as model
from pgrerun.lab.models.contention import play
from pgrerun.record import claims, printed, statistics, verdicts

COSTS = model.Costs(work=50e-6, visit=0.1e-6, line=0.05e-6, switch=5e-6, rouse=20e-6)
FIRST_BLOCK = Block(index=0, seed=1, position=0)
SMALL = {
    "pairs": 5,
    "most_clients": 16,
    "transactions": 100,
    "commits": 20,
    "commit_clients": 8,
}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """A small chapter, with servers of its own."""
    with small_chapter("scalability", tmp_path_factory.mktemp("runs"), **SMALL) as opened:
        yield opened


@pytest.fixture
def recorded(tmp_path):
    """A small chapter whose observations are made up, by `record`."""
    with small_chapter("scalability", tmp_path, **SMALL) as opened:
        yield opened


def record(chapter, experiment, observed, unit="transactions/s"):
    """Store made-up observations: variant to metrics, nearly the same in every block."""
    metrics = next(iter(observed.values()))

    def measured(values):
        return lambda block: {name: x * (1 + block.index / 1000) for name, x in values.items()}

    variants = [Variant(name, measured(values)) for name, values in observed.items()]
    chapter.compare(experiment, variants, dict.fromkeys(metrics, unit), warmup=0)


def word(claim, found):
    """The word that the ledger's predicate gives this evidence."""
    return str(verdicts.judge(claims.ledger()[claim], found).verdict)


def test_the_print_is_what_the_talk_says():
    assert printed.derived("scalability_idle").times_fewer["wakeups_after"] == pytest.approx(28.75)
    assert printed.derived("scalability_read").share["speedup"] == pytest.approx(63.7 / 64)
    rows = printed.recomputed("scalability").set_index("where")
    assert rows.agrees.tolist() == [True, True, True, False, False]


# ---- loads


def test_numbers_of_clients_double_up_to_one_per_processor_and_end_in_the_most(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(load, "processors", lambda: 2)
    with small_chapter("scalability", tmp_path, most_clients=64) as opened:
        assert load.client_counts(opened) == [1, 2, 8, 32, 64]


def test_as_many_clients_as_processors_are_among_the_numbers(monkeypatch, chapter):
    monkeypatch.setattr(load, "processors", lambda: 6)
    assert 6 in load.client_counts(chapter) and load.one_per_processor(chapter) == 6
    monkeypatch.setattr(load, "processors", lambda: 128)
    assert load.one_per_processor(chapter) == load.client_counts(chapter)[-1] == 16


def test_clients_on_a_borrowed_server_leave_room_for_its_owner(tmp_path, borrowed_url):
    with (
        small_chapter("scalability", tmp_path, server=borrowed_url, most_clients=64) as opened,
        opened.server,
    ):
        assert max(load.client_counts(opened)) <= 30  # it allows 40


@pytest.mark.parametrize(("each", "done"), [(1, load.LEAST), (50, 50)])
def test_every_client_runs_as_many_transactions_and_a_least_number(chapter, each, done):
    tested = load.server(chapter)
    load.loaded(chapter)
    assert load.Load(chapter, tested, load.LOOKUP, 8, each).run(seed=1).transactions == 8 * done


def test_messages_of_a_transaction():
    assert load.messages(load.LOOKUP, 10) == pytest.approx(1.2)
    assert load.messages(load.TPCB, 8) == 8


def test_a_load_counts_the_switches_of_its_backends(chapter):
    statement = "SELECT pg_sleep(0.001), pg_sleep(0.001), pg_sleep(0.001), pg_sleep(0.001);\n"
    observed, transactions = {}, 60
    while set(observed) != set(load.OBSERVED):  # it was over before anybody had looked at it
        transactions *= 2
        sleeping = load.Load(chapter, load.server(chapter), statement, 2, transactions)
        observed = sleeping.observe(FIRST_BLOCK)
    # It sleeps four times for itself, but a busy machine puts off the readings that say since when
    # and until when.
    assert observed["voluntary"] > 1


def test_a_server_that_cannot_be_looked_into_has_a_throughput_only(monkeypatch, chapter):
    tested = load.server(chapter)
    monkeypatch.setattr(type(tested), "can", lambda server, capability: False)
    observed = load.Load(chapter, tested, "SELECT 1;\n", 2, 30).observe(FIRST_BLOCK)
    assert set(observed) == {"throughput"}


# ---- servers and sessions with other settings


def test_the_second_server_differs_from_the_first_in_what_was_asked_for_alone(chapter):
    def settings(**asked):
        with load.second_server(chapter, **asked).connect() as connection:
            query = (
                "SELECT current_setting('work_mem'), current_setting('shared_buffers'),"
                " current_setting('max_connections'), pg_postmaster_start_time()"
            )
            return connection.execute(query).fetchone()

    assert settings(work_mem="1MB")[0] == "1MB"
    memory, pool, connections, began = settings(shared_buffers="2MB")
    assert (memory, pool) == ("4MB", "2MB")
    assert int(connections) == load.connections(chapter)
    assert settings(shared_buffers="2MB")[3] == began
    load.second_server(chapter, shared_buffers="2MB").stop()
    assert settings(shared_buffers="2MB")[3] > began


def test_sessions_have_a_setting_for_the_block(cluster):
    def shown():
        with cluster.connect() as connection:
            return connection.execute("SHOW synchronous_commit").fetchone()[0]

    with sessions.configured(cluster, synchronous_commit="off"):
        assert shown() == "off"
    assert shown() == "on"


def test_settings_of_somebodys_server_are_not_ours(tmp_path, borrowed_url):
    with (
        small_chapter("scalability", tmp_path, server=borrowed_url) as opened,
        opened.server as theirs,
        pytest.raises(CannotMeasure, match="not ours"),
        sessions.configured(theirs, synchronous_commit="off"),
    ):
        pass


# ---- lookups


def test_a_law_is_fitted_to_four_numbers_of_clients_and_not_to_three(recorded):
    throughput = {1: 100.0, 2: 190.0, 8: 500.0, 32: 700.0}
    swept = {load.by_clients(n): {"throughput": x} for n, x in throughput.items()}
    record(recorded, "read", swept | {clients.AGAIN: {"throughput": 190.0}})
    record(recorded, "write", {name: swept[name] for name in list(swept)[:3]})
    assert evidence.law(recorded, "read").scale.estimate == pytest.approx(100, rel=0.2)
    assert evidence.law(recorded, "write") is None
    assert charts.sweep(recorded, "write", "writers").question
    assert evidence.bend(recorded, "read") == 32


@pytest.mark.parametrize(
    ("running", "inside", "said"),
    [
        (2.0, 0.1, "the knee is the number of processors"),
        (0.3, 0.1, "the knee lies outside of it"),
        (1.0, 3.0, "the knee is a wait inside PostgreSQL"),
    ],
)
def test_the_knee_is_told_by_what_the_most_clients_do(monkeypatch, running, inside, said):
    monkeypatch.setattr(load, "processors", lambda: 2)
    rows = [
        (2, "LWLock", "LockManager", 9.0),
        (32, "CPU", "running", running),
        (32, "Client", "ClientRead", 5.0),
        (32, "LWLock", "LockManager", inside),
    ]
    waits = pd.DataFrame(rows, columns=["clients", "type", "event", "backends"])
    told = sentences.knee(waits)
    assert told.startswith("With 32 clients") and said in told


def test_a_caption_of_throughput_says_where_it_is_greatest_and_what_is_left(recorded):
    throughput = {1: 100.0, 2: 190.0, 8: 50.0}
    swept = {load.by_clients(n): {"throughput": x} for n, x in throughput.items()}
    record(recorded, "read", swept)
    said = charts.sweep(recorded, "read", "lookups").caption
    peak, left = said.index("to its greatest, 190"), said.index("with 8 clients.")
    assert 0 < peak < left and "transactions/s with 2 clients, to 50" in said
    swept[load.by_clients(8)] = {"throughput": 300.0}
    record(recorded, "write", swept)
    written = charts.sweep(recorded, "write", "writers").caption
    assert "to its greatest" not in written
    assert "reached with 8 clients, and by lookups with 2 clients" in written


def test_a_sweep_says_what_its_short_runs_make_of_a_crowd(recorded):
    few, most = load.one_per_processor(recorded), load.client_counts(recorded)[-1]
    throughput = {load.by_clients(few): 50.0, load.by_clients(most): 100.0, clients.AGAIN: 200.0}
    record(recorded, "read", {name: {"throughput": x} for name, x in throughput.items()})
    said = charts.sweep(recorded, "read", "lookups").caption
    assert "is 0.5 times that with" in said and "and 2 times where the" in said
    assert "an experiment of its own" in said


def test_words_that_keep_off_each_other_are_told_by_their_distance(recorded):
    same, middle, other = 16.0, 4.0, 4.0
    lines = large_machines
    names = (lines.SAME_LINE, lines.MIDDLE, lines.OTHER_LINE, lines.SPREAD, lines.UNDISTURBED)
    times = zip(names, (same, middle, other, 20.0, 10.0), strict=True)
    record(recorded, "cache lines", {name: {"time": x} for name, x in times}, "ns")
    said = charts.compared(recorded, "cache lines").caption
    assert "a word takes 4 times as long 8 bytes apart and 1 times as long 64" in said
    assert "Scanning words takes 2 times as long beside" in said


# ---- locks


def test_a_reader_and_a_drop(chapter):
    measured = locks.weak_and_strong(chapter)
    assert list(measured) == ["state", "lock", "granted", "fastpath"]
    assert word("haas-008", evidence.weak_and_strong(measured)) == "holds"
    weak = measured.assign(granted=True)
    assert word("haas-008", evidence.weak_and_strong(weak)) == "weaker"
    elsewhere = measured.assign(fastpath=False)
    assert word("haas-008", evidence.weak_and_strong(elsewhere)) == "holds", (
        "where a lock is kept isn't what the talk says of weak and strong ones"
    )


def test_a_virtual_transaction_that_is_waited_for(chapter):
    measured = locks.virtual_transactions(chapter)
    assert word("haas-009", evidence.virtual_transactions(measured)) == "holds"
    swapped = measured.assign(fastpath=[False, True])
    assert word("haas-009", evidence.virtual_transactions(swapped)) == "gone"


def test_strong_locks_elsewhere_push_all_others_off_the_fast_path(chapter):
    locks.overflow(chapter)
    share = chapter.table("locks", "fastpath").median()
    assert share[locks.FAST] == 1 and 0 < share[locks.TABLE] < 1 and share[locks.HELD] < 0.1
    assert "the fast path" in sentences.off_the_fast_path(chapter)
    assert locks.FAST in charts.compared(chapter, "locks").description


def test_the_costs_of_a_lock_are_taken_alone_and_in_company(chapter):
    with unless_disturbed():
        locks.costs(chapter)
    times = chapter.table("lock costs", "time")
    assert set(times) == {locks.EMPTY, locks.ALONE, locks.SAME, locks.OTHER}
    assert (times > 0).all().all()


# ---- the commit log


def test_index_scans_ask_the_commit_log_for_nothing_that_they_know(chapter):
    scans = wal.index_scans(chapter)
    unseen, *seen = scans["lookups"]
    assert unseen < 10 and seen == [wal.TUPLES, 0]
    assert word("haas-021", evidence.asked_once(scans)) == "holds"
    as_before = scans.assign(lookups=[wal.TUPLES, wal.TUPLES, 0])
    assert word("haas-021", evidence.asked_once(as_before)) == "gone"


def test_a_cap_that_the_largest_pool_breaks_is_broken():
    buffers = pd.DataFrame({"shared_buffers": ["2MB", "1GB"], "kilobytes": [128, 2048]})
    assert word("haas-019", evidence.kilobytes(buffers)) == "gone"
    capped = buffers.assign(kilobytes=[128, 256])
    assert word("haas-019", evidence.kilobytes(capped)) == "holds"


def test_who_needs_another_page_does_not_wait_for_the_slow_one(monkeypatch, chapter):
    monkeypatch.setattr(wal, "DELAY", 5.0)  # longer than a busy machine makes anybody wait
    sessions = wal.one_slow_page(chapter)
    assert sessions["waits"].tolist() == [True, True, False]
    assert not evidence.everybody_waits(sessions)
    sessions.loc[sessions["session"] == wal.OTHER_PAGE, "waits"] = True
    assert evidence.everybody_waits(sessions)


def test_pages_that_are_not_slow_give_no_verdict(monkeypatch, chapter):
    elsewhere = lambda **given: Disk(**given | {"only": "base/"})
    monkeypatch.setattr(wal.disk, "Disk", elsewhere)
    with pytest.raises(CannotMeasure, match="wasn't"):
        wal.one_slow_page(chapter)


# ---- the WAL


def test_later_no_page_is_logged_in_full(chapter):
    wal.checkpointed(chapter)
    log = chapter.table("checkpointed", "log")
    assert (log[wal.LATER] < log[wal.AFTER] / 1.5).all()


def test_copy_writes_less_log(chapter):
    assert evidence.copy_saves(wal.copy(chapter)) > 1.5


@pytest.mark.parametrize(("several", "said"), [(0.9, True), (1.03, True), (1.8, False)])
def test_insertion_that_does_not_scale_is_single_threaded(recorded, several, said):
    names = load.by_clients(1), load.by_clients(wal.several())
    inserted = zip(names, (1.0, several), strict=True)
    record(recorded, "insertion", {name: {"records": x} for name, x in inserted}, "records/s")
    after, later = {"throughput": 1.0, "log": 9.0}, {"throughput": 1.4, "log": 3.0}
    record(recorded, "checkpointed", {wal.AFTER: after, wal.LATER: later})
    facts = evidence.insertion(recorded)
    values = [getattr(fact, "value", fact) for fact in facts.values()]
    assert values == [said, True, True]


def test_the_release_that_divided_insertion_is_not_the_one_that_was_hoped_for():
    assert word("haas-082", evidence.DIVIDED_IN) == "gone"


# ---- group commit


def test_a_flush_carries_one_commit_of_one_client_and_more_of_many(chapter):
    commits.sweep(chapter)
    commits.slowed_sweep(chapter)
    one, many = commits.sizes(chapter)[0], commits.sizes(chapter)[-1]
    for sweep in ("commit sweep", "slowed sweep"):
        per_flush = chapter.table(sweep, "per flush").median()
        few, most = (per_flush[commits.swept(commits.PLAIN, number)] for number in (one, many))
        # whether a quick flush is shared is the schedule's; at a slow one all others arrive
        assert few <= 1 and (most > 1 or sweep == "commit sweep")
    description = charts.commits_over_clients(chapter).description
    assert "slowed flush at 8" in description and commits.NOT_WAITED not in description
    assert f"with 1, 2, 3, {many} clients" in sentences.per_flush(chapter)
    shared = evidence.shared_flushes(chapter)
    assert shared.estimate > 1 and shared.disk == chapter.disk("slowed sweep") != ""
    alone = chapter.median("slowed sweep", "flushing", commits.swept(commits.PLAIN, 1))
    assert 0 < alone.estimate <= 1


@pytest.mark.parametrize(("reached", "said"), [(7.0, "One of"), (2.0, "None of")])
def test_simulated_commits_say_where_the_new_way_is_slower_and_if_the_talks_gain_is_there(
    reached, said
):
    played = {(0.001, 4): 1.0, (0.001, commits.TALK_CLIENTS): reached, (0.01, 4): 0.6}
    played[0.01, commits.TALK_CLIENTS] = 1.04
    rows = [
        (flush, number, way, gain if way == group_commit.TOGETHER else 1.0, 1.0)
        for (flush, number), gain in played.items()
        for way in (group_commit.QUEUE, group_commit.TOGETHER)
    ]
    columns = ["flush", "clients", "way", "throughput", "per_flush"]
    frame = pd.DataFrame(rows, columns=columns)
    caption = charts.many_commits(frame).caption
    assert f"{said} these flushes gives the talk's 6 to 8 times" in caption
    assert "falls behind 9.1 with a flush of 10 ms (down to 0.60 times)." in caption
    assert ("leaves something out" in sentences.queue(frame)) == (reached < 6)


def test_commits_of_both_flushes_are_told(recorded):
    for sweep, most in (("commit sweep", 5.0), ("slowed sweep", 7.0)):
        observed = {
            commits.swept(commits.PLAIN, number): {"per flush": carried, "throughput": 100.0}
            for number, carried in ((1, 1.0), (8, most))
        }
        record(recorded, sweep, observed)
    said = charts.commits_over_clients(recorded).caption
    assert "between 1 and 8 clients, commits per flush go from 1" in said
    assert said.index("to 5") < said.index("(as it comes)") < said.index("to 7")


@pytest.mark.parametrize(
    ("off", "said"), [(50.0, "which is a cost"), (200.0, "costs nothing"), (None, "from noise")]
)
def test_what_being_off_the_fast_path_costs_is_told_from_noise(recorded, off, said):
    def measured(fast):
        def observe(block):
            uneven = 1.0 + (block.index % 2 - 0.5) / 5  # of the two by turns
            return {"throughput": 100.0 if fast else off or 100.0 * uneven}

        return observe

    variants = [
        Variant(name, measured(name == locks.FAST))
        for name in (locks.FAST, locks.TABLE, locks.HELD)
    ]
    recorded.compare("locks", variants, {"throughput": "transactions/s"}, warmup=0)
    assert charts.compared(recorded, "locks").caption.count(said) == 2


# ---- simulated machines


def test_releases_take_fewer_and_fewer_locks():
    def taken(transaction):
        return sum(visit.times for visit in transaction.visits)

    before, first, after = (taken(model.lookup(release, COSTS)) for release in model.RELEASES)
    assert before > first > after


def test_one_client_hardly_sees_the_patches_and_many_do():
    def gain(clients):
        machine = model.machine(32, COSTS)
        before, after = (
            play(machine, model.lookup(release, COSTS), clients, transactions=500).throughput
            for release in (model.BEFORE, model.AFTER)
        )
        return after / before

    assert gain(1) < 1.05 and gain(32) > 1.3


def test_the_simulated_single_client_is_what_play_comes_to():
    lookup = model.lookup(model.BEFORE, COSTS)
    played = play(model.machine(32, COSTS), lookup, 1, transactions=3000).throughput
    point = model.Point(model.BEFORE, 32, 1, COSTS)
    assert point.play(100, seed=1).throughput == pytest.approx(played, rel=0.01)


def swept(gains):
    rows = [
        (line, release, 32, value)
        for line, gain in gains.items()
        for release, value in ((model.BEFORE, 1.0), (model.AFTER, gain))
    ]
    return pd.DataFrame(rows, columns=["line", "release", "clients", "throughput"])


def test_the_line_is_the_one_that_comes_nearest_to_the_talks_gain():
    assert large_machines.talks_line(swept({1e-8: 1.5, 1e-7: 2.9, 2e-7: 0.9})) == 1e-7


def simulated(curves):
    """Curves of releases on the talk's machine: release to clients to throughput, five blocks."""
    rows = [
        (release, 32, clients, block, value * (1 + block / 100))
        for release, values in curves.items()
        for clients, value in values.items()
        for block in range(5)
    ]
    columns = ["release", "processors", "clients", "block", "throughput"]
    return pd.DataFrame(rows, columns=columns)


FALLING = {
    model.BEFORE: {1: 1.0, 20: 12.0, 32: 10.0, 64: 9.8},
    model.FIRST: {1: 1.0, 20: 20.0, 32: 30.0, 64: 9.0},
    model.AFTER: {1: 1.0, 20: 20.0, 32: 30.0, 64: 31.0},
}


def test_gain_and_peak_are_marked_as_simulated():
    frame = simulated(FALLING)
    gain, peak = evidence.gain(frame), evidence.peak(frame)
    assert gain.estimate == pytest.approx(3) and gain.simulated and gain.enough
    assert peak.estimate == pytest.approx(32 / 20) and peak.simulated
    assert not statistics.median([1.0, 2.0, 3.0]).simulated
    drawn = charts.many_processors(frame)
    assert "9.2" in drawn.description
    # of one client's, of two releases in the middle block
    assert f"{model.BEFORE} reaches 12.0 times with 20 clients and has 9.8 times" in drawn.caption
    assert f"{model.AFTER} reaches 31.0 times with 64 clients." in drawn.caption


def test_a_fall_beyond_the_processors_is_told_from_a_flat_curve():
    assert list(evidence.falling(simulated(FALLING)).values()) == [True] * 3
    flat = simulated(FALLING | {model.FIRST: dict.fromkeys(FALLING[model.FIRST], 31.0)})
    assert list(evidence.falling(flat).values()) == [False] * 3


@pytest.mark.parametrize(("gain", "fails"), [(2.1, True), (3.4, False)])
def test_a_simulation_that_misses_the_talks_gain_is_shown_as_failed(recorded, gain, fails):
    words = evidence.validation(swept({1e-8: 1.5, 1e-7: gain}))
    assert ("fails its validation" in words) == fails
    recorded.judge("haas-005", beside={words: evidence.gain(simulated(FALLING))})
    [judged] = recorded.evidence.judgements
    assert judged.verdict is verdicts.Verdict.NOT_TESTABLE and judged.capability == "PostgreSQL 9.1"
    assert str(judged.beside[words].verdict) == "holds"


def test_what_was_never_simulated_stands_beside_nothing(recorded):
    recorded.judge("haas-005", beside={None: recorded.show(evidence.gain, None)})
    assert recorded.evidence.judgements[0].beside == {}


def test_contention_of_many_processors_is_not_decided_on_two(recorded):
    names = (*clients.scaled("lookups"), *clients.scaled("writers"))
    made_up = zip(names, (190.0, 100.0, 120.0, 100.0), strict=True)
    record(recorded, "by processors", {name: {"throughput": x} for name, x in made_up})
    recorded.run.environment["machine"]["cpus"] = 2
    recorded.judge("haas-025", evidence.linear, "writers")
    recorded.run.environment["machine"]["cpus"] = 32
    recorded.judge("haas-025", evidence.linear, "writers")
    here, there = (str(judged.verdict) for judged in recorded.evidence.judgements)
    assert here == "not testable here" and there != here


def test_server_and_clients_are_kept_on_one_processor_and_let_go_again(chapter):
    allowed = os.sched_getaffinity(0)
    clients.by_processors(chapter)
    assert set(chapter.table("by processors", "throughput")) == {
        *clients.scaled("lookups"),
        *clients.scaled("writers"),
    }
    pids = [os.getpid(), *load.server(chapter).pids()]
    assert all(os.sched_getaffinity(pid) == allowed for pid in pids)


def calibrate(chapter):
    """Made-up observations of all that the simulation's costs are made of."""
    times = {locks.EMPTY: 40.0, locks.ALONE: 240.0, locks.SAME: 900.0, locks.OTHER: 300.0}
    record(chapter, "lock costs", {name: {"time": x} for name, x in times.items()}, "ns")
    record(chapter, "handoff", {"handoff": {"elapsed": 20.0, "processor": 5.0}}, "µs")
    numbers = load.client_counts(chapter)
    record(chapter, "read", {load.by_clients(n): {"throughput": 1e4 * n} for n in numbers})


def test_costs_are_calibrated_on_what_was_measured(recorded):
    calibrate(recorded)
    costs = model.typical(large_machines.calibrated(recorded))
    assert costs.visit == pytest.approx(100e-9, rel=0.01)
    assert costs.line == pytest.approx((225 - 100) / 5 * 1e-9, rel=0.01)
    assert costs.switch == pytest.approx(5e-6, rel=0.01)
    assert costs.rouse == pytest.approx(20e-6, rel=0.01)
    assert costs.work == pytest.approx(1e-4, rel=0.01)
    assert "Measured here" in sentences.constants(recorded)


def test_a_gain_that_no_line_reaches_is_said_to_be_out_of_reach(recorded):
    calibrate(recorded)
    assert "No time" in sentences.line(recorded, swept({1e-8: 1.5, 1e-7: 2.1}))
    assert "No time" not in sentences.line(recorded, swept({1e-8: 1.5, 1e-7: 3.4}))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((0.1, 22.4), "with 10 ns, and 22.4 ask for that of the root page with 100 ns: there"),
        (
            (0.1, 0.4),
            "at most 0.4 of 32 clients on average ask for the spinlock of the root page at a time,"
            " with 100 ns",
        ),
    ],
    ids=["collapses", "does not"],
)
def test_a_gain_that_falls_is_traced_to_who_asks_for_a_spinlock(asked, said):
    gains = swept({1e-8: 2.1, 1e-7: 0.8})
    after = gains["release"] == model.AFTER
    gains["spinlock"] = after.map({True: "root page", False: "snapshot"})
    gains["asking"] = 0.2
    gains.loc[after, "asking"] = asked
    words = repr(sentences.asking(gains))
    assert said in words and ("falls from 2.1 to 0.8" in words) == (max(asked) > 1)
    assert "0.2 of 32 clients on average ask for the spinlock of the snapshot" in words


def test_the_crowd_in_front_of_a_spinlock_is_counted(recorded, monkeypatch):
    """Where a line is dear most of 9.2's clients ask for one spinlock, and throughput falls."""
    monkeypatch.setattr(large_machines, "calibrated", lambda chapter: [replace(COSTS, work=35e-6)])
    played = large_machines.by_line(recorded)
    after = played[played["release"] == model.AFTER].set_index("line").sort_index()
    cheap, dear = after.iloc[0], after.iloc[-1]
    assert cheap["asking"] < 1 < 16 < dear["asking"] < 32 and dear["spinlock"] == "root page"
    assert dear["throughput"] < cheap["throughput"]
    assert "root page" in repr(sentences.asking(played))


# ---- writers


def test_waits_become_facts_only_where_there_are_waits():
    written = pd.DataFrame(
        [
            ("asynchronous", "LWLock", "XactSLRU", 1.0),
            ("asynchronous", "CPU", "running", 9.0),
            ("synchronous", "IO", "WalSync", 5.0),
        ],
        columns=["load", "type", "event", "backends"],
    )
    assert list(evidence.commit_log(written).values()) == [True, False]
    read = pd.DataFrame(
        [(8, "LWLock", "ProcArray", 0.2), (8, "CPU", "running", 2.0)],
        columns=["clients", "type", "event", "backends"],
    )
    assert list(evidence.process_array(written).values()) == [False, False]
    snapshots = written.replace("XactSLRU", "ProcArray")
    assert list(evidence.process_array(snapshots).values()) == [True, False]
    drawn = charts.waits(read, written)
    assert "asynchronous commits, LWLock: XactSLRU" in drawn.description
    assert "lookups, 8 clients, on CPU or runnable (91 %)" in drawn.caption
    assert "synchronous commits, IO: WalSync (100 %)" in drawn.caption


# ---- an idle server


def test_wakeups_are_added_up_over_processes_and_averaged_over_windows():
    rates = {0: [1.0, 2.0], 1: [2.0, 2.0], 2: [0.0, 2.0]}
    woken = pd.DataFrame({"role": ["checkpointer", "walwriter"]} | rates)
    woken.attrs["seconds"] = 30.0
    assert evidence.wakeup_rate(woken).estimate == pytest.approx(3)
    drawn = charts.wakeups(woken)
    assert "checkpointer" in drawn.description and "all together 3" in drawn.description
    assert "times per second, all together; 0.4 is printed for 9.2" in drawn.caption


def test_a_watch_counts_the_wakeups_of_a_live_server(monkeypatch, chapter):
    monkeypatch.setattr(idle, "SETTLE", 0.0)
    woken = idle.wakeups(chapter, idle.watch(chapter))
    assert {"checkpointer", "walwriter"} <= set(woken["role"])
    assert "postmaster" not in set(woken["role"]) and evidence.wakeup_rate(woken).low >= 0
    assert woken.attrs["rested"] == 0


def test_only_a_server_that_was_idle_for_minutes_is_the_talks():
    wakeups, words = statistics.rate([8, 8, 8, 8, 8], 100), {}
    for rested in (27, 210):
        judge = verdicts.Judge("scalability")
        for claim in ("haas-060", "haas-061"):
            judge.judge(claim, wakeups, regime={"idle for minutes": rested})
        words[rested] = [str(one.verdict) for one in judge.judgements]
    assert words == {27: ["not testable here"] * 2, 210: ["inconclusive", "holds"]}


# ---- context switches


def counted(chapter, voluntary, involuntary, throughput=(1.0, 2.0, 2.05)):
    """Switches per transaction of a made-up sweep over 1, 2 and 8 clients, for one message."""
    metrics = ("voluntary", "involuntary", "throughput", "messages")
    observed = {}
    for n, *values in zip((1, 2, 8), voluntary, involuntary, throughput, (1.0,) * 3, strict=True):
        observed[load.by_clients(n)] = dict(zip(metrics, values, strict=True))
    record(chapter, "read", observed)
    return clients.switches_per_transaction(chapter, "read")


def sampled(waiting):
    rows = [(8, "CPU", "running", 3.0), (8, "Lock", "tuple", waiting)][: 2 if waiting else 1]
    return pd.DataFrame(rows, columns=["clients", "type", "event", "backends"])


@pytest.mark.parametrize(
    ("voluntary", "involuntary", "said"),
    [
        ((1, 1, 1.5), (0, 0, 0), "the others are waits inside PostgreSQL"),
        ((1, 1, 0.9), (0, 0, 0.6), "the processor is taken from backends"),
        ((0.1, 0.4, 0.9), (0.9, 0.6, 0.0), "no more sleeps than messages, and few"),
        ((0.1, 0.4, 1.05), (0.9, 0.6, 0.0), "hardly more sleeps than messages, and few"),
    ],
)
def test_switches_beyond_the_messages_name_the_cause(recorded, voluntary, involuntary, said):
    switches = counted(recorded, voluntary, involuntary)
    sentence = sentences.switched(recorded, "read", switches, sampled(0.0))
    assert said in sentence and "2 clients." in sentence
    assert evidence.bend(recorded, "read") == 2


@pytest.mark.parametrize(
    ("throughput", "sleeps", "said"),
    [
        ((1.0, 3.0, 3.0), 0.4, "it sleeps less often"),
        ((1.0, 3.0, 3.0), 1.0, "not because backends sleep less"),
        ((1.0, 1.9, 1.9), 0.4, None),
    ],
)
def test_more_than_linear_throughput_is_told_with_what_the_switches_say(
    recorded, throughput, sleeps, said
):
    switches = counted(recorded, (1.0, sleeps, sleeps), (0, 0, 0), throughput)
    sentence = sentences.switched(recorded, "read", switches, sampled(0.0))
    assert said in sentence if said else "linear" not in sentence


@pytest.mark.parametrize(
    ("sleeps", "waiting", "said"),
    [
        (1, 0.0, "no active backend waits inside PostgreSQL then. Neither"),
        (1, 0.1, "3.2 % of the active backends"),
        (1, 1.0, "few waits, but long"),
        (2, 1.0, "Both name"),
        (2, 0.1, "many short"),
    ],
)
def test_wait_events_are_told_beside_the_switches(recorded, sleeps, waiting, said):
    switches = counted(recorded, (1, 1, sleeps), (0, 0, 0))
    sentence = sentences.switched(recorded, "read", switches, sampled(waiting))
    assert said in sentence and ("Lock:tuple" in sentence) == bool(waiting)


def test_writers_that_wait_for_their_flush_are_not_those_of_the_sweep(recorded):
    switches = counted(recorded, (1, 1, 1), (0, 0, 0))
    rows = [
        (clients.ASYNCHRONOUS, "CPU", "running", 3.0),
        (clients.ASYNCHRONOUS, "Lock", "transactionid", 1.0),
        (clients.SYNCHRONOUS, "LWLock", "WALWrite", 90.0),
    ]
    waits = pd.DataFrame(rows, columns=["load", "type", "event", "backends"])
    said = sentences.switched(recorded, "read", switches, waits)
    assert "25.0 % of the active backends" in said and "Lock:transactionid" in said
    assert "WALWrite" not in said


def test_sweeps_without_counts_are_set_aside(recorded):
    record(recorded, "read", {load.by_clients(1): {"throughput": 1.0}})
    assert recorded.attempt(clients.switches_per_transaction, "read") is None
    assert recorded.show(charts.switches) is None


def test_a_load_that_was_over_before_it_could_be_watched_is_a_reason(recorded):
    watched = {"voluntary": 1.0, "involuntary": 0.0, "messages": 1.0, "throughput": 1.0}
    unseen = {"messages": 1.0, "throughput": 1.0}
    record(recorded, "read", {load.by_clients(2): watched, load.by_clients(1): unseen})
    with pytest.raises(CannotMeasure, match="with 1 client the load was over"):
        clients.switches_per_transaction(recorded, "read")


def test_a_second_server_is_not_asked_for_settings_that_its_release_lacks(monkeypatch):
    monkeypatch.setattr(load, "server", lambda chapter: SimpleNamespace(version=110022))
    with pytest.raises(CannotMeasure, match="track_wal_io_timing"):
        load.second_server(None, track_wal_io_timing="on")


def test_call_chains_become_causes_and_the_postmasters_are_left_out():
    chains = pd.DataFrame(
        [
            (("schedule", "epoll_wait", "WaitEventSetWait", "secure_read", "PostgresMain"), 6),
            (
                (
                    "schedule",
                    "PGSemaphoreLock",
                    "LWLockAcquire",
                    "PostgresMain",
                    "BackendMain",
                    "ServerLoop",
                ),
                3,
            ),
            (("schedule", "irqentry_exit_to_user_mode", "_bt_first", "[unknown]"), 1),
            (
                (
                    "schedule",
                    "epoll_wait",
                    "WaitEventSetWait",
                    "ServerLoop.isra.0",
                    "PostmasterMain",
                ),
                90,
            ),
        ],
        columns=["chain", "samples"],
    )
    switches = clients.by_cause(chains)
    assert dict(switches.itertuples(index=False)) == {
        "the client": 6,
        "a lightweight lock": 3,
        clients.PREEMPTED: 1,
    }
    assert "30.0 % of the writers' 10 switches" in sentences.chains(switches.assign(load="writers"))
    assert "a lightweight lock" in charts.call_chains(switches.assign(load="writers")).description


@pytest.mark.parametrize(
    ("peak", "said"),
    [
        ((4.65, 2.0, 9.0), "at 5 [2, 9]"),
        ((4.65, 4.9e-08, float("inf")), "at 5 clients, but"),
        ((4.65, 0.1, 9.0), "at 9.0 clients at most"),
        ((0.5, 0.1, 9.0), "beyond one"),
        ((float("inf"), 3, float("inf")), "no peak."),
    ],
)
def test_a_peak_is_told_as_far_as_its_interval_has_ends(recorded, peak, said):
    part = statistics.Interval(0.1, 0.05, 0.2, 4)
    law = statistics.USL(part, sigma=part, kappa=part, peak=statistics.Interval(*peak, 4))
    # the greatest throughput where the law has its peak, or beside it
    step = {0.5: 1, 4.65: 4, float("inf"): 8}[peak[0]]
    swept = {n: {"throughput": 200.0 if n == step else 100.0} for n in (1, 2, 4, 8)}
    record(recorded, "read", {load.by_clients(n): one for n, one in swept.items()})
    assert said in sentences.law(recorded, law, "lookups")


def test_a_law_that_peaks_away_from_the_measured_peak_is_said_not_to_fit(recorded):
    swept = {1: 100.0, 2: 210.0, 8: 205.0, 16: 200.0, 32: 190.0}
    record(recorded, "read", {load.by_clients(n): {"throughput": x} for n, x in swept.items()})
    part = statistics.Interval(0.43, 0.32, 0.61, 5)
    told = {}
    for clients_of_peak in (1.4, 8.0, 18.0, float("inf")):
        peak = statistics.Interval(clients_of_peak, clients_of_peak, clients_of_peak, 5)
        law = statistics.USL(part, sigma=part, kappa=part, peak=peak)
        told[clients_of_peak] = sentences.law(recorded, law, "lookups")
    assert {n for n, said in told.items() if "doesn't fit" in said} == {18.0, float("inf")}
    assert "greatest with 2 clients" in told[18.0] and "18" not in told[18.0]
