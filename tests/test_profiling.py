"""The profiling chapter's own verbs, and the instruments that came with it."""

import importlib
import pkgutil
import shutil
import subprocess

import pandas as pd
import pytest

from pgrerun.chapter import Chapter
from pgrerun.chapters import profiling
from pgrerun.chapters.profiling import charts, evidence, queries, sentences, subsystems
from pgrerun.chapters.profiling.experiments import (
    checks,
    instructions,
    samples,
)
from pgrerun.chapters.profiling.queries import SCANS, SETS, TRANSACTIONS
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab import sent
from pgrerun.lab.instruments import callgrind, patching, symbols
from pgrerun.lab.instruments import instructions as kinds_of_instruction
from pgrerun.lab.server import Cluster, bundled
from pgrerun.page import charts as page_charts
from pgrerun.record import claims, printed, verdicts
from pgrerun.record.printed import profiling as in_print
from pgrerun.record.verdicts import Verdict
from tests.servers import small_chapter

NO_CALLGRIND = pytest.mark.skipif(
    callgrind.unavailable() is not None, reason=str(callgrind.unavailable())
)
POSTGRES = bundled().path("postgres")


@pytest.fixture
def chapter(tmp_path):
    with small_chapter("profiling", tmp_path) as chapter:
        yield chapter


# ---- the two sets of commands


def test_figure_2_1_has_its_commands_and_its_strings():
    kinds = [said.split()[0] for said, _ in queries.FIGURE_2_1]
    assert [
        kinds.count(kind) for kind in ("retrieve", "destroy", "append", "delete", "replace")
    ] == [7, 5, 2, 2, 2]
    append = next(said for said, _ in queries.FIGURE_2_1 if said.startswith("append"))
    assert 'stringu1 = "MXXXXXXXXXXXXXXXXXXXXXXXXXGXXXXXXXXXXXXXXXXXXXXXXXXC"' in append
    inserted = dict(queries.FIGURE_2_1)[append]
    assert (
        inserted.startswith("INSERT INTO tenk1 (unique1,")
        and "'MXXXXXXXXXXXXXXXXXXXXXXXXXGXXXXXXXXXXXXXXXXXXXXXXXXC'" in inserted
    )
    assert (
        queries.scans()[0]
        == "CREATE TABLE temp0 AS SELECT tenk1.* FROM tenk1 WHERE tenk1.unique2 > 1 AND"
        " tenk1.unique2 < 102"
    )


def test_the_warm_up_has_each_kind_of_command_and_leaves_the_large_relations_alone():
    commands = queries.warm_up()
    assert {command.split()[0] for command in commands} == {
        "CREATE",
        "DROP",
        "SELECT",
        "INSERT",
        "DELETE",
        "UPDATE",
    }
    assert all(
        "onek" in command
        for command in commands
        if command.split()[0] in ("INSERT", "DELETE", "UPDATE")
    )


def test_a_batch_has_seven_commands_per_transaction_and_the_same_keys_every_time(chapter):
    batch = queries.transactions(chapter, 3)
    assert len(batch) == 3 * printed.cell(
        "profiling_said", "commands", "value"
    ) / queries.REPORT_TRANSACTIONS and batch == queries.transactions(chapter, 3)
    assert batch != queries.transactions(chapter, 3, seed=1)
    assert not any("$" in command for command in batch)


def test_both_sets_run_and_the_batch_is_consistent(chapter):
    with Cluster() as cluster, cluster.connect() as connection:
        queries.load(chapter, cluster)
        for command in [*queries.warm_up(), *queries.scans(), *queries.UNDO]:
            connection.execute(command)
        assert connection.execute("SELECT count(*), sum(unique2) FROM tenk1").fetchone() == (
            10_000,
            9_999 * 5_000,
        )
        for command in queries.transactions(chapter, 3):
            connection.execute(command)
        found = queries.BANK.check(connection)
        assert found.consistent and found.transactions == 3


