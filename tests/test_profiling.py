"""The profiling chapter's query sets, its way from routine to subsystem, and its rules."""

import subprocess

import pandas as pd
import pytest

from pgrerun.chapters.profiling import drawings, queries, subsystems
from pgrerun.chapters.profiling.experiments import instructions
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import callgrind, patching, symbols
from pgrerun.lab.instruments import instructions as kinds_of_instruction
from pgrerun.lab.server import Cluster, bundled
from pgrerun.lab.testbed import Testbed
from pgrerun.page import charts as page_charts
from pgrerun.parameters import chapter_parameters
from pgrerun.record import printed
from tests.judging import word

NO_CALLGRIND = pytest.mark.skipif(
    callgrind.unavailable() is not None, reason=str(callgrind.unavailable())
)
POSTGRES = bundled().path("postgres")


@pytest.fixture
def bed():
    found = Testbed(chapter_parameters("profiling", {}), bundled())
    yield found
    found.close()


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


def test_a_batch_has_seven_commands_per_transaction_and_the_same_keys_every_time(bed):
    batch = queries.transactions(bed, 3)
    assert len(batch) == 3 * printed.cell(
        "profiling_said", "commands", "value"
    ) / queries.REPORT_TRANSACTIONS and batch == queries.transactions(bed, 3)
    assert batch != queries.transactions(bed, 3, seed=1)
    assert not any("$" in command for command in batch)


def test_both_sets_run_and_the_batch_is_consistent(bed):
    with Cluster() as cluster, cluster.connect() as connection:
        queries.load(bed, cluster)
        for command in [*queries.warm_up(), *queries.scans(), *queries.UNDO]:
            connection.execute(command)
        assert connection.execute("SELECT count(*), sum(unique2) FROM tenk1").fetchone() == (
            10_000,
            9_999 * 5_000,
        )
        for command in queries.transactions(bed, 3):
            connection.execute(command)
        found = queries.BANK.check(connection)
        assert found.consistent and found.transactions == 3


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
        with statement_log.record() as account:
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


def test_a_flame_graph_tells_the_largest_subsystems_and_routines():
    routines = pd.DataFrame(
        {
            "name": ["a", "b"],
            "routine": ["a", "b"],
            "subsystem": ["executor", "parser"],
            "share": [0.75, 0.25],
        }
    )
    stacks = pd.DataFrame({"name": ["a", "a;b"], "instructions": [30, 10]})
    caption = drawings.flame(stacks, routines, "scans").caption
    assert "executor (75 %)" in caption and "a (75 %)" in caption


# ---- what the rules make of rows


def profile(query_set="scans", **subsystems_):
    """Rows of one routine for each subsystem, with so many instructions."""
    return [
        {
            "query_set": query_set,
            "kind": "routine",
            "name": name,
            "routine": name,
            "routine_group": None,
            "subsystem": name.replace("_", " "),
            "instructions": cost,
            "calls": 1,
        }
        for name, cost in subsystems_.items()
    ]


def test_rules_that_take_nothing_have_no_effect():
    free = profile(rule_manager=0, executor=1000)
    dear = profile(rule_manager=156, executor=844)
    assert word("lai-009", "profiling", profile=free) == "no effect"
    assert word("lai-009", "profiling", profile=dear) == "holds"


@pytest.mark.parametrize(
    ("scans", "transactions", "said"),
    [(1, 1, "holds"), (1, 90, "partly"), (90, 90, "not so")],
)
def test_an_optimizer_is_negligible_below_a_twentieth(scans, transactions, said):
    rows = profile("scans", optimizer=scans, executor=1000 - scans)
    rows += profile("transactions", optimizer=transactions, executor=1000 - transactions)
    assert word("lai-019", "profiling", postgres95_profile=as_distributed(rows)) == said


@pytest.mark.parametrize(("plan", "said"), [(10, "holds"), (70, "not so"), (200, "reversed")])
def test_planning_is_low_where_processing_data_is_more(plan, said):
    rows = profile("transactions", optimizer=plan, executor=100)
    assert word("lai-020", "profiling", postgres95_profile=as_distributed(rows)) == said


def as_distributed(rows):
    return [row | {"variant": "assertions"} for row in rows]


def test_what_a_directive_gains_is_a_build_over_a_build():
    cost = {"assertions": 1230, "no assertions": 1000, "no buffer checks": 999}
    rows = [
        {"variant": variant, "query_set": "scans", "instructions": instructions}
        for variant, instructions in cost.items()
    ]
    assert word("lai-015", "profiling", postgres95_profile=rows) == "holds"
    assert word("lai-018", "profiling", postgres95_profile=rows) == "no effect"


def attributes(per_use, by_place=(94.0, 400.0)):
    uses = [("uses", number, per_use * number, 100.0) for number in (1, 9)]
    places = [("place", number, 1.0, cost) for number, cost in zip((1, 13), by_place)]
    return [
        {"varied": v, "number": n, "calls": c, "in_routine": i, "in_all": 2 * i}
        for v, n, c, i in uses + places
    ]


def test_uses_that_cost_no_call_are_cached():
    cached = [row | ({"calls": 1.0} if row["varied"] == "uses" else {}) for row in attributes(1.0)]
    assert word("lai-007", "profiling", attributes=cached) == "holds"
    assert word("lai-007", "profiling", attributes=attributes(1.0)) == "not so"


def test_a_check_is_decisive_where_the_server_is_lost_without_it():
    asked = [
        {"routine": "PageIsVerified", "answer": "right", "last_words": ""},
        {"routine": "StartBufferIO", "answer": "none", "last_words": "killed by signal 11"},
    ]
    assert word("lai-017", "profiling", always_true=asked) == "holds"
    fine = [row | {"answer": "right"} for row in asked]
    assert word("lai-017", "profiling", always_true=fine) == "partly"


def test_tests_of_types_lead_where_they_take_as_much_as_the_second_routine():
    rows = [
        row
        for one in ("scans", "transactions")
        for row in profile(one, executor=700, parser=200, lib=100)
    ]

    def checks(cost):
        return [
            {"query_set": one, "kind": kind, "routine": None, "executed": 1, "instructions": n}
            for one in ("scans", "transactions")
            for kind, n in (("type test", cost), ("other", 1000 - cost))
        ]

    given = {"profile": rows, "kinds_of_instruction": checks(300)}
    assert word("lai-014", "profiling", **given) == "holds"
    given["kinds_of_instruction"] = checks(1)
    assert word("lai-014", "profiling", **given) == "not so"
