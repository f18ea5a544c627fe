"""The chapter on the four tactics: the benchmark in miniature, costs, and what stands for each."""

import os
import socket
import struct

import pandas as pd
import pytest
from servers import small_chapter, unless_disturbed

from pgrerun.chapters import four_tactics as four
from pgrerun.chapters.four_tactics.miniature import Miniature
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.ingres import ENGINES, INTERPRETER
from pgrerun.lab.ingres.benchmark import ALONE, PAGES, TRACKS
from pgrerun.lab.instruments import callgrind, cold_files, opcodes, plans, wire
from pgrerun.lab.server import installed
from pgrerun.record import claims, printed, statistics, verdicts
from pgrerun.record.verdicts import Part, Verdict

SMALL = {"pairs": 5, "tuples": 10_000, "megabytes": 4, "milliseconds": 100}
experiments, evidence = four.experiments, four.evidence
today, connections = experiments.compilation_today, experiments.connections


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """A chapter with a server and a run record of its own; nothing is published for it."""
    with small_chapter("four_tactics", tmp_path_factory.mktemp("runs"), **SMALL) as opened:
        yield opened


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A chapter in which nothing is measured."""
    with small_chapter("four_tactics", tmp_path_factory.mktemp("runs"), **SMALL) as opened:
        yield opened


@pytest.fixture
def stored(tmp_path):
    """A chapter whose observations the test stores itself, by `observe`."""
    with small_chapter("four_tactics", tmp_path, **SMALL) as opened:
        yield opened


def observe(chapter, experiment: str, values: dict[str, dict[str, list[float]]]) -> None:
    """Store what an experiment could have measured: variant to metric to values by block."""
    for position, (variant, metrics) in enumerate(values.items()):
        blocks = len(next(iter(metrics.values())))
        for block in range(blocks):
            chapter.run.observe(
                experiment,
                variant,
                block,
                {name: series[block] for name, series in metrics.items()},
                units=dict.fromkeys(metrics, ""),
                seed=1,
                position=position,
                started_at="2026-01-01T00:00:00.000+00:00",
                flags={},
            )


def interval(estimate: float, width: float = 0.01) -> statistics.Interval:
    return statistics.Interval(estimate, estimate - width, estimate + width, 9)


def essential(facts) -> list[bool | None]:
    """What decides of a claim's facts."""
    parts = [fact if isinstance(fact, Part) else Part(fact) for fact in facts.values()]
    return [part.value for part in parts if part.essential]


def test_every_query_of_the_benchmark_runs_cold_and_warm_with_the_same_answer():
    sizes = {}
    for files in (PAGES, ALONE, TRACKS):
        with Miniature(files) as mini:
            for engine in ENGINES if files == PAGES else ENGINES[:1]:
                base = mini.base(engine)
                for run in ("a_0", "b_1", "c_210", "e_3360", "g_3360"):
                    warm, cold = mini.run(base, run), mini.run(base, run, warm=False)
                    assert warm["tuples"] == cold["tuples"] and cold["reads"] >= warm["reads"]
                    sizes.setdefault(run, set()).add(warm["tuples"])
    assert all(len(found) == 1 for found in sizes.values())


def test_the_miniature_reads_what_ingres_read():
    found = four.miniature.reads().set_index("run")
    assert found.loc["e_3360", "read"] == found.loc["e_3360", "printed, less catalogs"]
    assert abs(found.loc["f_3360", "read"] / found.loc["f_3360", "printed"] - 1) < 0.005
    assert "6 of 8 runs agree" in four.sentences.reads_agree(found.reset_index())
    assert all(evidence.files.cached(found.reset_index()).values())


def test_nothing_of_the_miniature_is_left_behind(base):
    with Miniature() as mini:
        mini.run(mini.base(INTERPRETER), "f_3360", warm=False)
        assert any(base.iterdir())
    assert not any(base.iterdir())