# ---- from routine to file to subsystem


def test_routines_are_placed_as_the_source_has_them():
    frame = symbols.routines(POSTGRES)
    file = {row.routine: row.file[0] for row in frame.dropna(subset="file").itertuples()}
    # one static, one told by __func__, one that lies between two of its file
    assert (
        file["standard_ProcessUtility"],
        file["heap_prepare_pagescan"],
        file["AllocSetAlloc"],
    ) == ("utility.c", "heapam.c", "aset.c")
    unknown = frame[frame["file"].isna()]
    assert 0 < len(unknown) < 0.2 * len(frame)
    assert (unknown["before"] != unknown["after"]).all()


def test_files_of_one_name_are_told_apart_by_their_neighbours():
    placed = subsystems.placed(
        pd.DataFrame(
            {
                "function": ["transformStmt", "do_analyze_rel", "malloc", "nobody_wrote_this"],
                "object": ["postgres", "postgres", "libc.so.6", "postgres"],
            }
        ),
        POSTGRES,
    )
    assert (
        placed["directory"].iloc[:2].tolist() == ["parser", "commands"]
        and placed["directory"].iloc[2:].isna().all()
    )
    assert placed["subsystem"].tolist() == ["parser", "others", "system_functions", "unknown"]


def test_the_map_knows_every_file_of_the_program_and_names_known_subsystems():
    sources = subsystems.SOURCES
    assert set(sources["subsystem"]) <= set(subsystems.NAMES)
    assert set(printed.table("profiling_subsystems").index) <= set(subsystems.NAMES)
    files = {
        file[0]
        for column in ("before", "after")
        for file in symbols.routines(POSTGRES)[column].dropna()
    }
    assert {file for file in files if file.endswith(".c")} - {"crtstuff.c"} <= set(sources["file"])
    assert set(subsystems.BY_HAND.values()) <= set(sources["file"])


def test_a_stripped_program_is_set_aside(tmp_path):
    image = bytearray(POSTGRES.read_bytes())
    start, size, count = (
        int.from_bytes(image[0x28:0x30], "little"),
        *(int.from_bytes(image[at : at + 2], "little") for at in (0x3A, 0x3C)),
    )
    for number in range(count):
        at = start + number * size + 4
        if image[at] == symbols.SYMTAB:
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
    found = callgrind.stacked(frame, "g")
    assert found["stack"].tolist() == ["planner;walk;walk", "planner"] and found[
        "function"
    ].tolist() == ["walk", "planner"]


def test_small_frames_become_their_callers_own():
    stack = "main;exec_simple_query;"
    stacks = pd.DataFrame(
        {"stack": [stack + "a", stack + "a;b", stack + "c;d"], "exclusive": [900, 1, 99]}
    )
    assert instructions.pruned(stacks) == {"exec_simple_query;a": 901, "exec_simple_query;c;d": 99}


def test_phases_add_up_and_a_utility_plans_as_well():
    stack = "main;exec_simple_query;"
    stacks = pd.DataFrame(
        {
            "stack": [
                stack + "pg_parse_query",
                stack + "PortalRun;ExecCreateTableAs;pg_plan_query",
                stack + "PortalRun;x",
                stack + "y",
            ],
            "exclusive": [1, 2, 4, 8],
        }
    )
    assert instructions.phases(stacks) == {
        "parse": 1,
        "plan": 2,
        "execute": 4,
        "begin and commit": 0,
        "dispatch": 8,
    }


def test_gain_is_amdahls():
    assert evidence.gain(0) == 1 and evidence.gain(50) == 2


