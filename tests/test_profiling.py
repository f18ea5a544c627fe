"""The profiling chapter's own verbs, and the instruments that came with it."""

import ast
import json
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from pgrerun import charts, claims, published
from pgrerun.chapters import profiling
from pgrerun.published import profiling as printed
from pgrerun.chapters.profiling import attributes, breakdown, checks, counted, drawn, judged, ladder, queries, words
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.instruments import callgrind, instructions, patching, symbols
from pgrerun.server import Cluster, bundled

NO_CALLGRIND = pytest.mark.skipif(callgrind.unavailable() is not None, reason=str(callgrind.unavailable()))
CHAPTER = SimpleNamespace(parameters=SimpleNamespace(seed=1990, scale=1))
POSTGRES = bundled().path("postgres")


# ---- the two sets of commands


def test_figure_2_1_has_its_commands_and_its_strings():
    kinds = [said.split()[0] for said, _ in queries.FIGURE_2_1]
    assert [kinds.count(kind) for kind in ("retrieve", "destroy", "append", "delete", "replace")] == [7, 5, 2, 2, 2]
    append = next(said for said, _ in queries.FIGURE_2_1 if said.startswith("append"))
    assert 'stringu1 = "MXXXXXXXXXXXXXXXXXXXXXXXXXGXXXXXXXXXXXXXXXXXXXXXXXXC"' in append
    inserted = dict(queries.FIGURE_2_1)[append]
    assert inserted.startswith("INSERT INTO tenk1 (unique1,") and "'MXXXXXXXXXXXXXXXXXXXXXXXXXGXXXXXXXXXXXXXXXXXXXXXXXXC'" in inserted
    assert queries.scans()[0] == "CREATE TABLE temp0 AS SELECT tenk1.* FROM tenk1 WHERE tenk1.unique2 > 1 AND tenk1.unique2 < 102"


def test_the_warm_up_has_each_kind_of_command_and_leaves_the_large_relations_alone():
    commands = queries.warm_up()
    assert {command.split()[0] for command in commands} == {"CREATE", "DROP", "SELECT", "INSERT", "DELETE", "UPDATE"}
    assert all("onek" in command for command in commands if command.split()[0] in ("INSERT", "DELETE", "UPDATE"))


def test_a_batch_has_seven_commands_per_transaction_and_the_same_keys_every_time():
    batch = queries.transactions(CHAPTER, 3)
    assert len(batch) == 3 * published.cell("profiling_said", "commands", "value") / queries.REPORT_TRANSACTIONS and batch == queries.transactions(CHAPTER, 3)
    assert batch != queries.transactions(CHAPTER, 3, seed=1)
    assert not any("$" in command for command in batch)


def test_prepared_commands_have_the_keys_of_the_others():
    batch, prepared = (queries.transactions(CHAPTER, 1, prepared=prepared) for prepared in (False, True))
    names = [command.split()[1] for command in prepared if command.startswith("EXECUTE")]
    assert names == [statement.split()[1] for statement in queries.prepare()] and prepared[0] == "BEGIN"
    keys = [next(command for command in batch if f"{key} = " in command and "UPDATE" in command).rsplit(" ", 1)[1] for key in ("aid", "tid", "bid")]
    assert prepared[-2].endswith(f"({', '.join(keys)})")


def test_both_sets_run_and_the_batch_is_consistent():
    with Cluster() as cluster, cluster.connect() as connection:
        queries.load(CHAPTER, cluster)
        for command in [*queries.warm_up(), *queries.scans(), *queries.UNDO, *queries.prepare()]:
            connection.execute(command)
        assert connection.execute("SELECT count(*), sum(unique2) FROM tenk1").fetchone() == (10_000, 9_999 * 5_000)
        for command in queries.transactions(CHAPTER, 3) + queries.transactions(CHAPTER, 3, prepared=True):
            connection.execute(command)
        found = queries.relations(CHAPTER).check(connection)
        assert found.consistent and found.transactions == 6


# ---- copies that a single-user backend may spoil


