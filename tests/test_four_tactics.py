"""The chapter on the four tactics: the benchmark in miniature, costs, and what stands for each."""

import ast
import math
import os
import socket
import struct
from pathlib import Path

import pandas as pd
import pytest
from servers import small_chapter, unless_disturbed

from pgrerun.chapters import four_tactics as four
from pgrerun.chapters.four_tactics.miniature import Miniature
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab import ingres
from pgrerun.lab.ingres import ENGINES, INTERPRETER, THREADED
from pgrerun.lab.ingres.benchmark import ALONE, PAGES, TRACKS
from pgrerun.lab.instruments import cold_files, plans, simd, wire
from pgrerun.lab.server import installed
from pgrerun.record import printed, statistics
from pgrerun.record.claims import Verdict

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
    assert all(evidence.compilation.cached_joins(found.reset_index()).values())


def test_nothing_of_the_miniature_is_left_behind(base):
    with Miniature() as mini:
        mini.run(mini.base(INTERPRETER), "f_3360", warm=False)
        assert any(base.iterdir())
    assert not any(base.iterdir())


def test_a_compiled_command_is_compiled_once_and_a_constant_computed_once():
    steps, reused = experiments.compilation.steps(), experiments.compilation.reuse()
    assert all(evidence.compilation.constants(steps).values())
    assert (reused["compilations"] == 2).all() and reused["commands"].iloc[0] == 1 + 3360


def test_break_even_is_what_compiling_costs_over_what_it_saves(stored):
    few, many = 0.002, 0.002 + 3150 * 1e-5
    compiled = few + 3150 * 1e-6
    values = {
        INTERPRETER: {"c_1": [1e-4] * 5, "c_210": [few] * 5, "c_3360": [many] * 5},
        THREADED: {"c_1": [1.9e-4] * 5, "c_210": [few] * 5, "c_3360": [compiled] * 5},
    }
    observe(stored, "engines", values)
    assert evidence.compilation.break_even(stored).estimate == pytest.approx(11)
    assert evidence.compilation.cheaper_tuple(stored).estimate == pytest.approx(10)


SHOWN_OF_RESULTS = (
    four.charts.compiled,
    four.charts.file_systems,
    four.charts.profiled,
    four.charts.raw,
    four.charts.asynchronous,
    four.charts.costs,
    four.charts.connections,
    four.sentences.scale,
    four.sentences.break_even,
    four.sentences.vectors,
    four.sentences.bound,
    four.sentences.checksums,
    four.sentences.read_ahead_gain,
    four.sentences.processor_share,
    four.sentences.copying,
    four.sentences.asked_ahead,
    four.sentences.table_9,
    four.sentences.cheaper_since,
    four.sentences.connections,
    four.sentences.connection_times,
)


@pytest.mark.parametrize("shown", SHOWN_OF_RESULTS, ids=lambda shown: shown.__qualname__)
def test_nothing_is_shown_of_what_did_not_run(empty, shown):
    assert empty.show(shown) is None


def test_a_tactic_that_did_not_run_is_left_out_of_the_closing_table(empty):
    effort = evidence.tactics.effort(empty)
    assert effort == {}
    assert (four.sentences.closing(effort).frame.iloc[:, -1] == "not measured").all()


def test_the_ranking_turns_with_the_gains():
    tactics = ("compilation", "files", "microcode", "system")
    effort = dict(zip(tactics, map(interval, (2.0, 1.5, 1.02, 1.1))))
    assert all(evidence.tactics.ranking(effort).values())
    turned = dict(zip(tactics, map(interval, (1.0, 1.5, 9.0, 1.1))))
    assert list(evidence.tactics.ranking(turned).values()) == [False, True, False, True]


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
    assert list(evidence.files.read_ahead(found).values()) == [True, True, False]
    assert "664 kB more with the jumps. It doesn't" in four.sentences.jumps(found)
    over = found.assign(fetched=[4, 20, 824, 200])
    assert all(evidence.files.read_ahead(over).values())
    assert "start over" in four.sentences.jumps(over)