@NO_CALLGRIND
def test_groups_are_counted_apart_and_twice_the_same():
    with Cluster() as cluster:
        groups = {
            "warm-up": ["SELECT 1"],
            "few": ["SELECT count(*) FROM generate_series(1, 100)"],
            "many": ["SELECT count(*) FROM generate_series(1, 10000)"],
        }
        with pytest.raises(RerunError, match="stop"):
            callgrind.stacks(cluster, groups)
        cluster.stop()
        first, second = (
            callgrind.stacks(cluster, groups, callers=callers).groupby("group")["exclusive"].sum()
            for callers in (0, 30)
        )
        with sent.recorded() as account:
            forgotten = callgrind.stacks(cluster, groups, callers=0, unreported={"warm-up", "few"})
        told = dict(account.statements())
        assert told["SELECT 1"] == 1 and told[groups["few"][0]] == 2  # many differs in its number
        assert (
            set(forgotten["group"]) == {"many"}
            and abs(forgotten["exclusive"].sum() / first["many"] - 1) < 0.01
        )
        assert first["many"] > first["few"] + 10_000 * 50
        assert abs(second / first - 1).max() < 0.01
        if kinds_of_instruction.unavailable():
            return
        found = kinds_of_instruction.kinds(cluster, groups, unreported={"warm-up"})
        assert set(found["group"]) == {"few", "many"}
        checked = (
            found[found["kind"] == kinds_of_instruction.ERROR_CHECK]
            .groupby("group")["executed"]
            .sum()
        )
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
        always, late = (
            instructions.pruned(
                callgrind.stacks(cluster, groups, unreported={"warm-up"}, late=late)
            )
            for late in (False, True)
        )
        assert set(always) == set(late) and len(late) > 10
        # a jump through the program's linkage table is counted in the one case and not in the other
        assert all(
            abs(late[stack] - always[stack]) < 0.002 * sum(always.values()) for stack in late
        )
        monkeypatch.setattr(
            "shutil.which", lambda name: "/bin/false"
        )  # as where processes mustn't be traced
        with pytest.raises(callgrind.NotSwitchedOn, match="runs already"):
            callgrind.stacks(cluster, groups, unreported={"warm-up"}, late=True)


@NO_CALLGRIND
def test_where_callgrind_cannot_begin_late_it_begins_at_once(chapter, monkeypatch):
    asked = []

    def stacks(cluster, work, *, unreported, late):
        asked.append((cluster.data_directory, late))
        if late:
            raise callgrind.NotSwitchedOn("no tracing here")
        stack = "main;exec_simple_query;PortalRun;slot_getattr"
        rows = [(group, stack, "slot_getattr", "postgres", 10, 1) for group in work]
        columns = ["group", "stack", "function", "object", "exclusive", "calls"]
        return pd.DataFrame(rows, columns=columns)

    monkeypatch.setattr(callgrind, "stacks", stacks)
    chapter.attempt(instructions.instructions_by_routine)
    assert evidence.recorded(chapter, instructions.PHASES, SCANS)["execute"] == 10
    assert evidence.caller_shares(chapter).to_dict() == {"not placed": 100}
    assert sorted(late for _, late in asked) == [False, False, True, True]
    # files that the first one has changed aren't used again
    assert len({folder for folder, _ in asked}) == 4


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
    unknown = patching.answering(bundled(), "no_such_routine", 1)
    with pytest.raises(CannotMeasure, match="no|not one"), unknown:
        pass


def test_code_is_known_for_two_processors():
    assert patching.machine_code(patching.X86_64, 1) == b"\xb8\x01\0\0\0\xc3"
    assert patching.machine_code(patching.AARCH64, 1).hex() == "20008052c0035fd6"
    with pytest.raises(CannotMeasure):
        patching.machine_code(8, 1)


def test_decisive_needs_both_sides():
    asked = pd.DataFrame(
        {
            "routine": ["", "PageIsVerified", "StartBufferIO"],
            "answer": ["right", "right", "none"],
        }
    )
    assert set(evidence.decisive_facts(asked).values()) == {True}
    assert set(evidence.decisive_facts(asked.assign(answer="right")).values()) == {True, False}


# ---- what the ledger says of missing things


class _Reached(Exception):
    """An experiment has found all that it asks for."""