def test_a_twin_has_its_own_pages_and_its_own_checksums():
    with Cluster() as cluster:
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        with counted.stopped(cluster), counted.twin(cluster, checksums=False) as own:
            assert own.data_directory != cluster.data_directory
            shared = {path.parent.relative_to(own.data_directory) for path in own.data_directory.rglob("*") if path.is_file() and path.stat().st_nlink > 1}
            assert shared == {Path("base", name) for name in counted._TEMPLATES}
            checks._single_user(own, POSTGRES)
            said = subprocess.run([bundled().path("pg_controldata"), own.data_directory], capture_output=True, text=True, **own._server_process()).stdout
            assert "page checksum version:           0" in said
            (own.data_directory / "PG_VERSION").unlink()
        with cluster.connect() as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
            assert connection.execute("SHOW data_checksums").fetchone() == ("on",)
        assert not own.data_directory.exists()


def test_settings_of_the_ladder_add_up():
    last = ladder.settings_at(ladder.STEPS[-1])
    assert last["log_statement"] == "none" and last[ladder.PRELOAD] == "" and last["track_activities"] == "off"
    assert ladder.settings_at(ladder.STEPS[0])["log_statement"] == "all"
    # the step that is taken over from another experiment is the one with PostgreSQL's own settings
    with Cluster() as cluster, cluster.connect() as connection:
        own = dict(connection.execute("SELECT name, boot_val FROM pg_settings").fetchall())
    at = ladder.settings_at(next(step for step in ladder.STEPS if step.name == ladder.DEFAULTS))
    assert all(own[name] == value for name, value in at.items() if name in own and name != "compute_query_id")


# ---- from routine to file to subsystem


def test_routines_are_placed_as_the_source_has_them():
    frame = symbols.routines(POSTGRES)
    file = {row.routine: row.file[0] for row in frame.dropna(subset="file").itertuples()}
    # one static, one told by __func__, one that lies between two of its file
    assert (file["standard_ProcessUtility"], file["heap_prepare_pagescan"], file["AllocSetAlloc"]) == ("utility.c", "heapam.c", "aset.c")
    unknown = frame[frame["file"].isna()]
    assert 0 < len(unknown) < 0.2 * len(frame)
    assert (unknown["before"] != unknown["after"]).all()


def test_files_of_one_name_are_told_apart_by_their_neighbours():
    placed = breakdown.placed(pd.DataFrame({"function": ["transformStmt", "do_analyze_rel", "malloc", "nobody_wrote_this"], "object": ["postgres", "postgres", "libc.so.6", "postgres"]}), POSTGRES)
    assert placed["directory"].iloc[:2].tolist() == ["parser", "commands"] and placed["directory"].iloc[2:].isna().all()
    assert placed["subsystem"].tolist() == ["parser", "others", "system_functions", "unknown"]


def test_the_map_knows_every_file_of_the_program_and_names_known_subsystems():
    sources = breakdown._sources()
    assert set(sources["subsystem"]) <= set(breakdown.SUBSYSTEMS)
    assert set(published.table("profiling_subsystems").index) <= set(breakdown.SUBSYSTEMS)
    files = {file[0] for column in ("before", "after") for file in symbols.routines(POSTGRES)[column].dropna()}
    assert {file for file in files if file.endswith(".c")} - {"crtstuff.c"} <= set(sources["file"])
    assert set(breakdown._by_hand().values()) <= set(sources["file"])


def test_a_stripped_program_is_set_aside(tmp_path):
    image = bytearray(POSTGRES.read_bytes())
    start, size, count = int.from_bytes(image[0x28:0x30], "little"), *(int.from_bytes(image[at : at + 2], "little") for at in (0x3A, 0x3C))
    for number in range(count):
        at = start + number * size + 4
        if image[at] == symbols._SYMTAB:
            image[at] = 0
    stripped = tmp_path / "postgres"
    stripped.write_bytes(image)
    with pytest.raises(CannotMeasure, match="stripped"):
        symbols.routines(stripped)
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(CannotMeasure, match="no 64-bit ELF"):
        symbols.routines(tmp_path / "script")


# ---- callgrind


