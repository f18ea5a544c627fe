"""The verbs of the chapter on the four tactics: the benchmark on the miniature, cold files, costs, and what stands for each tactic today."""

import ast
import math
import os
import socket
import struct
from pathlib import Path

import pandas as pd
import pytest
from servers import small_chapter

from pgrerun import ingres, statistics
from pgrerun.chapters import four_tactics as four
from pgrerun.chapters.four_tactics.miniature import ALONE, PAGES, TRACKS, Miniature
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.ingres import ENGINES, INTERPRETER, THREADED
from pgrerun.server import installed

SMALL = {"pairs": 5, "tuples": 10_000, "megabytes": 4, "milliseconds": 100}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """A chapter with a server and a run record of its own; nothing is published for it."""
    with small_chapter("four_tactics", tmp_path_factory.mktemp("runs"), **SMALL) as opened:
        yield opened


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
    assert "6 of 8 runs agree" in four.words.reads_agree(found.reset_index())


def test_nothing_of_the_miniature_is_left_behind(base):
    with Miniature() as mini:
        mini.run(mini.base(INTERPRETER), "f_3360", warm=False)
        assert any(base.iterdir())
    assert not any(base.iterdir())


def test_a_compiled_command_is_compiled_once_and_a_constant_computed_once():
    work, reused = four.compilation.steps(), four.compilation.reuse()
    assert four.compilation.constant_facts(work) == dict.fromkeys(four.compilation.constant_facts(work), True)
    assert (reused["compilations"] == 2).all() and reused["commands"].iloc[0] == 1 + 3360


def stored(chapter, experiment: str, values: dict[str, dict[str, list[float]]]):
    """Stand in for an experiment: arm to metric to values by block."""
    frames = [
        {"experiment": experiment, "arm": arm, "block": block, "metric": metric, "value": value}
        for arm, metrics in values.items() for metric, series in metrics.items() for block, value in enumerate(series)
    ]  # fmt: skip
    frame = pd.DataFrame(frames)
    chapter_table = chapter.table
    return lambda name, metric: frame[frame.metric == metric].pivot(index="block", columns="arm", values="value") if name == experiment else chapter_table(name, metric)


def test_break_even_is_what_compiling_costs_over_what_it_saves(chapter, monkeypatch):
    few, many = 0.002, 0.002 + 3150 * 1e-5
    values = {
        INTERPRETER: {"c_1": [1e-4] * 5, "c_210": [few] * 5, "c_3360": [many] * 5},
        THREADED: {"c_1": [1.9e-4] * 5, "c_210": [few] * 5, "c_3360": [few + 3150 * 1e-6] * 5},
    }
    monkeypatch.setattr(chapter, "table", stored(chapter, "engines", values))
    assert four.compilation.break_even(chapter).estimate == pytest.approx(11)
    assert four.compilation.cheaper_tuple(chapter).estimate == pytest.approx(10)


def test_nothing_is_concluded_from_what_did_not_run(chapter):
    assert four.compilation.break_even(chapter) is None and four.compilation.gains(chapter) is None
    assert four.files.improvements(chapter) is None and four.files.processor_share(chapter) is None
    assert four.reading.switch_facts(chapter) is None and four.reading.most_by_large_reads(chapter) is None
    assert four.system.today(chapter) is None and four.system.without_system(chapter) is None
    assert four.travel.found(chapter) == {} and four.words.travelled(chapter) is None and four.words.travel_times(chapter) is None and four.drawn.ways(chapter) is None
    assert four.mangos.again(chapter) is None and four.words.mangos_again(chapter) is None and four.words.bound(chapter) is None
    assert four.words.asked_ahead(chapter) is None and four.words.checksums_beside(chapter) is None and four.heirs.jit_break_even(chapter) is None
    assert four.words.even(chapter) is None and four.words.twice_ahead(chapter) is None
    assert four.profile.ranking_facts({"a": None}) is None


def test_the_ranking_turns_with_the_gains():
    effort = dict(zip(("compilation", "files", "microcode", "system"), map(interval, (2.0, 1.5, 1.02, 1.1))))
    assert all(four.profile.ranking_facts(effort).values())
    turned = dict(zip(effort, map(interval, (1.0, 1.5, 9.0, 1.1))))
    assert list(four.profile.ranking_facts(turned).values()) == [False, True, False, True]