def declared_experiments():
    for module in pkgutil.iter_modules(profiling.experiments.__path__, "."):
        found = importlib.import_module(module.name, profiling.experiments.__name__)
        for measure in vars(found).values():
            if hasattr(measure, "declared") and measure.__module__ == found.__name__:
                yield measure


@pytest.mark.parametrize(
    "capability, program", [("restart", ""), ("callgrind", "valgrind"), ("objdump", "objdump")]
)
def test_the_ledger_names_what_each_experiment_cannot_do_without(
    chapter, monkeypatch, capability, program
):
    def cluster(self, **settings):
        if capability == "restart":
            raise CannotMeasure("restart", "it isn't ours")
        raise _Reached

    monkeypatch.setattr(Chapter, "cluster", cluster)
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == program else f"/usr/bin/{name}"
    )
    lost = set()
    for measure in declared_experiments():
        try:
            measure(chapter)
        except _Reached:
            continue
        except CannotMeasure as reason:
            if measure.declared.claims:
                assert reason.capability == capability
            lost |= set(measure.declared.claims)
    needing = {
        claim.id
        for claim in claims.ledger().values()
        if claim.chapter == "profiling" and capability in claim.capabilities
    }
    assert lost == needing and needing


def keep(chapter, experiment, rows, unit="instructions"):
    """Record values by variant and metric."""
    for variant, metrics in rows.items():
        chapter.keep(experiment, variant, metrics, unit)


def test_samples_of_the_published_run_are_called_so(chapter):
    rows = {workload: {"copy | kernel": 50.0, "scan | executor": 50.0} for workload in SETS}
    assert chapter.show(sentences.kernel) is None
    keep(chapter, samples.SAMPLES, rows, "samples")
    own = chapter.show(sentences.kernel)
    assert "50 % of the scans (40 to 60 %, by 100 samples)" in own and "published run" not in own
    published = chapter.run.observations(samples.SAMPLES).assign(experiment="published")
    chapter.published_run = lambda experiment: published
    assert "published run" not in chapter.show(sentences.kernel)
    chapter.run.observations = lambda experiment: pd.DataFrame()
    assert "published run" in chapter.show(sentences.kernel)


def test_shares_and_gains_add_up_to_the_whole_of_a_profile(chapter):
    profile = {
        "slot_getattr.isra.0 | heaptuple.c | access/common | access_methods | postgres": 50.0,
        "int4lt | int.c | utils/adt | utilities | postgres": 30.0,
        "malloc |  |  | system_functions | libc.so.6": 20.0,
    }
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        keep(chapter, name, {SCANS: profile})
    frame = evidence.routines(chapter, SCANS)
    assert frame["cumulative"].iloc[-1] == 100 and (frame["per_call"] == 1).all()
    assert frame["routine"].iloc[0] == "slot_getattr"
    assert evidence.shares(chapter, SCANS).sum() == 100
    attributes = subsystems.group("attributes")
    assert evidence.gain_without(chapter, SCANS, "routine", attributes) == 2
    assert evidence.share_of(chapter, SCANS, "subsystem", ["utilities"]) == 30
    top = evidence.top_routines(chapter, SCANS)
    assert top["file"].tolist() == ["heaptuple.c", "int.c", "libc.so.6"]
    keep(chapter, instructions.FLAME, {SCANS: {"slot_getattr": 90.0, "slot_getattr;int4lt": 10.0}})
    said = charts.flame(chapter, SCANS).caption  # frames too small are their caller's, shares not
    assert "access methods (50.0 %), utilities (30.0 %) and system functions (20.0 %)" in said
    assert "slot_getattr.isra.0 (50 %)" in said
    assert "slot_getattr.isra.0 with 50.0 %" in sentences.leader(chapter, SCANS)
    assert TRANSACTIONS not in set(chapter.run.observations(instructions.CALLS)["variant"])