def test_hashed_and_indexed_sequential_relations_read_what_their_structures_imply():
    found = four.miniature.structures().set_index("query")
    assert found.loc["e", "hash"] == 646 + 130  # no range of the key but all of it
    assert found.loc["g", "hash"] < found.loc["g", "ISAM"]  # a lookup reads no directory
    assert found.loc["e", "hash, pages half full"] == 1292
    facts = evidence.files.structures(found.reset_index())
    assert facts["query f reads about as much"] and not facts["query e reads about as much"]


def test_threaded_code_takes_more_instructions_than_code_in_line():
    found = experiments.compilation.extra_instructions()
    assert (found["extra per node"] > 0).all() and found["nodes"].to_list() == [8, 7]
    few = found.assign(**{"extra per node": [3.0, 3.1]})
    assert evidence.compilation.extra_instructions(few) == {
        "query c: 3 or fewer": True,
        "query d: 3 or fewer": False,
    }


def test_a_read_that_did_not_sleep_was_quicker_or_the_page_says_otherwise(stored):
    reading, said = experiments.reading, four.sentences.fewer_switches
    values = {"reads": [100.0] * 5, "switches": [70.0, 71, 72, 73, 74]}
    observe(stored, "asynchronous", {reading.SYNC_ONE: values})
    found = experiments.files.sleeps(stored)
    assert found["reads"].sum() == stored.parameters.megabytes * 128
    both = pd.DataFrame({"slept": [False, True], "reads": [20, 80], "microseconds": [60.0, 100.0]})
    assert "20 came without a switch" in said(stored, both)
    assert "needs no switch" in said(stored, both)
    assert "weren't the faster" in said(stored, both.assign(microseconds=[100.0, 60.0]))
    assert "for each of" in said(stored, both[both["slept"]])
    assert "for none of" in said(stored, both[~both["slept"]])


def test_files_that_stay_cached_are_no_cold_files(chapter, monkeypatch):
    monkeypatch.setattr(cold_files, "fetched", lambda path, blocks: 0)
    with pytest.raises(CannotMeasure, match="PGRERUN_TMPDIR"):
        experiments.files.cold(chapter)


def test_raw_files_are_read_whole_in_every_way(chapter):
    files = experiments.files
    files.raw(chapter)
    measured = chapter.table("raw files", "wall")
    assert set(measured) == set(files.READINGS) and (measured > 0).all(axis=None)
    assert "went to sleep" in four.sentences.copying(chapter)


def test_the_scan_reads_the_relation_and_not_its_index(chapter):
    """Else it were answered by an index-only scan, with a tenth of the pages."""
    reading = experiments.reading
    reading.asynchronous(chapter)
    statements = experiments.parts.STATEMENTS
    with chapter.cluster(io_method="sync", debug_io_direct="data").connect() as connection:
        size = connection.execute("SELECT pg_relation_size('parts') / 8192").fetchone()[0]
        statements.run(connection, "reading.sequential_only")
        scan = plans.explain(connection, statements.text("reading.scan"))
        statements.run(connection, "reading.bitmap_only")
        scattered = plans.explain(connection, statements.text("reading.scattered"))
    assert scan.find("Seq Scan") and scattered.find("Bitmap Heap Scan")
    assert (chapter.table("asynchronous", "reads")[reading.SYNC_ONE] >= size).all()
    assert four.charts.asynchronous(chapter).description


def test_costs_are_of_what_the_report_adds_up(chapter):
    system = evidence.operating_system
    with unless_disturbed():
        experiments.operating_system.costs(chapter, rounds=300)
    for above, below in (("message", "pointer"), ("switch", "task")):
        assert system.cost_ratio(chapter, above, below).estimate > 0
    assert set(system.today(chapter)) == {"switch", "message"}


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
    with wire.Line(chapter.server) as line, pytest.raises(ServerError, match="one tuple"):
        line.run(nobody, 1)


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
    assert "TCP loopback 2.00 and" in four.sentences.connections(chapter)
    assert evidence.operating_system.working(chapter).estimate > 0
    assert "on a processor for" in four.sentences.connection_times(chapter)
    assert set(evidence.operating_system.times(chapter)) == set(messages.index) - {line}
    assert "INGRES, one tuple" in four.charts.connections(chapter).description