def test_a_number_in_a_callgrind_name_counts_a_recursion():
    frame = pd.DataFrame({"function": ["walk'2'walk'planner", "planner"], "exclusive": [1, 2]})
    found = callgrind._stacked(frame, "g")
    assert found["stack"].tolist() == ["planner;walk;walk", "planner"] and found["function"].tolist() == ["walk", "planner"]


def test_small_frames_become_their_callers_own():
    stack = "main;exec_simple_query;"
    stacks = pd.DataFrame({"stack": [stack + "a", stack + "a;b", stack + "c;d"], "exclusive": [900, 1, 99]})
    assert counted._pruned(stacks) == {"exec_simple_query;a": 901, "exec_simple_query;c;d": 99}


def test_phases_add_up_and_a_utility_plans_as_well():
    stack = "main;exec_simple_query;"
    stacks = pd.DataFrame({"stack": [stack + "pg_parse_query", stack + "PortalRun;ExecCreateTableAs;pg_plan_query", stack + "PortalRun;x", stack + "y"], "exclusive": [1, 2, 4, 8]})
    assert counted._phases(stacks) == {"parse": 1, "plan": 2, "execute": 4, "begin and commit": 0, "dispatch": 8}


def test_gain_is_amdahls():
    assert counted.gain(0) == 1 and counted.gain(50) == 2


@NO_CALLGRIND
def test_groups_are_counted_apart_and_twice_the_same():
    with Cluster() as cluster:
        groups = {"warm-up": ["SELECT 1"], "few": ["SELECT count(*) FROM generate_series(1, 100)"], "many": ["SELECT count(*) FROM generate_series(1, 10000)"]}
        with pytest.raises(RerunError, match="stop"):
            callgrind.stacks(cluster, groups)
        cluster.stop()
        first, second = (callgrind.stacks(cluster, groups, callers=callers).groupby("group")["exclusive"].sum() for callers in (0, 30))
        forgotten = callgrind.stacks(cluster, groups, callers=0, unreported={"warm-up", "few"})
        assert set(forgotten["group"]) == {"many"} and abs(forgotten["exclusive"].sum() / first["many"] - 1) < 0.01
        assert first["many"] > first["few"] + 10_000 * 50
        assert abs(second / first - 1).max() < 0.01
        if instructions.unavailable():
            return
        found = instructions.kinds(cluster, groups, unreported={"warm-up"})
        assert set(found["group"]) == {"few", "many"}
        checked = found[found["kind"] == instructions.ERROR_CHECK].groupby("group")["executed"].sum()
        total = found.groupby("group")["instructions"].sum()
        assert 0 < checked["few"] < checked["many"] < total["many"]
        # libraries are left out of the kinds and are in the stacks
        assert 0.7 * first["many"] < total["many"] <= first["many"] * 1.01


@NO_CALLGRIND
def test_a_warm_up_that_is_not_followed_changes_no_stack(monkeypatch):
    with Cluster() as cluster:
        cluster.stop()
        both = ["SELECT count(*) FROM generate_series(1, 1000)", "SELECT 1"]
        groups = {"warm-up": both, "both": both}
        always, late = (counted._pruned(callgrind.stacks(cluster, groups, unreported={"warm-up"}, late=late)) for late in (False, True))
        assert set(always) == set(late) and len(late) > 10
        # a jump through the program's linkage table is counted in the one case and not in the other
        assert all(abs(late[stack] - always[stack]) < 0.002 * sum(always.values()) for stack in late)
        monkeypatch.setattr("shutil.which", lambda name: "/bin/false")  # as where processes mustn't be traced
        with pytest.raises(callgrind.NotSwitchedOn, match="runs already"):
            callgrind.stacks(cluster, groups, unreported={"warm-up"}, late=True)


