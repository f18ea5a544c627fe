"""The profiling chapter's query sets, its way from routine to subsystem, and its rules."""

import subprocess
from collections import Counter

import pandas as pd
import pytest

from pgrerun.chapters.profiling import drawings, queries, subsystems
from pgrerun.chapters.profiling.experiments import instructions
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import callgrind, patching, symbols
from pgrerun.lab.instruments import instructions as kinds_of_instruction
from pgrerun.lab.server import Cluster, bundled, fetched, releases
from pgrerun.lab.server.binaries import installed
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
    kinds = Counter(said.split()[0] for said, _ in queries.FIGURE_2_1)
    expected = {"retrieve": 7, "destroy": 5, "append": 2, "delete": 2, "replace": 2}
    assert expected.items() <= kinds.items()
    string = "MXXXXXXXXXXXXXXXXXXXXXXXXXGXXXXXXXXXXXXXXXXXXXXXXXXC"
    inserted, *_ = [sql for said, sql in queries.FIGURE_2_1 if f'stringu1 = "{string}"' in said]
    assert inserted.startswith("INSERT INTO tenk1 (unique1,") and f"'{string}'" in inserted
    assert queries.scans()[0].endswith("WHERE tenk1.unique2 > 1 AND tenk1.unique2 < 102")


def test_the_warm_up_has_each_kind_of_command_and_leaves_the_large_relations_alone():
    changes = {"INSERT", "DELETE", "UPDATE"}
    sent = [(command.split()[0], "onek" in command) for command in queries.warm_up()]
    assert {verb for verb, _ in sent} == {"CREATE", "DROP", "SELECT"} | changes
    assert all(small for verb, small in sent if verb in changes)


def test_a_batch_has_seven_commands_per_transaction_and_the_same_keys_every_time(bed):
    batch = queries.transactions(bed, 3)
    each = printed.cell("profiling_said", "commands", "value") / queries.REPORT_TRANSACTIONS
    assert len(batch) == 3 * each and "$" not in "".join(batch)
    assert queries.transactions(bed, 3, seed=1) != batch == queries.transactions(bed, 3)


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
    names = {"transformStmt": "postgres", "do_analyze_rel": "postgres", "malloc": "libc.so.6"}
    names["nobody_wrote_this"] = "postgres"
    frame = pd.DataFrame({"function": names.keys(), "object": names.values()})
    placed = subsystems.placed(frame, POSTGRES)
    assert placed["directory"].fillna("").tolist() == ["parser", "commands", "", ""]
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
@pytest.mark.skipif(bool(kinds_of_instruction.unavailable()), reason="objdump isn't installed")
def test_steps_of_threaded_code_are_counted_for_every_row():
    def rows(condition, number=1000):
        return [f"SELECT count(*) FROM generate_series(1, {number}) AS n WHERE {condition}"]

    one, two = rows("n > 0"), rows("n > 0 AND n % 2 < 2")
    groups = {"warm-up": [*one, *two], "one": one, "two": two}
    with Cluster() as cluster:
        cluster.stop()
        found = kinds_of_instruction.threaded(
            cluster, groups, "ExecInterpExpr", unreported={"warm-up"}
        )
        with pytest.raises(CannotMeasure):
            kinds_of_instruction.threaded(cluster, groups, "ExecScan", unreported={"warm-up"})
    by_group = found.set_index("group")
    more = by_group.loc["two"] - by_group.loc["one"]
    # a row's number, its remainder, a comparison, and what asks whether it is so
    assert 4 * 1000 <= more["steps"] <= 1.01 * 4 * 1000
    assert more["steps"] < more["leading"] < more["leading"] + more["fetching"]
    assert more["leading"] + more["fetching"] < more["instructions"]


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


@pytest.mark.parametrize(
    "programs",
    [bundled(), *installed(), *(fetched.chosen(one.release) for one in fetched.here())],
    ids=lambda one: one.version,
)
def test_each_release_has_the_routine_that_verifies_a_page(programs):
    """On 15 the experiment was set aside, as if that release verified none."""
    try:
        known = symbols.routines(programs.path("postgres"))
    except CannotMeasure as stripped:
        pytest.skip(str(stripped))
    assert releases.routine(programs.number, "PageIsVerified") in set(known["routine"])


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


@pytest.mark.parametrize(
    ("processor", "code"),
    [(patching.X86_64, "b801000000c3"), (patching.AARCH64, "20008052c0035fd6")],
)
def test_code_is_known_for_two_processors(processor, code):
    assert patching.machine_code(processor, 1).hex() == code
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
    words = page_charts.Words(question="q", caption="c", name="n", description="d")
    figure = page_charts.flame(frame, words, page_charts.Axis("of all"))
    rows = figure.chart.data.set_index("function")
    places = rows.loc[list("abcd"), ["start", "end", "own", "depth"]].values.tolist()
    assert places == [[0, 100, 10, 0], [70, 90, 20, 1], [0, 70, 30, 1], [0, 40, 40, 2]]
    with pytest.raises(ValueError, match="group"):
        page_charts.flame(frame.drop(columns="group"), words, page_charts.Axis("x"))


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


def distributed(**sets):
    """The same as a build has them that was distributed; for each query set its subsystems."""
    return [
        row | {"variant": "assertions"}
        for name, costs in sets.items()
        for row in profile(name, **costs)
    ]


def optimizing(scans, transactions):
    costs = {"scans": scans, "transactions": transactions}
    return distributed(**{k: {"optimizer": n, "executor": 1000 - n} for k, n in costs.items()})


DIRECTIVES = [
    {"variant": variant, "query_set": "scans", "instructions": instructions}
    for variant, instructions in (
        *(("assertions", 9999), ("no node checks", 1230), ("no assertions", 1000)),
        ("no buffer checks", 999),
    )
]