@pytest.mark.parametrize(("switches", "spared"), [(0.01, True), (1.5, False)])
def test_a_single_user_backend_is_said_to_be_spared_what_it_is(stored, switches, spared):
    line = {"time": [1e-4] * 5, "messages": [2.0] * 5, "client": [1.0] * 5, "server": [1.0] * 5}
    alone = line | {"messages": [1.0] * 5, "client": [0.0] * 5, "server": [switches] * 5}
    observe(stored, "ways", {wire.UNIX: line, connections.ALONE: alone})
    assert ("spared is waiting" in four.sentences.connections(stored)) is spared


def test_somebodys_server_is_asked_by_its_url_only(tmp_path, borrowed_url):
    with small_chapter("four_tactics", tmp_path, server=borrowed_url, **SMALL) as guest:
        connections.connections(guest, commands=50)
        found = evidence.operating_system.per_command(guest)
        line = wire.UNIX
        assert set(found["variant"]) == {line, connections.pipelined(line), connections.DUCKDB}
        assert "throwaway servers only" in four.sentences.connections(guest)
        assert "single-user" not in four.sentences.connection_times(guest)
        guest.server.close()


def test_a_restart_that_is_not_ours_sets_its_claims_aside(tmp_path, borrowed_url, capsys):
    with small_chapter("four_tactics", tmp_path, server=borrowed_url, **SMALL) as guest:
        reading = experiments.reading
        assert guest.attempt(reading.asynchronous) is None
        assert guest.show(four.charts.asynchronous) is None
        guest.judge("ston-042", guest.ratio, "asynchronous", "scan", "a", "b")
        guest.judge("ston-050", evidence.files.switches)
        evidence.tactics.out_of_reach(guest)
        guest.judge("ston-045")
        guest.judge("ston-057", evidence.tactics.ranking, evidence.tactics.effort(guest))
        verdicts = {str(judgement.verdict) for judgement in guest.evidence.judgements}
        assert verdicts == {str(Verdict.NOT_TESTABLE)}
        guest.server.close()


def test_messages_grow_with_the_answer_and_only_by_its_tuples(chapter):
    found = experiments.operating_system.messages(chapter)
    facts = evidence.operating_system.messages(found)
    assert list(facts.values())[:2] == [False, True]
    assert found["with a tuple"].to_list() == found["tuples"].to_list()


def test_plans_made_ahead_do_not_look_at_the_constant(chapter):
    said = evidence.compilation_today
    assert all(said.run_time_plans(today.run_time_plans(chapter)).values())
    assert not any(said.conversions(today.conversions(chapter)).values())
    assert all(today.prepared(chapter).values())


def test_pgbench_and_the_clients_run_the_same_long_command():
    statements = experiments.parts.STATEMENTS
    assert statements.text("commands.long") in statements.script("long")


def test_the_branch_is_all_that_differs(chapter):
    microcode = experiments.microcode
    microcode.branches(chapter)
    pages = set()
    with chapter.server.connect() as connection:
        for order in microcode.BRANCHES.values():
            relation = f"branches_{order}"
            query = f"SELECT count(*), sum(pnum), pg_relation_size('{relation}') FROM {relation}"
            pages.add(connection.execute(query).fetchone())
    assert len(pages) == 1
    assert set(chapter.table("branches", "seconds")) == set(microcode.BRANCHES)


def test_a_release_with_a_compiler_is_found_or_its_lack_told(chapter):
    if not any(programs.jit for programs in installed()):
        with pytest.raises(CannotMeasure, match="LLVM"):
            today.compile_times(chapter)
        return
    found = today.compile_times(chapter)
    assert all(evidence.compilation_today.one_compilation(found).values())
    assert evidence.compilation_today.compile_seconds(found).estimate > 0
    today.jit(chapter)
    compiling, running = chapter.table("jit", "compiling"), chapter.table("jit", "running")
    assert (compiling[today.JITTED] > 0).all() and (compiling[today.INTERPRETED] == 0).all()
    assert (running > 0).all(axis=None)
    assert "makes up for that" in four.sentences.jit(chapter, found)