def test_where_callgrind_cannot_begin_late_it_begins_at_once(monkeypatch):
    asked = []

    def stacks(cluster, work, *, unreported, late):
        asked.append((cluster, late))
        if late:
            raise callgrind.NotSwitchedOn("no tracing here")
        return "counted"

    files = iter("ab")  # those that the first one has changed aren't used again
    monkeypatch.setattr(callgrind, "stacks", stacks)
    monkeypatch.setattr(counted, "groups", lambda *given: {})
    monkeypatch.setattr(counted, "twin", lambda cluster: nullcontext(next(files)))
    assert counted._followed(SimpleNamespace(parameters=SimpleNamespace(transactions=1)), None, queries.SCANS) == "counted"
    assert asked == [("a", True), ("b", False)]


# ---- a program that believes everything


def test_a_routine_is_replaced_in_a_copy_only():
    before = POSTGRES.read_bytes()
    with patching.answering(bundled(), "PageIsVerified", 1) as program:
        copy = program.read_bytes()
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    assert "PostgreSQL" in version and not program.exists()
    changed = [at for at, (old, new) in enumerate(zip(before, copy)) if old != new]
    start = symbols.file_offset(POSTGRES, "PageIsVerified")
    assert len(before) == len(copy) and changed and start <= changed[0] and changed[-1] < start + 8
    assert POSTGRES.read_bytes() == before
    with pytest.raises(CannotMeasure, match="no|not one"):
        with patching.answering(bundled(), "no_such_routine", 1):
            pass


def test_code_is_known_for_two_processors():
    assert patching._code(patching._X86_64, 1) == b"\xb8\x01\0\0\0\xc3"
    assert patching._code(patching._AARCH64, 1).hex() == "20008052c0035fd6"
    with pytest.raises(CannotMeasure):
        patching._code(8, 1)


def test_decisive_needs_both_sides():
    asked = pd.DataFrame({"routine": ["", "PageIsVerified", "StartBufferIO", "PinBuffer"], "answer": ["right", "right", "none", "none"]})
    assert set(checks.decisive(asked).values()) == {True}
    assert set(checks.decisive(asked.assign(answer="right")).values()) == {True, False}
    assert checks.decisive(None) is None


# ---- what the ledger says of missing things

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "profiling.ipynb"


class _Reached(Exception):
    """An experiment has found all that it asks for."""


class _Asked:
    """A chapter that an experiment asks for a server."""

    def __init__(self, borrowed: bool):
        self.borrowed, self.programs = borrowed, bundled()

    def cluster(self, **settings):
        raise CannotMeasure("restart", "it isn't ours") if self.borrowed else _Reached

    def __getattr__(self, name):
        raise _Reached


def attempts():
    """Each experiment of the notebook that is attempted for some claims, and these."""
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        calls = ast.walk(ast.parse("".join(cell["source"]))) if cell["cell_type"] == "code" and "chapter.attempt" in "".join(cell["source"]) else ()
        for call in calls:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "chapter.attempt" and call.keywords:
                yield tuple(eval(ast.unparse(part), {"profiling": profiling}) for part in (call.args[0], call.keywords[0].value))


@pytest.mark.parametrize("capability, program", [("restart", ""), ("callgrind", "valgrind"), ("objdump", "objdump")])
def test_the_ledger_names_what_each_experiment_cannot_do_without(monkeypatch, capability, program):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == program else f"/usr/bin/{name}")
    chapter, lost = _Asked(borrowed=capability == "restart"), set()
    for measure, named in attempts():
        try:
            measure(chapter)
        except _Reached:
            continue
        except CannotMeasure as reason:
            assert reason.capability == capability
            lost |= set(named)
    needing = {claim.id for claim in claims.ledger().values() if claim.chapter == "profiling" and capability in claim.capabilities}
    assert lost == needing and needing


# ---- what is judged without a count


def test_nothing_is_judged_from_the_published_run():
    empty = SimpleNamespace(run=SimpleNamespace(observations=lambda name: pd.DataFrame()), published_run=lambda name: pd.DataFrame())
    for evidence in (judged.data_over_overhead, judged.optimizer_shares, judged.shift_facts, checks.trace_gain, checks.error_check_gain, ladder.each_step):
        assert evidence(empty) is None