@pytest.mark.parametrize(
    ("sampled", "words"),
    [
        ({SCANS: (60.0, 40.0), TRANSACTIONS: (55.0, 45.0)}, "agree for both sets"),
        ({SCANS: (40.0, 60.0), TRANSACTIONS: (60.0, 40.0)}, "agree for the transactions alone"),
        ({SCANS: (30.0, 70.0), TRANSACTIONS: (20.0, 80.0)}, "agree for neither set"),
    ],
)
def test_where_instructions_and_time_disagree_is_said(chapter, sampled, words):
    place = "execMain.c | executor | {} | postgres"
    names = [f"f | {place.format('executor')}", f"g | {place.format('utilities')}"]
    counted = {workload: dict(zip(names, (70.0, 30.0))) for workload in SETS}
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        chapter.run.drop(name)
        keep(chapter, name, counted)
    taken = {
        workload: {"f | executor": f, "g | utilities": g, "h | kernel": 100.0}
        for workload, (f, g) in sampled.items()
    }
    chapter.run.drop(samples.SAMPLES)
    keep(chapter, samples.SAMPLES, taken, "samples")
    said = sentences.apart(chapter)
    assert words in said and "utilities in the scans (30.0 % of the instructions," in said


def judged(id, evidence):
    return verdicts.judge(claims.ledger()[id], evidence).verdict


def test_the_print_falls_step_by_step():
    facts = evidence.falling()
    assert len(facts) == 5 and judged("lai-026", facts) is Verdict.HOLDS


@pytest.mark.parametrize(
    ("execute", "plan", "word"),
    [(64.0, 102.0, Verdict.REVERSED), (100.0, 10.0, Verdict.HOLDS), (12.0, 10.0, Verdict.GONE)],
)
def test_planning_is_low_where_executing_is_far_more(chapter, execute, plan, word):
    counts = {"execute": execute, "parse": 0.0, "plan": plan, "dispatch": 1.0}
    keep(chapter, instructions.PHASES, {TRANSACTIONS: counts})
    profile = {
        "ExecScan | execScan.c | executor | executor | postgres": execute,
        "make_plan | planner.c | optimizer/plan | optimizer | postgres": plan,
    }
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        keep(chapter, name, {TRANSACTIONS: profile})
    assert judged("lai-020", evidence.planning_facts(chapter)) is word
    assert judged("lai-020", evidence.phase_facts(chapter)) is word


@pytest.mark.parametrize(
    ("calls", "hot", "kept"),
    [(1.0, Verdict.GONE, Verdict.HOLDS), (9.0, Verdict.WEAKER, Verdict.GONE)],
)
def test_uses_that_cost_no_call_are_cached(chapter, calls, hot, kept):
    rows = {name: {"calls": 1.0, "in routine": 100.0} for name in instructions.ATTRIBUTE_COMMANDS}
    rows[f"{instructions.USES[-1]} uses"]["calls"] = calls
    keep(chapter, instructions.ATTRIBUTES, rows)
    profile = {"ExecScan | execScan.c | executor | executor | postgres": 10.0}
    keep(chapter, instructions.INSTRUCTIONS, {SCANS: profile})
    keep(chapter, instructions.CALLS, {SCANS: profile})
    keep(chapter, instructions.CALLERS, {SCANS: {"ExecScan": 1.0}})
    assert judged("lai-006", evidence.call_facts(chapter)) is hot
    assert judged("lai-007", evidence.caching_facts(chapter)) is kept


@pytest.mark.parametrize(("cost", "word"), [(1.0, Verdict.GONE), (90.0, Verdict.HOLDS)])
def test_tests_of_types_lead_where_they_take_as_much_as_the_second_routine(chapter, cost, word):
    counts = {"type test: instructions": cost, "other: instructions": 100.0 - cost}
    keep(chapter, checks.KINDS, dict.fromkeys(SETS, counts))
    profile = {
        "ExecScan | execScan.c | executor | executor | postgres": 60.0,
        "slot_getattr | heaptuple.c | access/common | access_methods | postgres": 40.0,
    }
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        keep(chapter, name, dict.fromkeys(SETS, profile))
    assert judged("lai-014", evidence.node_type_facts(chapter)) is word


