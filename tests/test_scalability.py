"""The scalability chapter's own verbs, on small servers and on made-up observations."""

import time
from contextlib import ExitStack
from types import SimpleNamespace

import pandas as pd
import pytest

from pgrerun import parameters, published, statistics
from pgrerun.chapters.scalability import bench, commit, cores, drawn, idle, locks, reading, turns, words, writing
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.experiment import Block
from pgrerun.models import contention
from pgrerun.models.contention import Transaction, play
from pgrerun.server import Cluster

COSTS = cores.Costs(work=50e-6, visit=0.1e-6, line=0.05e-6, switch=5e-6, rouse=20e-6)


@pytest.fixture
def chapter(cluster):
    """What the verbs under test ask of a chapter."""
    given = parameters.chapter_parameters("scalability", {})
    return SimpleNamespace(server=cluster, parameters=given, borrowed=False, cluster=lambda **settings: cluster)


@pytest.fixture
def recording(chapter):
    """A chapter that measures its arms twice and keeps the last metric of each, as a frame for each experiment."""
    chapter.parameters = chapter.parameters.model_copy(update={"transactions": 500, "most_clients": 16, "idle_connections": 8})
    chapter.observed = {}

    def compare(name, arms, units, pairs=0, warmup=1):
        rows = {}
        for block in (Block(0, 1, 0), Block(1, 2, 0)):
            for arm in arms:
                if arm.prepare:
                    arm.prepare(block)
                rows.setdefault(arm.name, []).append(list(arm.measure(block).values())[-1])
        chapter.observed[name] = pd.DataFrame(rows)

    chapter.compare = compare
    return chapter


def test_the_print_is_what_the_talk_says():
    assert published.derived("scalability_idle").times_fewer["wakeups_after"] == pytest.approx(28.75)
    assert published.derived("scalability_read").share["speedup"] == pytest.approx(63.7 / 64)
    rows = published.recomputed("scalability").set_index("where")
    assert rows.agrees.tolist() == [True, True, True, False, False]


def test_levels_double_up_to_one_per_processor_and_end_in_the_most(monkeypatch, chapter):
    monkeypatch.setattr(bench, "processors", lambda: 2)
    chapter.parameters = chapter.parameters.model_copy(update={"most_clients": 64})
    assert bench.levels(chapter) == [1, 2, 8, 32, 64]


def test_as_many_clients_as_processors_are_among_the_levels(monkeypatch, chapter):
    monkeypatch.setattr(bench, "processors", lambda: 6)
    assert 6 in bench.levels(chapter) and bench.busy(chapter) == 6
    monkeypatch.setattr(bench, "processors", lambda: 128)
    assert bench.busy(chapter) == bench.levels(chapter)[-1] == 32


def test_no_law_is_fitted_to_three_points(chapter):
    chapter.table = lambda experiment, metric: pd.DataFrame({reading.clients(n): [10.0 * n] * 7 for n in (1, 4, 16)})
    assert reading.law(chapter, "write") is None


def test_levels_on_a_borrowed_server_leave_room_for_its_owner(chapter, cluster):
    chapter.borrowed = True
    assert max(bench.levels(chapter)) <= 30  # it allows 40


def test_idle_connections_are_there_for_the_block_and_gone_after_it(cluster):
    counted = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with cluster.connect() as watch:
        count = lambda: watch.execute(counted).fetchone()[0]
        before = count()
        with bench.idling(cluster, 5):
            assert _becomes(count, before + 5)
        assert _becomes(count, before)


def _becomes(count, number):
    until = time.monotonic() + 10
    while count() != number and time.monotonic() < until:
        time.sleep(0.02)
    return count() == number


def test_idle_connections_beyond_the_servers_room_are_no_silent_loss(cluster):
    with pytest.raises(ServerError, match="1000 connections"), bench.idling(cluster, 1000):
        pass


def test_a_reader_and_a_drop(chapter):
    found = locks.weak_and_strong(chapter)
    facts = locks.weak_facts(found)
    assert len(facts) == 5 and all(facts.values())
    found.loc[found["state"] == "two readers", "fastpath"] = False
    assert not all(locks.weak_facts(found).values())