def test_samples_of_the_published_run_are_called_so():
    taken = pd.DataFrame([(workload, f"{routine} | {part}", 50.0) for workload in (queries.SCANS, queries.TRANSACTIONS) for routine, part in (("copy", "kernel"), ("scan", "executor"))], columns=["arm", "metric", "value"])
    empty = pd.DataFrame()
    for own, published_run in ((taken, empty), (empty, taken)):
        chapter = SimpleNamespace(run=SimpleNamespace(observations=lambda name: own), published_run=lambda name: published_run)
        said = words.kernel(chapter)
        assert "50 % of the scans (of 100 samples" in said and ("published run" in said) == own.empty


def test_contrasts_stand_beside_each_other_by_instructions_and_by_time():
    arms = sorted({arm for pair in attributes.CONTRASTS.values() for arm in pair})
    counted_rows = [(arm, 0, "in all", 200.0 if arm == attributes.VARYING else 100.0) for arm in arms]
    timed_rows = [(arm, block, "time", (1.5 if arm == attributes.VARYING else 1.0) * (block + 1)) for arm in arms for block in range(7)]
    frames = {
        attributes.EXPERIMENT: pd.DataFrame(counted_rows, columns=["arm", "block", "metric", "value"]),
        attributes.TIMED: pd.DataFrame(timed_rows, columns=["arm", "block", "metric", "value"]),
    }
    chapter = SimpleNamespace(parameters=SimpleNamespace(seed=1990), by_provenance=lambda name: [("measured", frames[name])] if name in frames else [])
    found = attributes.contrasts(chapter).set_index(["panel", "label"])
    assert found.at[("instructions", "behind a string"), "value"] == 2 and found.at[("time", "behind a string"), "value"] == pytest.approx(1.5)
    assert (found.loc["time", "low"] <= found.loc["time", "value"]).all() and len(found) == 2 * len(attributes.CONTRASTS)
    frames.clear()
    assert attributes.contrasts(chapter).empty and drawn.contrasts(chapter) is None and drawn.timed_down(chapter) is None


def test_the_ladder_is_judged_by_time_where_nothing_was_counted():
    chapter = SimpleNamespace(run=SimpleNamespace(observations=lambda name: pd.DataFrame()), ratio=lambda *arms: arms)
    assert ladder.in_all(chapter) == (ladder.TIMED, queries.SCANS, ladder.EVERYTHING, ladder.BARE)


def test_the_prints_ladder_multiplies_up():
    totals = published.derived("profiling_totals")
    assert totals["gain"].prod() == pytest.approx(totals.at["sixth", "gain_in_all"])
    assert pd.isna(totals.at["transactions", "gain"])
    assert {row[0]: row[3] for row in printed.checks()}["3.1.7, faster altogether"]


# ---- the flame graph


def test_frames_lie_below_their_callers_and_fill_them():
    frame = pd.DataFrame({"stack": ["a", "a;b", "a;c", "a;c;d"], "value": [10.0, 20.0, 30.0, 40.0], "group": ["x", "y", "y", "x"]})
    rows = charts._flame_rows(frame).set_index("function")
    assert (rows.at["a", "start"], rows.at["a", "end"], rows.at["a", "own"]) == (0, 100, 10)
    assert rows.at["c", "share"] == 70 and rows.at["c", "start"] == 0 and rows.at["b", "start"] == 70
    assert rows.at["d", "depth"] == 2 and rows.at["d", "group"] == "x"
    figure = charts.flame(frame, question="q", caption="c", description="d", quantity="of all", name="n")
    assert "<img" in figure._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match="group"):
        charts.flame(frame.drop(columns="group"), question="q", caption="c", description="d", quantity="x")


def test_the_scans_that_are_timed_are_one_half_of_the_figure():
    whole, half = queries.scans(), queries.scans_of_tenk1()
    other = [sql for sql in whole if sql not in half]
    alike = [sql.replace("tenk2", "tenk1") for sql in other]
    assert set(half) < set(whole) and not any("tenk2" in sql for sql in half)
    verbs = lambda commands: sorted(sql.split()[0] for sql in commands if "onek" not in sql and "temp71" not in sql)
    assert verbs(half) == verbs(alike)