def test_compiled_code_takes_fewer_instructions():
    found = experiments.compilation.instructions()
    assert found["nodes"].to_list() == [8, 7]
    said = evidence.compilation
    assert (found["extra per node"] > 0).all() and said.over_threaded(found) > 1
    assert all(1 < tuples < 10 for tuples in said.break_even(found).values())


def test_a_run_of_the_miniature_is_counted_alike_each_time_and_grows_with_its_tuples():
    with Miniature() as mini:
        base = mini.base(INTERPRETER)
        counted = [
            opcodes.executed(base.execute, mini.warm(base, run))
            for run in ("b_1", "b_210", "b_210")
        ]
    assert counted[0] < counted[1] == counted[2]


@pytest.mark.parametrize(
    ("threaded", "more", "gains"),
    [
        ({"b": 90, "c": 50, "d": 20}, True, True),
        ({"b": 30, "c": 50, "d": 99}, False, None),
        ({"b": 90, "c": 20, "d": 50}, True, True),
    ],
    ids=["grows", "shrinks", "both"],
)
def test_gains_are_compared_step_by_step(threaded, more, gains):
    rows = [(f"{query}_3360", 100, cost) for query, cost in threaded.items()]
    rows += [(f"{query}_3360", 100, threaded["d"]) for query in "efghi"] + [("c_210", 10, 8)]
    counted = pd.DataFrame(rows, columns=["run", "interpreted", "compiled"])
    said = evidence.compilation
    by_print, in_miniature = {}, {}
    for words, part in said.more_complex(counted).items():
        (in_miniature if isinstance(part, Part) else by_print)[words] = part
    assert list(by_print.values()) == [True, True]
    assert [(part.value, part.essential) for part in in_miniature.values()] == [(more, False)]
    assert said.a_tuple(counted) == 90 / (threaded["c"] - 8)
    joins = {(part.value, part.opposite) for part in said.joins(counted).values()}
    assert joins == {(gains is True, False)}


def test_each_long_command_is_held_against_the_closing_tables_range_of_files():
    found = evidence.files.concluded()
    assert essential(found) == [True, False]
    together = {part.value for part in found.values() if isinstance(part, Part)}
    assert together == {True}
    assert verdicts.judge(claims.ledger()["ston-059"], found).verdict is Verdict.WEAKER


@pytest.mark.parametrize(
    ("cpu", "response", "word"),
    [
        ((1.054, 1.44), (1.046, 1.54), Verdict.HOLDS),
        ((1.06, 1.46), (1.06, 1.4), Verdict.WEAKER),
        ((1.044, 1.2), (1.2, 1.56), Verdict.GONE),
    ],
    ids=["as they are rounded", "one command too much", "one of either too little or too much"],
)
def test_gains_of_files_are_compared_as_the_closing_table_prints_them(
    monkeypatch, cpu, response, word
):
    tables = {"four_tactics_conclusions": printed.table("four_tactics_conclusions")}
    for what, gains in {"cpu": cpu, "wall": response}.items():
        short = {"size": 1, "fs": 1.0, "ingres": 9.0}
        long = [{"size": 3360, "fs": 1.0, "ingres": gain} for gain in gains]
        tables[f"four_tactics_files_{what}"] = pd.DataFrame([short, *long])
    monkeypatch.setattr(printed, "table", tables.__getitem__)
    found = evidence.files.concluded()
    assert verdicts.judge(claims.ledger()["ston-059"], found).verdict is word


def test_microcode_gains_are_shares_of_the_new_time():
    found = evidence.microcode.estimate()
    together, words, of_the_old = found.values()
    assert (together, words, of_the_old.value) == (True, True, False)


def test_only_cpu_time_decides_how_dramatic_a_gain_is():
    parts = evidence.compilation.dramatic()
    assert {words: part.value for words, part in parts.items() if part.essential} == {
        "query d gains 25 % and more of its CPU time": True,
        "query e gains 25 % and more of its CPU time": True,
    }