def test_a_virtual_transaction_that_is_waited_for(chapter):
    assert list(locks.virtual_facts(locks.virtual_transactions(chapter)).values()) == [True, True]
    swapped = pd.DataFrame({"state": ["a", "b"], "fastpath": [False, True]})
    assert list(locks.virtual_facts(swapped).values()) == [False, False]


def test_index_scans_ask_the_commit_log_once_for_each_tuple_and_never_again(chapter):
    found = writing.index_scans(chapter)
    assert writing.lookups_per_tuple(found) == {"first scan": 1.0, "second scan": 0.0}


def test_who_needs_another_page_does_not_wait_for_the_slow_one(monkeypatch):
    with ExitStack() as ending:
        monkeypatch.setattr(writing, "second", lambda chapter, **settings: ending.enter_context(Cluster(settings=settings)))
        found = writing.one_slow_page(None)
    assert found["waits"].tolist() == [True, True, False]
    assert writing.everybody_waits(found) is False
    found.loc[found["session"] == writing.OTHER_PAGE, "waits"] = True
    assert writing.everybody_waits(found) is True


def test_pages_that_are_not_slow_give_no_verdict(monkeypatch):
    monkeypatch.setattr(writing, "SLOW", 40)  # beyond the file: that page is never read
    monkeypatch.setattr(writing, "_ask", lambda connection, page: None)
    with ExitStack() as ending, pytest.raises(CannotMeasure, match="wasn't"):
        monkeypatch.setattr(writing, "second", lambda chapter, **settings: ending.enter_context(Cluster(settings=settings)))
        writing.one_slow_page(None)


def test_later_no_page_is_logged_in_full(recording):
    writing.checkpointed(recording)
    found = recording.observed["checkpointed"]
    assert (found[writing.LATER] < found[writing.AFTER] / 1.5).all()


def test_changed_definitions_stop_when_the_lookups_do(recording, cluster):
    reading.schema_changes(recording)
    assert set(recording.observed["schema changes"]) == {reading.TOLD_NOBODY, reading.TOLD_OTHERS, reading.TOLD_READERS}
    with cluster.connect() as watch:
        [left] = watch.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'").fetchone()
    assert left == 0


def test_a_fix_that_came_later_than_the_talk_thought_is_half_the_prediction(monkeypatch):
    monkeypatch.setattr(writing, "inserting_scales", lambda chapter: statistics.exact(1.8))
    assert list(writing.fixed_facts(None).values()) == [True, False]
    monkeypatch.setattr(writing, "DIVIDED_IN", 9.3)
    monkeypatch.setattr(writing, "inserting_scales", lambda chapter: statistics.exact(0.9))
    assert list(writing.fixed_facts(None).values()) == [False, True]


def test_a_gain_with_other_clients_than_the_talks_is_remarked_on(chapter):
    assert "where the talk had 250" in commit.of_the_talks(chapter)
    chapter.parameters = chapter.parameters.model_copy(update={"commit_clients": 250})
    assert commit.of_the_talks(chapter) == ""


def test_copy_writes_less_log(chapter):
    assert writing.copy_saves(writing.copy(chapter)) > 1.5


def test_the_two_scripts_differ_in_the_lock_alone():
    together, alone = (commit.script(commit.INSERT, way) for way in (commit.TOGETHER, commit.ALONE))
    assert together.replace("lock(:client_id)", "lock(0)") == alone != together


def test_releases_take_fewer_and_fewer_locks():
    taken = [sum(visit.times for visit in cores.visits(release, COSTS)) for release in cores.RELEASES]
    assert taken[0] > taken[1] > taken[2]
    writers = [sum(visit.times for visit in cores.write_visits(release, 8, COSTS, 1e-6)) for release in (cores.BEFORE, cores.AFTER)]
    assert writers[0] > writers[1]


def test_one_client_hardly_sees_the_patches_and_many_do():
    def gain(clients):
        before, after = (
            play(cores.machine(32, COSTS), Transaction(COSTS.work, cores.visits(release, COSTS)), clients, transactions=500).throughput
            for release in (cores.BEFORE, cores.AFTER)
        )
        return after / before

    assert gain(1) < 1.05 and gain(32) > 1.3


def test_the_simulated_single_client_is_what_play_comes_to():
    lookup = Transaction(COSTS.work, cores.visits(cores.BEFORE, COSTS))
    assert contention.alone(lookup) == pytest.approx(play(cores.machine(32, COSTS), lookup, 1, transactions=3000).throughput, rel=0.01)