def managing(*costs):
    """Twelve other routines of 100 and fmgr in two parts, in the transactions and in the scans, and
    both by a build that keeps addresses of functions, where fmgr takes next to nothing."""
    return [
        {"variant": variant, "query_set": query_set, "routine": name, "file": ""}
        | {"instructions": n, "calls": n}
        for variant, kept in (("no stored addresses", 1), ("assertions", 50))
        for query_set, cost in zip(("transactions", "scans"), (one // kept for one in costs))
        for name, n in (
            *((f"other{number}", 100 + 10 * number) for number in range(12)),
            *(("fmgr", cost // 2), ("fmgr_c", cost - cost // 2)),
            ("(without a name)", 9999),
        )
    ]


MODULES = (
    *("access methods", "lib", "storage manager"),
    *("utilities", "executor", "optimizer"),
)


def callers(*modules):
    return [{"query_set": "scans", "caller": one, "subsystem": one, "calls": 1} for one in modules]


def uses(cached):
    return [{"uses": n, "calls": 3.0 if cached else 2.0 + n} for n in (1, 9)]


def calling(calls):
    [row] = distributed(scans={"fastgetattr": 1})
    return [row | {"calls": calls}]


def making_text(cost):
    return [{"part": part, "instructions": n} for part, n in (("making text", cost), ("all", 1000))]


def asked(without):
    return [
        {"routine": "PageIsVerified", "answer": "right", "last_words": ""},
        {"routine": "StartBufferIO", "answer": without, "last_words": "killed by signal 11"},
    ]


def checks(cost):
    return [
        {"query_set": one, "kind": kind, "routine": None, "executed": 1, "instructions": n}
        for one in ("scans", "transactions")
        for kind, n in (("type test", cost), ("other", 1000 - cost))
    ]


ROUTINES = [
    row
    for one in ("scans", "transactions")
    for row in profile(one, executor=700, parser=200, lib=100)
]


def ruled(few, many, attributes):
    """What the rule manager takes for few tuples, for many, and for many of many attributes."""
    each = ((1000, 1, few, False), (10000, 1, many, False), (10000, 13, attributes, False))
    return [
        {"tuples": n, "attributes": wide, "ruled": there, "in_rule_manager": took, "in_all": 10**6}
        for n, wide, took, there in (*each, (10000, 1, 10**5, True))
    ]


@pytest.mark.parametrize(
    ("claim", "tables", "said"),
    [
        # rules that take nothing have no effect
        ("lai-009", {"profile": profile(rule_manager=0, executor=1000)}, "no effect"),
        ("lai-009", {"profile": profile(rule_manager=156, executor=844)}, "holds"),
        # an optimizer is negligible below a twentieth
        ("lai-019", {"postgres95_profile": optimizing(1, 1)}, "holds"),
        ("lai-019", {"postgres95_profile": optimizing(1, 90)}, "partly"),
        ("lai-019", {"postgres95_profile": optimizing(90, 90)}, "not so"),
        # planning is as low as in print, less low, or more than processing data
        *(
            (
                "lai-020",
                {"postgres95_profile": distributed(transactions={"optimizer": n, "executor": 100})},
                said,
            )
            for n, said in ((17, "holds"), (70, "weaker"), (200, "reversed"))
        ),
        # a check of each tuple or of each attribute is there as long as its work grows
        ("lai-010", {"rules": ruled(300, 300, 300)}, "fixed"),
        ("lai-010", {"rules": ruled(300, 3000, 3000)}, "still there"),
        ("lai-010", {"rules": ruled(300, 300, 3000)}, "still there"),
        # a sixth of the transactions made text
        ("lai-023", {"postgres95_formatting": making_text(164)}, "holds"),
        ("lai-023", {"postgres95_formatting": making_text(10)}, "no effect"),
        # its parts are one routine, which is high and has the share; high alone; high in the scans
        ("lai-024", {"postgres95_profile": managing(970, 200)}, "holds"),
        ("lai-024", {"postgres95_profile": managing(205, 200)}, "partly"),
        ("lai-024", {"postgres95_profile": managing(50, 200)}, "partly"),
        ("lai-024", {"postgres95_profile": managing(50, 50)}, "not so"),
        # what a directive gains is a build over a build
        ("lai-015", {"postgres95_profile": DIRECTIVES}, "holds"),
        ("lai-018", {"postgres95_profile": DIRECTIVES}, "no effect"),
        # in print a routine was called 202,760 times after its results were saved
        *(
            ("lai-007", {"postgres95_uses": uses(saved), "postgres95_profile": calling(n)}, said)
            for saved, n, said in (
                (True, 200_000, "holds"),
                (False, 200_000, "holds"),
                (True, 1_800_000, "not so"),
                (False, 1_800_000, "not so"),
            )
        ),
        # nearly all modules of the first breakdown, and each use
        *(
            (
                "lai-006",
                {"postgres95_callers": callers(*who), "postgres95_uses": uses(cached)},
                said,
            )
            for who, cached, said in (
                (MODULES[1:], False, "holds"),
                ([*MODULES[2:], "rule manager"], False, "partly"),
                ([*MODULES[3:], "parser", "system functions"], True, "not so"),
            )
        ),
        # a check is decisive where the server is lost without it
        ("lai-017", {"always_true": asked("none")}, "holds"),
        ("lai-017", {"always_true": asked("right")}, "partly"),
        # tests of types lead where they take as much as the second routine
        ("lai-014", {"profile": ROUTINES, "kinds_of_instruction": checks(300)}, "holds"),
        ("lai-014", {"profile": ROUTINES, "kinds_of_instruction": checks(1)}, "not so"),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, said):
    assert word(claim, "profiling", **tables) == said