@pytest.mark.parametrize(
    ("running", "tuples"),
    [([0.003] * 5, 50 * SMALL["tuples"]), ([0.0041, 0.0039, 0.0042, 0.0041, 0.0038], None)],
    ids=["quicker", "not quicker"],
)
def test_break_even_of_jit_is_its_price_over_what_it_saves(stored, running, tuples):
    values = {
        today.INTERPRETED: {"running": [0.004] * 5, "compiling": [0.0] * 5},
        today.JITTED: {"running": running, "compiling": [0.05] * 5},
    }
    observe(stored, "jit", values)
    found = evidence.compilation_today.jit_break_even(stored)
    assert found is tuples is None or found.estimate == pytest.approx(tuples)


def test_table_nine_with_the_costs_of_1981_is_table_nine(stored):
    system, said = evidence.operating_system, printed.table("four_tactics_said").value
    costs = {
        "switch": 1e3 * said.switch_ms,
        "message": 1e3 * said.message_ms,
        "task": said.mangos_switch_us,
        "pointer": said.mangos_message_us,
        "call": 1.0,
    }
    observe(stored, "costs", {"here": {name: [cost] * 5 for name, cost in costs.items()}})
    seconds = [system.tuple_then() * stored.parameters.tuples] * 5
    observe(stored, "vectors", {today.TUPLEWISE: {"seconds": seconds}})
    derived = printed.derived("four_tactics_mangos_cpu")
    then = 100 * (derived.ingres / derived.model - 1)
    found = system.table_9(stored)["with today's costs (%)"]
    assert found.to_list() == pytest.approx(then.to_list(), abs=0.01)
    assert all(abs(factor.estimate - 1) < 1e-9 for factor in system.cheaper(stored).values())
    assert "0.4 to 6.9" in four.sentences.cheaper_since(stored)


def test_both_checksums_are_timed(chapter):
    microcode = experiments.microcode
    microcode.checksums(chapter, kilobytes=64)
    timed = {microcode.BY_TABLE, microcode.BY_INSTRUCTION}
    assert set(chapter.table("checksums", "time")) == timed
    assert "check with one" in four.sentences.checksums(chapter)


def test_the_closing_table_has_each_tactics_own_effect_and_months():
    rows = four.sentences.closing({"compilation (query d)": interval(2.0)}).frame
    rows = rows.set_index("tactic")
    said = [
        ("compilation", "25-100%", "4"),
        ("file system", "5-40%", "2"),
        ("microcode", "2.3-6.9%", "more than 6"),
        ("operating system", "1-4%", "6 to 12"),
    ]
    for (tactic, effect, months), (name, row) in zip(said, rows.iterrows(), strict=True):
        assert name.startswith(tactic) and row["published effect"].startswith(effect)
        assert row["published man-months"] == months
    assert rows.iloc[0, -1].startswith("2") and (rows.iloc[1:, -1] == "not measured").all()


def test_the_profile_gives_every_sample_to_one_routine(chapter):
    microcode = experiments.microcode
    microcode.profile(chapter, queries=("c_3360",))
    shares = [chapter.table("profile", name)["interpreter"][0] for name in microcode.ROUTINES]
    assert math.isclose(sum(shares), 1)
    assert 0 <= evidence.microcode.share(chapter).estimate <= 1
    assert "can give more" in four.sentences.bound(chapter)


def test_every_routine_of_the_profile_is_one_of_the_miniature():
    names = {
        node.name
        for path in Path(ingres.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    functions = set().union(*experiments.microcode.FUNCTIONS.values())
    assert functions - names == {"<lambda>"}


def test_newer_instructions_can_be_switched_off(chapter):
    microcode = experiments.microcode
    if not simd.features():
        with pytest.raises(CannotMeasure):
            microcode.instructions(chapter)
        return
    microcode.instructions(chapter)
    assert set(chapter.table("instructions", "sort")) == {microcode.OLD, microcode.NEW}


def test_the_chart_of_the_print_has_words_and_data():
    figure = four.charts.published()
    assert "In print" in figure.description and figure.caption