def test_waits_for_the_client_are_no_knee_inside_postgresql():
    rows = [("CPU", "running", 1.0), ("Client", "ClientRead", 5.0), ("LWLock", "LockManager", 0.1)]
    assert "number of processors" in words.knee(pd.DataFrame(rows, columns=["type", "event", "backends"]))
    rows[2] = ("LWLock", "LockManager", 3.0)
    assert "inside PostgreSQL" in words.knee(pd.DataFrame(rows, columns=["type", "event", "backends"]))


def swept(gains):
    rows = [(line, release, 32, value) for line, gain in gains.items() for release, value in ((cores.BEFORE, 1.0), (cores.AFTER, gain))]
    return pd.DataFrame(rows, columns=["line", "release", "clients", "throughput"])


def test_the_line_is_the_one_that_comes_nearest_to_the_talks_gain():
    assert cores.talks_line(swept({1e-8: 1.5, 1e-7: 2.9, 2e-7: 0.9})) == 1e-7


def simulated(before, after, processors=32):
    rows = [
        (cores.THERE, release, processors, clients, block, value * (1 + block / 100))
        for release, values in ((cores.BEFORE, before), (cores.AFTER, after)) for clients, value in values.items() for block in range(5)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["lines", "release", "processors", "clients", "block", "throughput"])


def test_gain_and_peak_are_marked_as_simulated():
    frame = simulated({1: 1.0, 20: 12.0, 32: 10.0}, {1: 1.0, 20: 20.0, 32: 30.0})
    gain, peak = cores.gain(frame, 32), cores.peak(frame)
    assert gain.estimate == pytest.approx(3) and gain.simulated and gain.enough
    assert peak.estimate == pytest.approx(32 / 20) and peak.simulated
    assert not statistics.median([1.0, 2.0, 3.0]).simulated


def test_waits_become_facts_only_where_there_are_waits():
    found = pd.DataFrame(
        [("asynchronous", "LWLock", "XactSLRU", 1.0), ("asynchronous", "CPU", "running", 9.0), ("synchronous", "IO", "WalSync", 5.0)],
        columns=["load", "type", "event", "backends"],
    )
    assert list(writing.clog_facts(found).values()) == [True, False]
    read = pd.DataFrame([(8, "LWLock", "ProcArray", 0.2), (8, "CPU", "running", 2.0)], columns=["clients", "type", "event", "backends"])
    assert list(writing.proc_array_facts(found, read).values()) == [True, False, False]


def test_an_idle_server_is_watched_without_a_connection(cluster):
    watched = idle.Watch.__new__(idle.Watch)
    frames = [pd.DataFrame({"role": ["checkpointer", "postmaster"], "switches": [10 * n, 1000 * n]}, index=[7, 8]) for n in range(11)]
    watched.readings = [(100.0 + n, frame) for n, frame in enumerate(frames)]
    watched.others = {"other": 200}
    watched.end = lambda least: None
    found = idle.wakeups(SimpleNamespace(parameters=SimpleNamespace(idle_seconds=5)), watched)
    assert found["role"].tolist() == ["checkpointer"] and idle.rate(found).estimate == pytest.approx(10)
    assert list(idle.top_facts(watched, found).values()) == [True]


def test_a_watch_counts_the_wakeups_of_a_live_server(monkeypatch, chapter):
    monkeypatch.setattr(idle, "SETTLE", 0.0)
    monkeypatch.setattr(idle, "FRESH", 0.0)
    watched = idle.Watch(chapter)
    time.sleep(0.3)
    watched.end(1.5)
    found = idle.wakeups(SimpleNamespace(parameters=SimpleNamespace(idle_seconds=0)), watched)
    assert {"checkpointer", "walwriter"} <= set(found["role"]) and idle.rate(found).low >= 0


def test_a_fall_beyond_the_processors_is_told_from_a_flat_curve(monkeypatch):
    monkeypatch.setattr(cores, "SWEEP", (1, 20, 32, 64))
    curves = {cores.BEFORE: (1, 10, 12, 11), cores.FIRST: (1, 20, 30, 9), cores.AFTER: (1, 20, 31, 31)}
    rows = [(cores.THERE, release, 32, n, block, value) for release, values in curves.items() for n, value in zip(cores.SWEEP, values) for block in range(5)]
    frame = pd.DataFrame(rows, columns=["lines", "release", "processors", "clients", "block", "throughput"])
    assert all(cores.falling_facts(frame).values())
    frame.loc[frame["release"] == cores.FIRST, "throughput"] = 31.0
    assert list(cores.falling_facts(frame).values()) == [False, False, False, False]