SHOWN_OF_RESULTS = (
    four.charts.raw,
    four.charts.asynchronous,
    four.charts.costs,
    four.charts.connections,
    four.sentences.jit,
    four.sentences.vectors,
    four.sentences.connection_times,
)


@pytest.mark.parametrize("shown", SHOWN_OF_RESULTS, ids=lambda shown: shown.__qualname__)
def test_nothing_is_shown_of_what_did_not_run(empty, shown):
    assert empty.show(shown) is None


def test_a_tactic_that_did_not_run_is_left_out_of_the_closing_table(empty):
    effort = evidence.tactics.effort(empty, None)
    assert effort == {}
    assert (four.sentences.closing(effort).frame.iloc[:, -1] == "not measured").all()


def test_the_ranking_turns_with_the_gains():
    tactics = evidence.tactics.PRINTED
    effort = dict(zip(tactics, map(interval, (2.0, 1.5, 1.02, 1.1))))
    assert essential(evidence.tactics.ranking(effort)) == [True, True]
    turned = dict(zip(tactics, map(interval, (1.0, 1.0, 9.0, 8.0))))
    assert essential(evidence.tactics.ranking(turned)) == [False, False]
    assert all(part.opposite for part in evidence.tactics.ranking(turned).values())
    unsure = dict(zip(tactics, [interval(1.3, 0.2)] * 4))
    assert set(essential(evidence.tactics.ranking(unsure))) == {None}
    assert evidence.tactics.ranking({}) is None


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (interval(1.5), "a gain of a quarter and more"),
        (interval(1.1), "a gain of less than a quarter"),
        (interval(1.03), "a gain of less than a twentieth"),
        (interval(1.25), "a gain, perhaps of a quarter"),
        (interval(0.8), "a loss"),
        (interval(1.0), "no sure gain, and less than a quarter"),
        (interval(1.1, 0.3), "which may be a gain or none"),
        (1.0, "no sure gain, and less than a quarter"),
        (1.086, "a gain of less than a quarter"),
    ],
)
def test_what_a_tactic_gains_is_said_as_far_as_it_is_sure(empty, gain, words):
    assert evidence.tactics.pays(gain) == words
    drawn = four.charts.closing(empty, {evidence.tactics.MICROCODE: gain})
    assert words in drawn.caption and "Printed" in drawn.description


def test_captions_say_what_was_found_beside_the_print(stored):
    metrics = ("switch", "message", "call", "pointer", "task")
    observe(stored, "costs", {"here": {name: [2.0] * 5 for name in metrics}})
    said = four.charts.costs(stored).caption
    assert said.startswith("In this run, in µs: switch of processes 2, message 2, call into")
    assert "In print: task switch, UNIX 270, " in said
    ways = {"messages": [2.0] * 5, "client": [1.0] * 5, "server": [1.0] * 5}
    observe(stored, "ways", {"Unix socket": ways})
    said = four.charts.connections(stored).caption
    assert said.startswith(
        "In this run a command takes 2 messages and 2 task switches (Unix socket)"
    )
    assert "In print it takes 4 messages and" in said


def test_a_loss_is_told_as_so_many_times_as_much(empty):
    drawn = four.charts.closing(empty, {evidence.tactics.COMPILATION: interval(0.04, 0.001)})
    assert "compilation, long commands: a loss, 25.0 [" in drawn.caption
    assert "times as much with it as without" in drawn.caption


def test_the_closing_chart_has_response_time_beside_response_time(empty):
    drawn = four.charts.closing(empty, {}).chart.to_dict()
    [rows] = drawn["datasets"].values()
    ends = {row["label"]: (row["low"], row["high"]) for row in rows}
    assert ends[evidence.tactics.FILES] == pytest.approx((1.05, 1.5))
    assert ends[evidence.tactics.COMPILATION] == pytest.approx((1.25, 2))