def test_the_kernel_reads_ahead_of_two_reads_in_a_row(chapter):
    found = four.files.read_ahead(chapter).set_index("pattern")
    assert found.loc["two in a row", "fetched"] > found.loc["two in a row", "asked"]
    assert found.loc["eight far apart", "fetched"] <= 2 * found.loc["eight far apart", "asked"]


def test_a_jump_away_and_back_is_told_from_one_that_starts_over():
    found = pd.DataFrame({"pattern": ["one block", "two in a row", four.files.ROW, four.files.JUMPS], "reads": [1, 2, 40, 48], "asked": [4, 8, 160, 192], "fetched": [4, 20, 824, 856]})
    assert list(four.files.read_ahead_facts(found).values()) == [True, True, False] and "664 kB more with the jumps. It doesn't" in four.words.jumps(found)
    over = found.assign(fetched=[4, 20, 824, 200])
    assert all(four.files.read_ahead_facts(over).values()) and "start over" in four.words.jumps(over)


def test_hashed_and_indexed_sequential_relations_read_what_their_structures_imply():
    found = four.miniature.structures().set_index("query")
    assert found.loc["e", "hash"] == 646 + 130  # no range of the key but all of it
    assert found.loc["g", "hash"] < found.loc["g", "ISAM"]  # a lookup reads no directory
    assert found.loc["e", "hash, pages half full"] == 1292
    facts = four.miniature.structure_facts(found.reset_index())
    assert facts["query f reads about as much"] and not facts["query e reads about as much"]


def test_threaded_code_takes_more_instructions_than_code_in_line():
    found = four.compilation.extra_instructions()
    assert (found["extra per node"] > 0).all() and found["nodes"].to_list() == [8, 7]
    assert four.compilation.extra_facts(found.assign(**{"extra per node": [3.0, 3.1]})) == {"query c: 3 or fewer": True, "query d: 3 or fewer": False}


def test_cold_runs_leave_out_the_long_joins_only_where_nothing_reads_ahead():
    for system in (ALONE, TRACKS):
        with Miniature(system) as mini:
            spent = four.files._all_runs(mini, system, None)
        assert ("wall h_3360" in spent) == (system == TRACKS) and spent["requests e_3360"] > 0


def test_a_read_that_did_not_sleep_was_quicker_or_the_page_says_otherwise(chapter, monkeypatch):
    values = {four.reading.SYNC_ONE: {"reads": [100.0] * 5, "switches": [70.0, 71, 72, 73, 74]}}
    monkeypatch.setattr(chapter, "table", stored(chapter, "asynchronous", values))
    found = four.reading.sleeps(chapter)
    assert found["reads"].sum() == chapter.parameters.megabytes * 128
    both = pd.DataFrame({"slept": [False, True], "reads": [20, 80], "microseconds": [60.0, 100.0]})
    assert "20 came without a switch" in four.words.fewer_switches(both, chapter) and "needs no switch" in four.words.fewer_switches(both, chapter)
    assert "weren't the faster" in four.words.fewer_switches(both.assign(microseconds=[100.0, 60.0]), chapter)
    assert "for each of" in four.words.fewer_switches(both[both["slept"]], chapter) and "for none of" in four.words.fewer_switches(both[~both["slept"]], chapter)
    assert four.words.fewer_switches(None, chapter) is None


def test_files_that_stay_cached_are_no_cold_files(chapter, monkeypatch):
    monkeypatch.setattr(four.files, "_fetched", lambda: 0)
    with pytest.raises(CannotMeasure, match="PGRERUN_TMPDIR"):
        four.files.cold_files(chapter)


def test_raw_files_are_read_whole_in_every_way(chapter):
    four.reading.raw_files(chapter)
    assert four.reading.raw(chapter, "cpu", four.reading.SMALL, four.reading.IN_ORDER).estimate > 1
    waits = four.reading.waits(chapter).set_index("way")["waits per MB"]
    assert waits[four.reading.DIRECT] >= 4  # each of eight reads of 128 kB is waited for, or nearly
    assert "went to sleep" in four.words.copying_beside_waiting(chapter)


def test_costs_are_ordered(chapter):
    four.system.costs(chapter, rounds=300)
    assert four.system.message_over_pointer(chapter).estimate > 1 and four.system.switch_over_task(chapter).estimate > 1
    assert all(value.low > 0 for value in four.system.today(chapter).values())