# ---- servers and sessions with other settings


def test_the_second_server_differs_from_the_first_in_what_was_asked_for_alone(monkeypatch, cluster):
    with Cluster(settings={"cluster_name": "second"}) as other:
        chapter = SimpleNamespace(cluster=lambda **settings: other if "cluster_name" in settings else cluster)
        monkeypatch.setattr(bench, "server", lambda chapter: cluster)
        monkeypatch.setattr(bench, "connections", lambda chapter: 20)

        def set_(**settings):
            on = bench.second(chapter, **settings)
            assert on is other
            return on._fetch("SELECT current_setting('work_mem'), current_setting('shared_buffers'), pg_postmaster_start_time()")

        assert set_(work_mem="1MB")[0] == "1MB"
        memory, pool, began = set_(shared_buffers="2MB")
        assert (memory, pool) == ("4MB", "2MB")
        assert set_(shared_buffers="2MB")[2] == began
        other.stop()
        assert set_(shared_buffers="2MB")[2] > began


def test_sessions_have_a_setting_for_the_block(cluster):
    with bench.sessions(cluster, synchronous_commit="off"):
        assert cluster._fetch("SHOW synchronous_commit") == ("off",)
    assert cluster._fetch("SHOW synchronous_commit") == ("on",)
    with pytest.raises(CannotMeasure), bench.sessions(SimpleNamespace(owned=False, name="theirs"), synchronous_commit="off"):
        pass


# ---- context switches


def test_messages_of_a_transaction():
    assert bench.messages(bench.LOOKUP, 10) == pytest.approx(1.2)
    assert bench.messages(writing.WRITE, 8) == 8


def test_a_sweep_counts_the_switches_of_its_backends(recording):
    recording.parameters = recording.parameters.model_copy(update={"transactions": 4000})
    statement = "SELECT pg_sleep(0.001), pg_sleep(0.001), pg_sleep(0.001), pg_sleep(0.001);\n"
    found = bench.watched(recording, recording.server, statement, 2, 60, seed=1)
    # it sleeps four times for itself, and once more if the next message isn't there yet
    assert set(found) == set(bench.WATCHED) and 3.6 < found["voluntary"] < 5.5


def test_a_server_that_cannot_be_looked_into_has_a_throughput_only(monkeypatch, recording):
    monkeypatch.setattr(type(recording.server), "can", lambda server, capability: False)
    assert set(bench.watched(recording, recording.server, "SELECT 1;\n", 2, 60, seed=1)) == {"throughput"}


def counted(voluntary, involuntary, throughput=(1.0, 2.0, 2.05)):
    """A chapter whose sweep over three numbers of clients has these switches, for one message."""
    values = {"voluntary": voluntary, "involuntary": involuntary, "messages": (1.0,) * 3, "throughput": throughput}
    frames = {metric: pd.DataFrame({reading.clients(n): [x * (1 + k / 1000) for k in range(7)] for n, x in zip((1, 2, 8), row)}) for metric, row in values.items()}
    ratio = lambda experiment, metric, arm, base: statistics.ratio(frames[metric][arm], frames[metric][base])
    return SimpleNamespace(table=lambda experiment, metric: frames[metric], ratio=ratio)


@pytest.mark.parametrize(
    ("voluntary", "involuntary", "said"),
    [
        ((1, 1, 1.5), (0, 0, 0), "the others are waits inside PostgreSQL"),
        ((1, 1, 0.9), (0, 0, 0.6), "the processor is taken from backends"),
        ((0.1, 0.4, 1.0), (0.9, 0.6, 0.0), "switches are no more than the messages"),
    ],
)
def test_switches_beyond_the_messages_name_the_cause(voluntary, involuntary, said):
    chapter = counted(voluntary, involuntary)
    sentence = words.switched(chapter, "read")
    assert said in sentence and "2 clients." in sentence
    assert turns.bend(chapter, "read") == 2