def test_the_simulated_disk_gives_query_e_its_printed_time_and_tracks_nearly_theirs():
    requested = experiments.files.requests()
    found = evidence.files.simulated(requested)
    e = found.loc["e_3360"]
    assert e["unix"] == pytest.approx(e["printed unix"], rel=1e-3)
    assert found["requests"]["e_3360"] == 605
    # no constant was set by the times on tracks
    near = (found["tracks"] / found["printed tracks"] - 1).abs()
    assert near[["e_3360", "g_3360", "h_3360", "i_3360"]].max() < 0.05
    assert "ms, so that query e" in four.sentences.simulated(requested)
    # the print's gain lies between what the disks that others have set foretell
    joins, scans = sorted(evidence.files.foretold(requested).values())
    assert 1 < joins < e["printed gain"] < scans
    assert 0.5 < evidence.files.by_contiguous_tracks(requested) < 1
    assert four.sentences.requests(requested).frame.shape[0] == 8


def test_the_kernel_reads_ahead_of_two_reads_in_a_row(chapter):
    found = experiments.files.read_ahead(chapter).set_index("pattern")
    assert found.loc["two in a row", "fetched"] > found.loc["two in a row", "asked"]
    assert found.loc["eight far apart", "fetched"] <= 2 * found.loc["eight far apart", "asked"]
    assert four.charts.fetched_ahead(found.reset_index()).description


def test_a_jump_away_and_back_is_told_from_one_that_starts_over():
    files = experiments.files
    found = pd.DataFrame(
        {
            "pattern": [files.ONE, files.TWO, files.ROW, files.JUMPS],
            "reads": [1, 2, 40, 48],
            "asked": [4, 8, 160, 192],
            "fetched": [4, 20, 824, 856],
        }
    )
    assert list(essential(evidence.files.read_ahead(found))) == [True, False]
    assert "664 kB with the jumps. It doesn't" in four.sentences.jumps(found)
    over = found.assign(fetched=[4, 20, 824, 200])
    assert all(essential(evidence.files.read_ahead(over)))
    assert "start over" in four.sentences.jumps(over)


def test_hashed_and_indexed_sequential_relations_read_what_their_structures_imply():
    found = four.miniature.structures().set_index("query")
    assert found.loc["e", "hash"] == 646 + 130  # no range of the key but all of it
    assert found.loc["g", "hash"] < found.loc["g", "ISAM"]  # a lookup reads no directory
    assert found.loc["e", "hash, pages half full"] == 1292
    assert len(experiments.files.requests(1.0)["e_3360"][PAGES].trace) == 646 + 130


def test_how_full_hashed_pages_are_decides_whether_they_gain_as_isam_does():
    """The memorandum doesn't print it, which is why its claim is set aside."""
    isam = experiments.files.requests()
    full, half = (
        evidence.files.similar_structures(isam, experiments.files.requests(part))
        for part in (1.0, 0.5)
    )
    assert len(full) == len(half) == 5
    claim = claims.ledger()["ston-047"]
    assert verdicts.judge(claim, full).verdict is not verdicts.judge(claim, half).verdict
    assert set(claim.capabilities) & set(claims.OUT_OF_REACH)


def test_relations_are_compared_on_one_disk():
    isam = experiments.files.requests()
    keyed = {run: by for run, by in isam.items() if run[0] in "efghi"}
    assert all(evidence.files.similar_structures(isam, keyed, margin=1e-9).values())
    # requests for twice as many pages take longer on the same disk, and not on one set by them
    twice = {
        run: {
            files: by._replace(trace=by.trace * (2 if files == PAGES else 1))
            for files, by in of.items()
        }
        for run, of in keyed.items()
    }
    assert not evidence.files.similar_structures(isam, twice)["query e gains about as much"]