@pytest.mark.parametrize(("share", "word"), [(60.0, Verdict.GONE), (0.0, Verdict.HOLDS)])
def test_rules_are_out_of_the_first_ten(chapter, share, word):
    profile = {
        "fireRules | rewriteHandler.c | rewrite | rule_manager | postgres": share,
        "ExecScan | execScan.c | executor | executor | postgres": 100.0 - share,
    }
    profile = {name: value for name, value in profile.items() if value}
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        keep(chapter, name, dict.fromkeys(SETS, profile))
    assert judged("lai-011", evidence.rule_facts(chapter)) is word
    facts = evidence.optimizer_facts(chapter)
    assert judged("lai-019", facts) is Verdict.HOLDS
    assert all(words.endswith("(0.0 %)") for words in facts)


def test_what_checks_take_is_told_beside_what_the_report_gained(chapter):
    counts = {"error check: executed": 30.0, "error check: instructions": 2.0}
    counts |= {"type test: instructions": 0.5, "other: instructions": 97.5}
    keep(chapter, checks.KINDS, dict.fromkeys(SETS, counts))
    profile = {"ExecStoreBufferHeapTuple | execTuples.c | executor | executor | postgres": 10.0}
    for name in (instructions.INSTRUCTIONS, instructions.CALLS):
        keep(chapter, name, dict.fromkeys(SETS, profile))
    said = sentences.checks_per_tuple(chapter)
    assert said.startswith("That is 3.0 error checks for each tuple")
    assert "Type tests take 0.5 % of the scans' instructions; the report gained 26.2 %" in said
    assert "Error checks take 2 % of the scans' instructions; the report gained 23.4 %" in said


def test_the_prints_ladder_multiplies_up():
    totals = printed.derived("profiling_totals")
    assert totals["gain"].prod() == pytest.approx(totals.at["sixth", "gain_in_all"])
    assert pd.isna(totals.at["transactions", "gain"])
    assert {row[0]: row[3] for row in in_print.checks()}["3.1.7, faster altogether"]


# ---- the flame graph


def test_frames_lie_below_their_callers_and_fill_them():
    frame = pd.DataFrame(
        {
            "stack": ["a", "a;b", "a;c", "a;c;d"],
            "value": [10.0, 20.0, 30.0, 40.0],
            "group": ["x", "y", "y", "x"],
        }
    )
    figure = page_charts.flame(
        frame,
        page_charts.Words(question="q", caption="c", name="n", description="d"),
        page_charts.Axis("of all"),
    )
    rows = figure.chart.data.set_index("function")
    assert (rows.at["a", "start"], rows.at["a", "end"], rows.at["a", "own"]) == (0, 100, 10)
    assert rows.at["c", "share"] == 70 and rows.at["b", "start"] == 70
    assert rows.at["d", "depth"] == 2 and rows.at["d", "group"] == "x"
    assert "<img" in figure._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match="group"):
        page_charts.flame(
            frame.drop(columns="group"),
            page_charts.Words(question="q", caption="c", description="d"),
            page_charts.Axis("x"),
        )


def test_graphs_of_the_same_groups_draw_them_in_the_same_colours():
    def colours(*groups):
        stacks = [f"s{place}" for place in range(len(groups))]
        values = [float(10 - place) for place in range(len(groups))]
        figure = page_charts.flame(
            pd.DataFrame({"stack": stacks, "value": values, "group": groups}),
            page_charts.Words(question="q", caption="c", name="n", description="d"),
            page_charts.Axis("of all"),
            groups=["x", "y", "z"],
        )
        frames = figure.chart.to_dict()["layer"][0]
        scale = frames["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    one, other = colours("z", "x"), colours("y", "z")
    assert set(one) == {"x", "z"} and set(other) == {"y", "z"} and one["z"] == other["z"]
    assert len({*one.values(), *other.values()}) == 3