@pytest.mark.parametrize(
    ("throughput", "sleeps", "said"),
    [((1.0, 3.0, 3.0), 0.4, "it sleeps less often"), ((1.0, 3.0, 3.0), 1.0, "not because backends sleep less"), ((1.0, 1.9, 1.9), 0.4, None)],
)
def test_more_than_linear_throughput_is_told_with_what_the_switches_say(throughput, sleeps, said):
    sentence = words.switched(counted((1.0, sleeps, sleeps), (0, 0, 0), throughput), "read")
    assert said in sentence if said else "linear" not in sentence


@pytest.mark.parametrize(
    ("sleeps", "waiting", "said"),
    [(1, 0.0, "no active backend waits inside PostgreSQL then. Neither"), (1, 0.1, "3.2 % of the active backends"), (1, 1.0, "few and long"), (2, 1.0, "Both name"), (2, 0.1, "many and short")],
)
def test_wait_events_are_told_beside_the_switches(sleeps, waiting, said):
    rows = [("CPU", "running", 3.0), ("Lock", "tuple", waiting)][: 2 if waiting else 1]
    sentence = words.switched(counted((1, 1, sleeps), (0, 0, 0)), "read", pd.DataFrame(rows, columns=["type", "event", "backends"]))
    assert said in sentence and ("Lock:tuple" in sentence) == bool(waiting)


def test_a_sweep_without_counts_has_no_sentence():
    assert words.switched(SimpleNamespace(table=lambda experiment, metric: pd.DataFrame()), "read") is None


def test_call_chains_become_causes_and_the_postmasters_are_left_out():
    chains = pd.DataFrame(
        [
            (("schedule", "epoll_wait", "WaitEventSetWait", "secure_read", "PostgresMain"), 6),
            (("schedule", "PGSemaphoreLock", "LWLockAcquire", "PostgresMain", "BackendMain", "ServerLoop"), 3),
            (("schedule", "irqentry_exit_to_user_mode", "_bt_first", "[unknown]"), 1),
            (("schedule", "epoll_wait", "WaitEventSetWait", "ServerLoop.isra.0", "PostmasterMain"), 90),
        ],
        columns=["chain", "samples"],
    )
    found = turns.causes(chains)
    assert dict(found.itertuples(index=False)) == {"the client": 6, "a lightweight lock": 3, turns.TURN: 1}
    assert "30.0 % of the writers' 10 switches" in words.chains(found.assign(load="writers"))
    assert "a lightweight lock" in drawn.call_chains(found.assign(load="writers")).description
    assert words.chains(None) is None and drawn.call_chains(None) is None


def test_a_curve_that_still_rises_is_not_said_to_keep_anything(monkeypatch):
    curves = {cores.BEFORE: pd.Series({1: 1.0, 64: 3.0}), cores.FIRST: pd.Series({1: 1.0, 24: 4.0, 64: 2.0}), cores.AFTER: pd.Series({1: 1.0, 64: 9.0})}
    monkeypatch.setattr(cores, "curve", lambda simulated, release: curves[release])
    sentence = words.flat(pd.DataFrame())
    assert "9.1 is fastest with 64 clients, as many as were tried; the first patch is fastest with 24 clients and keeps at least 50 %" in sentence


@pytest.mark.parametrize(
    ("peak", "said"),
    [((4.65, 2.0, 9.0), "at 5 [2, 9]"), ((4.65, 4.9e-08, float("inf")), "at 5 clients, but"), ((4.65, 0.1, 9.0), "at 9.0 clients at most"), ((0.5, 0.1, 9.0), "beyond one"), ((float("inf"), 3, float("inf")), "no peak.")],
)
def test_a_peak_is_told_as_far_as_its_interval_has_ends(peak, said):
    part = statistics.Interval(0.1, 0.05, 0.2, 4)
    assert said in words.law(SimpleNamespace(sigma=part, kappa=part, peak=statistics.Interval(*peak, 4)), "lookups")


def test_a_gain_that_no_line_reaches_is_said_to_be_out_of_reach(monkeypatch):
    monkeypatch.setattr(cores, "calibrated", lambda chapter: [COSTS] * 5)
    assert "No line" in words.line(None, swept({1e-8: 1.5, 1e-7: 2.1}))
    assert "No line" not in words.line(None, swept({1e-8: 1.5, 1e-7: 3.4}))