def test_files_that_stay_cached_are_no_cold_files(chapter, monkeypatch):
    monkeypatch.setattr(cold_files, "fetched", lambda path, blocks: 0)
    with pytest.raises(CannotMeasure, match="PGRERUN_TMPDIR"):
        experiments.reading.file_systems(chapter)


def test_raw_files_are_read_whole_in_every_way(chapter):
    files = experiments.files
    files.raw(chapter)
    assert chapter.ratio("raw files", "cpu", files.SMALL, files.CACHED).estimate > 0
    copied = evidence.files.without_copy(chapter)
    assert all(part.value.estimate > 0 for part in copied.values())
    assert [name for name, part in copied.items() if part.essential] == [
        "a track, waited for in both ways"
    ]
    assert files.AHEAD in four.charts.raw(chapter).description


def test_both_ways_to_read_a_track_wait_as_often(chapter):
    files = experiments.files
    cold_files.require_forgettable()
    files.raw(chapter)
    both = chapter.ratio("raw files", "waits", files.TRACK, files.TRACK_DIRECT)
    less = chapter.ratio("raw files", "waits", files.AHEAD, files.TRACK_DIRECT)
    assert 0.8 < both.estimate < 1.25 and less.estimate < 0.5


def test_the_scan_reads_the_relation_and_not_its_index(chapter):
    """Else it were answered by an index-only scan, with a tenth of the pages."""
    reading = experiments.reading
    reading.asynchronous(chapter)
    statements = experiments.parts.STATEMENTS
    with chapter.cluster(
        track_io_timing="on", io_method="sync", debug_io_direct="data"
    ).connect() as connection:
        size = connection.execute("SELECT pg_relation_size('parts') / 8192").fetchone()[0]
        statements.run(connection, "reading.sequential_only")
        scan = plans.explain(connection, statements.text("reading.scan"))
        statements.run(connection, "reading.bitmap_only")
        scattered = plans.explain(connection, statements.text("reading.scattered"))
    assert scan.find("Seq Scan") and scattered.find("Bitmap Heap Scan")
    assert (chapter.table("asynchronous", "reads")[reading.SYNC_ONE] >= size).all()
    assert all(evidence.files.waiting(chapter, what).low >= 0 for what in ("scan", "scattered"))
    assert four.charts.asynchronous(chapter).description


def test_costs_are_of_what_the_report_adds_up(chapter):
    system = evidence.operating_system
    with unless_disturbed():
        experiments.operating_system.costs(chapter, rounds=300)
    for above, below in (("message", "pointer"), ("switch", "task")):
        assert system.cost_ratio(chapter, above, below).estimate > 0


def test_commands_whose_answer_stays_take_two_messages_each(chapter):
    system = evidence.operating_system
    with unless_disturbed():
        experiments.operating_system.costs(chapter, rounds=300)
    experiments.operating_system.commands(chapter)
    assert list(system.messages(chapter).values()) == [True, False]
    found = system.without_messages(chapter)
    assert 1 < found["long"].estimate < found["short"].estimate