def segments(connection) -> int:
    """What the kernel has sent and received on a TCP connection, in segments with data (tcp_info, linux/tcp.h)."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    received, sent = struct.unpack_from("=II", info, 152)  # tcpi_data_segs_in, tcpi_data_segs_out
    return received + sent


def test_messages_are_counted_as_the_kernel_counts_them(chapter):
    four.system.load(chapter, chapter.server)
    with chapter.cluster().listening() as face, four.travel._Line(face) as line:
        assert line.name == four.travel.LOOPBACK
        for request, together in ((four.travel._query, 1), (four.travel._pipeline, 50)):
            before = segments(line._connection)
            spent = line.travel(request, together, 200, None)
            assert spent["messages"] * 200 == segments(line._connection) - before == 2 * 200 / together


def test_a_command_that_fails_on_the_way_is_told(chapter, monkeypatch):
    four.system.load(chapter, chapter.server)
    with four.travel._Line(chapter.server) as line:
        monkeypatch.setattr(four.travel, "_SHORT", "SELECT qoh FROM parts WHERE pnum = -1")
        with pytest.raises(ServerError, match="one tuple"):
            line.travel(four.travel._query, 1, 1, None)


def test_whoever_waits_is_switched_and_nobody_else(chapter):
    four.travel.ways(chapter)
    found, line = four.travel.found(chapter), four.travel.UNIX
    assert set(found) == {line, four.travel.pipelined(line), four.travel.LOOPBACK, four.travel.ALONE, four.travel.DUCKDB}
    for waiting in (line, four.travel.LOOPBACK):
        assert found[waiting]["messages"].estimate == 2 and found[waiting]["switches"].estimate > 1
    assert found[four.travel.pipelined(line)]["switches"].estimate < 0.3
    assert 1 <= found[four.travel.ALONE]["messages"].estimate < 1.2 and found[four.travel.ALONE]["switches"].estimate < 0.3
    assert found[four.travel.DUCKDB]["messages"].estimate == 0 and found[four.travel.DUCKDB]["switches"].estimate < 0.3
    assert "spared is waiting" in four.words.travelled(chapter) and "TCP loopback 2.00 and" in four.words.travelled(chapter)
    assert 0 < four.travel.working(chapter).low < 1.5 and "on a processor for" in four.words.travel_times(chapter)
    assert four.travel.time_over(chapter, four.travel.ALONE, line).estimate < 1
    assert "INGRES, one tuple" in four.drawn.ways(chapter).description


def test_somebodys_server_is_asked_by_its_url_only(tmp_path, borrowed_url):
    with small_chapter("four_tactics", tmp_path, server=borrowed_url, **SMALL) as guest:
        four.travel.ways(guest, commands=50)
        found = four.travel.found(guest)
        assert set(found) == {four.travel.UNIX, four.travel.pipelined(four.travel.UNIX), four.travel.DUCKDB}
        assert "throwaway servers only" in four.words.travelled(guest)
        guest.server.close()


def test_messages_grow_with_the_answer_and_only_by_its_tuples(chapter):
    found = four.system.messages(chapter)
    facts = four.system.message_facts(found)
    assert list(facts.values())[:2] == [False, True]
    assert found["with a tuple"].to_list() == found["tuples"].to_list()


def test_plans_made_ahead_do_not_look_at_the_constant(chapter):
    assert all(four.heirs.run_time_facts(four.heirs.run_time_plans(chapter)).values())
    assert not any(four.heirs.conversion_facts(four.heirs.conversions(chapter)).values())
    assert all(four.heirs.prepared_facts(chapter).values())


def test_the_branch_is_all_that_differs(chapter):
    four.heirs.branches(chapter)
    with chapter.server.connect() as connection:
        pages = {connection.execute(f"SELECT count(*), sum(pnum), pg_relation_size('branches_{number}') FROM branches_{number}").fetchone() for number in (0, 1)}
    assert len(pages) == 1 and four.heirs.failed_branches(chapter).estimate > 0.5


def test_a_release_with_a_compiler_is_found_or_its_lack_told(chapter):
    if any(programs.jit for programs in installed()):
        found = four.heirs.compile_times(chapter)
        assert all(four.heirs.once_facts(found).values()) and four.heirs.compile_seconds(found).low > 0
        four.heirs.jit(chapter)
        compiling, running = chapter.table("jit", "compiling"), chapter.table("jit", "running")
        assert (compiling[four.heirs.ON] > 0).all() and (compiling[four.heirs.OFF] == 0).all() and (running > 0).all(axis=None)
        assert "makes up for that" in four.words.jit_beside(found, chapter)
    else:
        with pytest.raises(CannotMeasure, match="LLVM"):
            four.heirs.compile_times(chapter)


def test_break_even_of_jit_is_its_price_over_what_it_saves(chapter, monkeypatch):
    tuples, off, on = chapter.parameters.tuples, four.heirs.OFF, four.heirs.ON
    values = {off: {"running": [0.004] * 5, "compiling": [0.0] * 5}, on: {"running": [0.003] * 5, "compiling": [0.05] * 5}}
    monkeypatch.setattr(chapter, "table", stored(chapter, "jit", values))
    assert four.heirs.jit_break_even(chapter).estimate == pytest.approx(50 * tuples)
    values[on]["running"] = [0.0041, 0.0039, 0.0042, 0.0041, 0.0038]
    monkeypatch.setattr(chapter, "table", stored(chapter, "jit", values))
    assert four.heirs.jit_break_even(chapter) is None


def test_table_nine_with_the_costs_of_1981_is_table_nine(chapter, monkeypatch):
    said = four.mangos.published.table("four_tactics_said").value
    costs = {"switch": 1e3 * said.switch_ms, "message": 1e3 * said.message_ms, "task": said.mangos_switch_us, "pointer": said.mangos_message_us, "call": 1.0}
    monkeypatch.setattr(chapter, "median", lambda name, metric, arm: interval(costs[metric], 0))
    seconds = [four.mangos._tuple_then() * chapter.parameters.tuples] * 5
    monkeypatch.setattr(chapter, "table", stored(chapter, "vectors", {four.heirs.TUPLEWISE: {"seconds": seconds}}))
    found = four.mangos.again(chapter)
    derived = four.mangos.published.derived("four_tactics_mangos_cpu")
    assert all(abs(again - 100 * (old / model - 1)) < 0.01 for again, old, model in zip(found["with today's costs (%)"], derived.ingres, derived.model))
    assert all(abs(factor.estimate - 1) < 1e-9 for factor in four.mangos.cheaper(chapter).values())
    assert "0.4 to 6.9" in four.words.mangos_again(chapter)


def test_both_checksums_are_timed(chapter):
    four.heirs.checksums(chapter, kilobytes=64)
    assert four.heirs.checksum_gain(chapter).estimate > 0.5 and "check with one" in four.words.checksums_beside(chapter)


def test_the_closing_table_has_each_tactics_own_effect_and_months(chapter):
    effort = dict.fromkeys(four.words.effort(chapter)) | {"compilation (query d)": interval(2.0)}
    rows = four.words.closing(effort).frame.set_index("tactic")
    said = [("compilation", "25-100%", "4"), ("file system", "5-40%", "2"), ("microcode", "2.3-6.9%", "more than 6"), ("operating system", "1-4%", "6 to 12")]
    for (tactic, effect, months), (name, row) in zip(said, rows.iterrows(), strict=True):
        assert name.startswith(tactic) and row["effect in print"].startswith(effect) and row["man-months in print"] == months
    assert rows.iloc[0, -1].startswith("2") and (rows.iloc[1:, -1] == "not measured").all()


def test_the_profile_gives_every_sample_to_one_routine(chapter, monkeypatch):
    monkeypatch.setattr(four.profile, "QUERIES", ("c_3360",))
    four.profile.profile(chapter)
    shares = four.profile.shares(chapter)
    assert math.isclose(sum(chapter.table("profile", name)["interpreter"][0] for name in shares), 1)
    assert four.profile.evaluating(chapter).estimate > 0.5  # three comparisons for every tuple


def test_every_routine_of_the_profile_is_one_of_the_miniature():
    names = {node.name for path in Path(ingres.__file__).parent.glob("*.py") for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
    assert set(four.profile._ROUTINES) - names == {"<lambda>"}


def test_newer_instructions_can_be_switched_off(chapter):
    if not four.profile._dispatched():
        with pytest.raises(CannotMeasure):
            four.profile.instructions(chapter)
        return
    four.profile.instructions(chapter)
    assert four.profile.new_instructions(chapter).low > 0


def test_every_chart_of_the_print_has_words_and_data():
    figure = four.drawn.the_print()
    assert "In print" in figure.description and figure.caption
    assert four.drawn.asynchronous.__doc__