def segments(connection) -> int:
    """Segments with data that the kernel has sent and received on a TCP connection.

    By tcp_info of linux/tcp.h.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    received, sent = struct.unpack_from("=II", info, 152)  # tcpi_data_segs_in, tcpi_data_segs_out
    return received + sent


def test_messages_are_counted_as_the_kernel_counts_them(chapter):
    experiments.parts.load(chapter, chapter.server)
    short = experiments.parts.COMMANDS["short"]
    with chapter.cluster().listening() as face, wire.Line(face) as line:
        assert line.route == wire.LOOPBACK
        for request, together in ((wire.simple, 1), (wire.pipelined, 50)):
            before = segments(line.connection)
            spent = line.run(short, 200, request=request, together=together)
            sent = segments(line.connection) - before
            assert spent.messages * 200 == sent == 2 * 200 / together


def test_a_command_that_fails_on_the_way_is_told(chapter):
    experiments.parts.load(chapter, chapter.server)
    nobody = "SELECT qoh FROM parts WHERE pnum = -1"
    with wire.Line(chapter.server) as line:
        with pytest.raises(ServerError, match="0 tuples"):
            line.run(nobody, 1)
        assert line.run(nobody, 1, tuples=0).messages == 2


def test_whoever_waits_is_switched_and_nobody_else(chapter):
    with unless_disturbed():
        connections.connections(chapter)
    found = evidence.operating_system.per_command(chapter)
    found["estimate"] = [cost.estimate for cost in found["cost"]]
    cost = found.set_index(["variant", "what"])["estimate"]
    messages, switches = cost.xs("messages", level="what"), cost.xs("task switches", level="what")
    line, alone, duck = wire.UNIX, connections.ALONE, connections.DUCKDB
    pipelined = connections.pipelined(line)
    assert set(messages.index) == {line, pipelined, wire.LOOPBACK, alone, duck}
    assert messages[line] == messages[wire.LOOPBACK] == 2
    # a preemption by somebody else is a switch as well, but it comes once in many commands
    assert switches[[line, wire.LOOPBACK]].min() > switches[[pipelined, alone, duck]].max()
    assert 1 <= messages[alone] < 1.2 and messages[duck] == 0
    assert "single-user backend" in four.sentences.connection_times(chapter)
    assert evidence.operating_system.times(chapter)[alone].estimate > 0
    assert "INGRES, one tuple" in four.charts.connections(chapter).description


def test_somebodys_server_is_asked_by_its_url_only(tmp_path, borrowed_url):
    with small_chapter("four_tactics", tmp_path, server=borrowed_url, **SMALL) as guest:
        connections.connections(guest, commands=50)
        found = evidence.operating_system.per_command(guest)
        line = wire.UNIX
        assert set(found["variant"]) == {line, connections.pipelined(line), connections.DUCKDB}
        assert "single-user" not in four.sentences.connection_times(guest)
        guest.server.close()


def test_a_restart_that_is_not_ours_sets_its_claims_aside(tmp_path, borrowed_url, capsys):
    with small_chapter("four_tactics", tmp_path, server=borrowed_url, **SMALL) as guest:
        reading = experiments.reading
        assert guest.attempt(reading.asynchronous) is None
        assert guest.show(four.charts.asynchronous) is None
        guest.judge("ston-042", guest.ratio, "asynchronous", "scan", "a", "b")
        guest.judge("ston-050", evidence.files.switches_per_read)
        guest.judge("ston-045")
        assert guest.attempt(experiments.operating_system.commands) is None
        guest.judge("ston-053", evidence.operating_system.without_messages)
        of_two = evidence.tactics.ranking(evidence.tactics.effort(guest, None))
        guest.judge("ston-057", beside={"of two tactics": of_two})
        words = {str(judgement.verdict) for judgement in guest.evidence.judgements}
        assert words == {str(Verdict.NOT_TESTABLE)}
        guest.server.close()


def test_plans_made_ahead_do_not_look_at_the_constant(chapter):
    said = evidence.compilation_today
    chosen = today.run_time_plans(chapter)
    grown, joined = today.growing(chapter), today.partial_results(chapter)
    assert essential(said.run_time_plans(chosen, grown, joined)) == [True]
    path = grown.set_index(["when", "relation"])["path"]
    stale = grown.assign(path=path[today.WITH_CONSTANT, today.SMALL])
    assert essential(said.run_time_plans(chosen, stale, joined)) == [False]
    assert joined["found"].nunique() == 1 and joined["foreseen"].nunique() == 2
    assert not any(essential(said.conversions(today.conversions(chapter))))


def test_both_checksums_are_timed(chapter):
    microcode = experiments.microcode
    microcode.checksums(chapter, kilobytes=64)
    ratio = chapter.ratio("checksums", "time", microcode.BY_TABLE, microcode.BY_INSTRUCTION)
    assert ratio.estimate > 0


def test_the_closing_table_has_each_tactics_own_effect_and_months():
    rows = four.sentences.closing({evidence.tactics.COMPILATION: interval(2.0)}).frame
    rows = rows.set_index("tactic")
    said = [
        ("compilation", "25-100%", "4"),
        ("file system", "5-40% CPU time, 5-50% response", "2"),
        ("microcode", "2.3-6.9%", "more than 6"),
        ("operating system", "1-4%", "6 to 12"),
        ("operating system", "1-4%", "6 to 12"),
    ]
    for (tactic, effect, months), (name, row) in zip(said, rows.iterrows(), strict=True):
        assert name.startswith(tactic) and row["published effect"].startswith(effect)
        assert row["published man-months"] == months
    assert rows.iloc[0, -1].startswith("2") and (rows.iloc[1:, -1] == "not measured").all()


def test_the_chart_of_the_print_has_words_and_data():
    figure = four.charts.published()
    assert "Printed" in figure.description and figure.caption


def test_both_file_systems_answer_alike_and_read_past_the_kernel_or_not(chapter):
    reading = experiments.reading
    reading.file_systems(chapter)
    found = chapter.run.observations("file systems")
    assert set(found["variant"]) == {reading.UNIX, reading.RAW}
    assert (found["value"] > 0).all()
    for runs in (evidence.files.SCANS, four.miniature.LONG, reading.MORE_SCANS):
        assert set(evidence.files.gains(chapter, *runs)) == {"CPU", "response"}
    requested = experiments.files.requests()
    assert "Simulated" in four.charts.file_systems(chapter, requested).description


def test_indexes_of_both_kinds_touch_fewer_pages_than_scans(chapter):
    found = experiments.reading.keyed(chapter).set_index("query")
    assert (found[["btree", "hash"]] > 0).all(axis=None)
    # a range of the key is no business of a hash
    assert found.loc["f", "btree"] > found.loc["e", "hash"]


def test_the_profile_counts_what_a_command_does_and_how_often(chapter):
    microcode, said = experiments.microcode, evidence.microcode
    if callgrind.unavailable():
        with pytest.raises(CannotMeasure):
            microcode.profile(chapter)
        return
    found = microcode.profile(chapter)
    lookups = {microcode.AS_TEXT, microcode.PARSED_AHEAD}
    more = {microcode.TEN_TIMES, microcode.EACH, *lookups}
    assert set(found["run"]) == {*four.miniature.LONG, *more}
    calls = found[found["function"] == "dlog1"].groupby("run")["calls"].sum()
    assert calls[microcode.EACH] == 3360 and calls["d_3360"] <= 2
    assert 0 < said.in_the_loop(found) < said.share(found, said.SCANNING, account="inclusive") < 1
    assert said.by_function(found).sum() == pytest.approx(1)
    assert 1 < said.parsed_each_time(found, (microcode.TEN_TIMES,)) < said.parsed_each_time(found)
    assert said.folding(found) > 1 and said.parsed_ahead(found) > 1
    assert all(0 < share < 0.5 for share in said.reading_and_copying(found).values())
    assert "GETSYMBOL" in four.charts.profiled(found).description


def test_a_release_with_a_compiler_is_found_or_its_lack_told(chapter):
    if not any(programs.jit for programs in installed()):
        with pytest.raises(CannotMeasure, match="LLVM"):
            today.compiling(chapter)
        return
    said, found = evidence.compilation_today, today.compiling(chapter)
    assert all(said.one_compilation(found).values())
    counted = pd.DataFrame({"run": ["b_1"], "interpreted": [3], "compiled": [2]})
    assert "PostgreSQL" in four.charts.compiled(chapter, counted).caption


@pytest.mark.parametrize(
    ("compiled", "tuples"),
    [([3e-8] * 5, 5_000_000), ([4.1e-8, 3.9e-8, 4.2e-8, 4.1e-8, 3.8e-8], None)],
    ids=["quicker", "not quicker"],
)
def test_break_even_of_jit_is_its_price_over_what_it_saves(stored, compiled, tuples):
    values = {
        today.INTERPRETED: {"tuple c": [4e-8] * 5, "compiling c": [0.0] * 5},
        today.JITTED: {"tuple c": compiled, "compiling c": [0.05] * 5},
    }
    observe(stored, "evaluating", values)
    said = evidence.compilation_today
    found = said.jit_break_even(stored)
    assert found is tuples is None or found.estimate == pytest.approx(tuples)
    assert said.least_break_even(stored).estimate == pytest.approx(0.05 / 4e-8)


def test_the_page_says_on_which_release_jit_was_measured(stored):
    runs = four.miniature.RUNS
    seconds = {f"wall {run}": [1.0] * 5 for run in (*runs, today.LARGE)}
    observe(stored, "jit", {today.INTERPRETED: seconds, today.JITTED: seconds})
    a_tuple = {"tuple c": [4e-8] * 5, "compiling c": [0.05] * 5}
    faster = a_tuple | {"tuple c": [3e-8] * 5}
    observe(stored, "evaluating", {today.INTERPRETED: a_tuple, today.JITTED: faster})
    said = evidence.compilation_today
    counted = pd.DataFrame({"run": ["b_1"], "interpreted": [3], "compiled": [2]})
    assert said.elsewhere(stored) == said.note(stored, "d") == ""
    assert "has no LLVM" not in four.charts.compiled(stored, counted).caption
    stored.run.environment[today.ELSEWHERE] = {"name": "the spare one", "version": "15.99"}
    own = stored.run.environment["server"]["version"]
    for text in (
        four.sentences.jit(stored),
        four.charts.compiled(stored, counted).caption,
        four.charts.closing(stored, {evidence.tactics.COMPILATION: interval(0.1)}).caption,
    ):
        assert "PostgreSQL 15.99 (the spare one)" in text and f"PostgreSQL {own}, has no" in text
    assert said.gain(stored, "wall", *four.miniature.LONG).estimate == 1


def test_a_break_even_has_an_interval_though_a_block_saves_nothing(stored):
    tuples = [3e-8, 3.1e-8, 4.1e-8, 3e-8, 2.9e-8, 3e-8, 3.1e-8, 3e-8, 3e-8]
    values = {
        today.INTERPRETED: {"tuple c": [4e-8] * 9, "compiling c": [0.0] * 9},
        today.JITTED: {"tuple c": tuples, "compiling c": [0.05] * 9},
    }
    observe(stored, "evaluating", values)
    found = evidence.compilation_today.jit_break_even(stored)
    assert found.estimate == pytest.approx(5_000_000) and 4e6 < found.low < found.high < 1e7


def test_without_checksums_is_what_an_instruction_could_gain_at_most():
    run = four.miniature.LONG[0]
    rows = [(run, "pg_checksum_page", 10), (run, "ExecScan", 90), ("other", "ExecScan", 900)]
    found = pd.DataFrame(rows, columns=["run", "function", "exclusive"])
    assert evidence.microcode.without_checksums(found) == pytest.approx(100 / 90)


def test_in_print_every_long_command_gains_less_response_than_processor_time():
    found = evidence.compilation_today.printed_dilution()
    assert len(found) == 11 and all(found.values())


def test_the_closing_table_is_held_against_the_memorandums_own_tables():
    found = evidence.compilation.concluded()
    assert found["no short command changes its response time"]
    assert not found["long ones gain 25 to 100 % of response time"]
    assert found["long ones gain 25 to 100 % of CPU time"]
    assert not found["no short command changes its CPU time"]
    assert evidence.compilation.concluded(margin=0.1)["no short command changes its CPU time"]
