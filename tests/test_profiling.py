"""The profiling chapter's query sets, its way from routine to subsystem, and its rules."""

import subprocess
from functools import partial

import pandas as pd
import pytest

from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.chapters.profiling.experiments import instructions, postgres95
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.instruments import callgrind, patching, symbols
from pgrerun.lab.instruments import instructions as kinds_of_instruction
from pgrerun.lab.server import Cluster, bundled, fetched, releases
from pgrerun.lab.server.binaries import installed
from pgrerun.page import charts
from pgrerun.record import printed
from tests.judging import UNTESTED, counted, word

NO_CALLGRIND = pytest.mark.skipif(
    callgrind.unavailable() is not None, reason=str(callgrind.unavailable())
)
CHAPTER = "profiling"
SMALL = {}
POSTGRES = bundled().path("postgres")


# ---- the query sets


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


def test_what_the_scans_change_for_good_is_undone(bed):
    with Cluster() as cluster, cluster.connect() as connection:
        queries.load(bed, cluster)
        for command in [*queries.scans(), *queries.UNDO]:
            connection.execute(command)
        found = connection.execute("SELECT count(*), sum(unique2) FROM tenk1").fetchone()
        assert found == (10_000, 9_999 * 5_000)


# ---- from routine to subsystem


def test_routines_are_placed_as_the_source_has_them():
    # one static, one told by __func__, one that lies between two of its file, and two of files
    # whose name others have, which their neighbours tell apart
    expected = {
        "standard_ProcessUtility": ("utility.c", "tcop", "others"),
        "heap_prepare_pagescan": ("heapam.c", "access/heap", "access_methods"),
        "AllocSetAlloc": ("aset.c", "utils/mmgr", "utilities"),
        "transformStmt": ("analyze.c", "parser", "parser"),
        "do_analyze_rel": ("analyze.c", "commands", "others"),
        "malloc": ("", "", "system_functions"),
        "nobody_wrote_this": ("", "", "unknown"),
    }
    programs = ["libc.so.6" if name == "malloc" else "postgres" for name in expected]
    asked = pd.DataFrame({"function": list(expected), "object": programs})
    found = subsystems.placed(asked, POSTGRES)[["file", "directory", "subsystem"]]
    assert [tuple(row) for row in found.fillna("").values] == list(expected.values())


def test_the_map_knows_every_file_of_the_program_and_names_known_subsystems():
    sources = subsystems.SOURCES
    named = {*sources["subsystem"], *printed.table("profiling_subsystems").index}
    assert named <= set(subsystems.NAMES)
    frame = symbols.routines(POSTGRES)
    files = {file for file, _ in pd.concat([frame["before"], frame["after"]]).dropna()}
    used = {file for file in files if file.endswith(".c")} - {"crtstuff.c"}
    assert used | set(subsystems.BY_HAND.values()) <= set(sources["file"])


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


# ---- stacks of instructions


def test_a_number_in_a_callgrind_name_counts_a_recursion():
    frame = pd.DataFrame({"function": ["walk'2'walk'planner", "planner"], "exclusive": [1, 2]})
    found = callgrind.stacked(frame, "g")
    assert found["stack"].tolist() == ["planner;walk;walk", "planner"]
    assert found["function"].tolist() == ["walk", "planner"]


def below_the_query(**exclusive):
    stacks = ["main;exec_simple_query;" + name.replace("__", ";") for name in exclusive]
    return pd.DataFrame({"stack": stacks, "exclusive": exclusive.values()})


def test_small_frames_become_their_callers_own():
    found = instructions.pruned(below_the_query(a=900, a__b=1, c__d=99))
    assert found == {"exec_simple_query;a": 901, "exec_simple_query;c;d": 99}


def test_phases_add_up_and_a_utility_plans_as_well():
    utility = {"PortalRun__ExecCreateTableAs__pg_plan_query": 2}
    stacks = below_the_query(pg_parse_query=1, **utility, PortalRun__x=4, y=8)
    expected = {"parse": 1, "plan": 2, "execute": 4, "begin and commit": 0, "dispatch": 8}
    assert instructions.phases(stacks) == expected


@NO_CALLGRIND
def test_groups_are_counted_apart_and_twice_the_same(cluster, stopped):
    groups = {
        "warm-up": ["SELECT 1"],
        "few": ["SELECT count(*) FROM generate_series(1, 100)"],
        "many": ["SELECT count(*) FROM generate_series(1, 10000)"],
    }
    with pytest.raises(RerunError, match="stop"):
        callgrind.stacks(cluster, groups)
    first, second = (
        callgrind.stacks(stopped, groups, callers=callers).groupby("group")["exclusive"].sum()
        for callers in (0, 30)
    )
    assert first["many"] > first["few"] + 10_000 * 50
    assert second.to_dict() == pytest.approx(first.to_dict(), rel=0.01)
    if kinds_of_instruction.unavailable():
        return
    found = kinds_of_instruction.kinds(stopped, groups, unreported={"warm-up"})
    checks = found[found["kind"] == kinds_of_instruction.ERROR_CHECK]
    checked = checks.groupby("group")["executed"].sum()
    total = found.groupby("group")["instructions"].sum()
    assert set(total.index) == {"few", "many"}
    assert 0 < checked["few"] < checked["many"] < total["many"]
    # libraries are left out of the kinds and are in the stacks
    assert 0.7 * first["many"] < total["many"] <= first["many"] * 1.01


@NO_CALLGRIND
@pytest.mark.skipif(bool(kinds_of_instruction.unavailable()), reason="objdump isn't installed")
def test_steps_of_threaded_code_are_counted_for_every_row(stopped):
    scan = "SELECT count(*) FROM generate_series(1, 1000) AS n WHERE"
    one, two = [f"{scan} n > 0"], [f"{scan} n > 0 AND n % 2 < 2"]
    groups = {"warm-up": [*one, *two], "one": one, "two": two}
    threaded = partial(kinds_of_instruction.threaded, stopped, groups, unreported={"warm-up"})
    by_group = threaded("ExecInterpExpr").set_index("group")
    with pytest.raises(CannotMeasure):
        threaded("ExecScan")
    more = by_group.loc["two"] - by_group.loc["one"]
    # a row's number, its remainder, a comparison, and what asks whether it is so
    assert 4 * 1000 <= more["steps"] <= 1.01 * 4 * 1000
    assert more["steps"] < more["leading"] < more["leading"] + more["fetching"]
    assert more["leading"] + more["fetching"] < more["instructions"]


@NO_CALLGRIND
def test_a_warm_up_that_is_not_followed_changes_no_stack(stopped, monkeypatch):
    both = ["SELECT count(*) FROM generate_series(1, 1000)", "SELECT 1"]
    stacks = partial(callgrind.stacks, stopped, {"warm-up": both, "both": both})
    always, late = (
        instructions.pruned(stacks(unreported={"warm-up"}, late=late)) for late in (False, True)
    )
    # a jump through the program's linkage table is counted in the one case and not in the other
    assert len(late) > 10 and late == pytest.approx(always, abs=0.002 * sum(always.values()))
    # as where processes mustn't be traced
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false")
    with pytest.raises(callgrind.NotSwitchedOn, match="runs already"):
        stacks(unreported={"warm-up"}, late=True)


def test_frames_lie_below_their_callers_and_fill_them():
    frame = pd.DataFrame(
        {
            "stack": ["a", "a;b", "a;c", "a;c;d"],
            "value": [10.0, 20.0, 30.0, 40.0],
            "group": ["x", "y", "y", "x"],
        }
    )
    words = charts.Words(question="q", caption="c", name="n", description="d")
    rows = charts.flame(frame, words, charts.Axis("of all")).chart.data.set_index("function")
    places = rows.loc[list("abcd"), ["start", "end", "own", "depth"]].values.tolist()
    assert places == [[0, 100, 10, 0], [70, 90, 20, 1], [0, 70, 30, 1], [0, 40, 40, 2]]


def test_calls_in_a_programs_code_are_those_of_the_routine_itself(monkeypatch):
    code = """
080624f0 <fastgetattr>:
fastgetattr():
/src/backend/access/common/heaptuple.c:401
 80624f5:\tjmp    8062501 <fastgetattr+0x11>
0809aa10 <ExecEvalVar>:
/src/backend/executor/execQual.c:120 (discriminator 3)
 809aa15:\tcall   80624f0 <fastgetattr>
 809aa25:\tcall   809bb10 <heap_getattr>
 809aa2a:\tjmp    80624f0 <fastgetattr>
0809cc10 <nameless>:
 809cc15:\tcall   80624f0 <fastgetattr>
"""
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/objdump")
    done = subprocess.CompletedProcess([], 0, code)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: done)
    found = kinds_of_instruction.callers("postgres", ["fastgetattr"])
    file = "/src/backend/executor/execQual.c"
    assert found.values.tolist() == [["ExecEvalVar", file, 2], ["nameless", "", 1]]


# ---- a routine that is replaced


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


def test_code_is_known_for_the_other_processor_and_for_no_third():
    assert patching.machine_code(patching.AARCH64, 1).hex() == "20008052c0035fd6"
    with pytest.raises(CannotMeasure, match="x86-64 and AArch64"):
        patching.machine_code(8, 1)


# ---- builds of Postgres95


def test_what_malloc_and_free_call_without_a_name_is_theirs_and_no_call_of_them():
    counted_by_caller = {
        "malloc'palloc": (40, 4),
        "malloc'2'strdup": (10, 1),
        "(without a name)'malloc": (25, 5),
        "(without a name)'2'free": (7, 1),
        "(without a name)'0x0001a2b0": (9, 3),
        "(without a name)'ExecScan": (8, 2),
        "(without a name)": (1, 1),
        "ExecScan'malloc": (5, 1),
    }
    found = pd.DataFrame(
        {"function": name, "file": "", "object": "libc.so.6", "exclusive": cost, "calls": calls}
        for name, (cost, calls) in counted_by_caller.items()
    )
    routines = postgres95.by_routine(found).set_index("function")
    assert {name: (*row,) for name, row in routines[["exclusive", "calls"]].T.items()} == {
        "malloc": (75, 5),
        "free": (7, 0),
        "(without a name)": (18, 6),
        "ExecScan": (5, 1),
    }


# ---- what the rules make of rows

PROFILE = """
query_set     kind     name      routine   routine_group  subsystem     instructions  calls
scans         routine  ExecScan  ExecScan  None           executor      {0}           1
scans         routine  prs2Main  prs2Main  None           rule manager  {1}           1
scans         routine  lappend   lappend   None           lib           {2}           1
transactions  routine  ExecScan  ExecScan  None           executor      {0}           1
transactions  routine  prs2Main  prs2Main  None           rule manager  {1}           1
transactions  routine  lappend   lappend   None           lib           {2}           1
"""
KINDS = """
query_set     kind       routine  executed  instructions
scans         type test  None     1         {0}
scans         other      None     1         {1}
transactions  type test  None     1         {0}
transactions  other      None     1         {1}
"""

# What the rule manager takes for few tuples, for many, and for many of many attributes; what a
# command takes where rules are that don't concern it.
RULES = """
tuples  attributes  ruled  in_rule_manager  in_all
1000    1           False  {0}              1000000
10000   1           False  {1}              1000000
10000   13          False  {2}              1000000
10000   1           True   100000           {3}
"""

# Of Postgres95: as it was distributed, and as it is compiled by directives.
OPTIMIZER = """
variant     query_set     routine   subsystem  instructions  calls
assertions  scans         planner   optimizer  {0}           1
assertions  scans         ExecScan  executor   {1}           1
assertions  transactions  planner   optimizer  {2}           1
assertions  transactions  ExecScan  executor   {3}           1
"""
DIRECTIVES = """
variant           query_set  instructions
assertions        scans      9999
no node checks    scans      1230
no assertions     scans      1000
no buffer checks  scans      999
"""
EMPTY_CALLS = """
variant        query_set  routine     instructions  calls
no assertions  scans      ReadBuffer  1000          1
empty calls    scans      ReadBuffer  {0}           1
empty calls    scans      flag_print  5             11
empty calls    scans      BM_debug    5             11
"""
FORMATTING = """
part         instructions
making text  {0}
all          1000
"""

# A condition that uses an attribute once and nine times; what fetching every attribute takes, and
# how often the scans ask for one then and otherwise.
USES = """
uses  calls
1     3.0
9     {0}
"""
FETCHING = """
variant          query_set  routine      subsystem       instructions  calls
every attribute  scans      fastgetattr  access methods  {0}           1
every attribute  scans      ExecScan     executor        {1}           1
"""
ASKING = """
variant                routine      file         subsystem       instructions  calls
{0}                    fastgetattr  heaptuple.c  access methods  1             1_800_000
rules asked for first  fastgetattr  heaptuple.c  access methods  1             {1}
"""
MODULES = (
    *("access methods", "lib", "storage manager"),
    *("utilities", "executor", "optimizer", "rule manager"),
)

ALWAYS_TRUE = """
routine         answer  last_words
PageIsVerified  right   ''
StartBufferIO   {0}     killed by signal 11
"""


def managing(*costs):
    """Twelve other routines of 100 and fmgr in two parts, in the transactions and in the scans, and
    both by a build that keeps addresses of functions, where fmgr takes next to nothing."""
    found = [
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
    return {"postgres95_profile": found}


# The states that the figures profiled: their builds and commands.
PROFILED = (
    ("every attribute", "scans"),
    ("assertions", "scans"),
    ("assertions", "transactions"),
    ("no node checks", "scans"),
    ("empty calls", "scans"),
    ("no assertions", "scans"),
    ("no buffer checks", "scans"),
)


def allocating(high, routine="AllocSetAlloc", states=PROFILED):
    """A routine for memory below nine others, two of which are several routines, and below what has
    no name; in all but so many states it is below five more."""
    found = [
        {"variant": variant, "query_set": query_set, "routine": name, "file": file}
        | {"instructions": n, "calls": n}
        for place, (variant, query_set) in enumerate(states)
        for name, file, n in (
            *((f"other{number}", "other.c", 1000 + number) for number in range(7)),
            *(("fmgr", "fmgr.c", 600), ("fmgr_c", "fmgr.c", 600)),
            *(("search", "tree.c", 600), ("search.part.0", "tree.c", 600)),
            *(("(without a name)", "", 9999), (routine, "", 500 if place < high else 10)),
            *((f"rest{number}", "rest.c", 100 + number) for number in range(5)),
        )
    ]
    return {"postgres95_profile": found}


def asking(calls, for_nine, dearest="rules asked for each attribute"):
    return {
        "postgres95_changes": counted(ASKING, dearest, calls),
        "postgres95_uses": counted(USES, for_nine),
    }


def callers(*modules, for_nine):
    found = [{"caller": one, "directory": "", "subsystem": one, "calls": 1} for one in modules]
    return {"postgres95_callers": found, "postgres95_uses": counted(USES, for_nine)}


# What two calls of POSTGRES's fastgetattr take.
CALLING = """
variant                              routine      file         subsystem       instructions  calls
length written out                   fastgetattr  heaptuple.c  access methods  {0}           2
length in a variable                 fastgetattr  heaptuple.c  access methods  {1}           2
length written out, every attribute  fastgetattr  heaptuple.c  access methods  {2}           2
"""


def ruling(
    first, each, others=10, builds=("rules asked for first", "rules asked for each attribute")
):
    """What the rule manager takes that asks first, and that asks for each attribute; the same of
    each of so many others, and what has no name.
    """
    rest = [(f"Exec{number}", "executor", 20_000) for number in range(others)]
    rest.append(("(without a name)", "lib", 1_000_000))
    found = [
        {"variant": variant, "routine": name, "file": "a.c", "subsystem": subsystem}
        | {"instructions": cost, "calls": 1}
        for variant, own in zip(builds, (first, each))
        for name, subsystem, cost in (("prs2Retrieve", "rule manager", own), *rest)
    ]
    return {"postgres95_changes": found}


@pytest.mark.parametrize(
    ("claim", "tables", "said"),
    [
        # a fifth of a scan, more, less, nothing
        # of a whole as large as print's: the other routines are taken as half as much again
        ("lai-005", {"postgres95_profile": counted(FETCHING, 255, 745)}, "holds"),
        ("lai-005", {"postgres95_profile": counted(FETCHING, 181, 819)}, "weaker"),
        ("lai-005", {"postgres95_profile": counted(FETCHING, 600, 400)}, "stronger"),
        ("lai-005", {"postgres95_profile": counted(FETCHING, 120, 880)}, "weaker"),
        ("lai-005", {"postgres95_profile": counted(FETCHING, 20, 980)}, "no effect"),
        # nearly all modules of the first breakdown, and each use; who isn't seen to call may call
        ("lai-006", callers(*MODULES[1:], for_nine=11.0), "holds"),
        ("lai-006", callers(*MODULES[1:], for_nine=3.0), "partly"),
        ("lai-006", callers(*MODULES[2:], "parser", "system functions", for_nine=11.0), "partly"),
        ("lai-006", callers(*MODULES[2:], for_nine=3.0), "not so"),
        # in print a ninth of the calls was left, as results were saved
        ("lai-007", asking(200_000, for_nine=3.0), "holds"),
        ("lai-007", asking(200_000, for_nine=11.0), "partly"),
        ("lai-007", asking(1_700_000, for_nine=3.0), "partly"),
        ("lai-007", asking(1_700_000, for_nine=11.0), "not so"),
        # without the build that fetches all
        ("lai-007", asking(200_000, for_nine=3.0, dearest="length in a variable"), UNTESTED),
        # a call is dearer without the variable or isn't; what else was fetched doesn't count
        ("lai-008", {"postgres95_changes": counted(CALLING, 524, 334, 999)}, "holds"),
        ("lai-008", {"postgres95_changes": counted(CALLING, 336, 334, 999)}, "no effect"),
        ("lai-008", {"postgres95_changes": counted(CALLING, 300, 334, 999)}, "reversed"),
        ("lai-008", {"postgres95_changes": counted(CALLING, 524, 334, 999)[1:]}, UNTESTED),
        # a check takes rules out of the first ten and leaves as much of them as by what is printed:
        # both, one, none; what was never among them can't be taken out
        ("lai-011", ruling(10_800, 300_000), "holds"),
        ("lai-011", ruling(16_800, 300_000), "partly"),
        ("lai-011", ruling(10_800, 300_000, others=9), "partly"),
        ("lai-011", ruling(360, 10_000), "partly"),
        ("lai-011", ruling(100_000, 300_000), "not so"),
        ("lai-011", ruling(16_800, 300_000, builds=("rules asked for first",)), UNTESTED),
        # rules that take less than after the report's mend are no fault any more
        ("lai-009", {"profile": counted(PROFILE, 1000, 0, 0)}, "fixed"),
        ("lai-009", {"profile": counted(PROFILE, 990, 10, 0)}, "fixed"),
        ("lai-009", {"profile": counted(PROFILE, 989, 11, 0)}, "still there"),
        ("lai-009", {"profile": counted(PROFILE, 844, 156, 0)}, "still there"),
        # a check of each tuple or of each attribute is there as long as its work grows
        ("lai-010", {"rules": counted(RULES, 300, 300, 300, 1_009_000)}, "fixed"),
        ("lai-010", {"rules": counted(RULES, 300, 3000, 3000, 1_000_000)}, "still there"),
        ("lai-010", {"rules": counted(RULES, 300, 300, 3000, 1_000_000)}, "still there"),
        # or takes as much as after the report's mend, or rules for others make a command dearer
        ("lai-010", {"rules": counted(RULES, 11_000, 11_000, 11_000, 1_000_000)}, "still there"),
        ("lai-010", {"rules": counted(RULES, 300, 300, 300, 1_011_000)}, "still there"),
        # what a directive gains is a build over a build
        ("lai-015", {"postgres95_profile": counted(DIRECTIVES)}, "holds"),
        ("lai-018", {"postgres95_profile": counted(DIRECTIVES)}, "no effect"),
        # useless calls cost what is printed, of all that is executed
        ("lai-016", {"postgres95_profile": counted(EMPTY_CALLS, 1_011)}, "holds"),
        ("lai-016", {"postgres95_profile": counted(EMPTY_CALLS, 1_003)}, "weaker"),
        ("lai-016", {"postgres95_profile": counted(EMPTY_CALLS, 1_100)}, "stronger"),
        ("lai-016", {"postgres95_profile": counted(EMPTY_CALLS, 992)}, "no effect"),
        # a check is decisive where the server is lost without it
        ("lai-017", {"always_true": counted(ALWAYS_TRUE, "none")}, "holds"),
        ("lai-017", {"always_true": counted(ALWAYS_TRUE, "right")}, "partly"),
        # not significant is less than a twentieth of all
        ("lai-019", {"postgres95_profile": counted(OPTIMIZER, 1, 999, 1, 999)}, "holds"),
        ("lai-019", {"postgres95_profile": counted(OPTIMIZER, 20, 980, 49, 951)}, "holds"),
        ("lai-019", {"postgres95_profile": counted(OPTIMIZER, 20, 980, 51, 949)}, "partly"),
        ("lai-019", {"postgres95_profile": counted(OPTIMIZER, 90, 910, 90, 910)}, "not so"),
        # planning is as low as in print, less low, or more than processing data
        ("lai-020", {"postgres95_profile": counted(OPTIMIZER, 1, 999, 17, 100)}, "holds"),
        ("lai-020", {"postgres95_profile": counted(OPTIMIZER, 1, 999, 70, 100)}, "weaker"),
        ("lai-020", {"postgres95_profile": counted(OPTIMIZER, 1, 999, 200, 100)}, "reversed"),
        # a sixth of the transactions made text
        ("lai-023", {"postgres95_formatting": counted(FORMATTING, 164)}, "holds"),
        ("lai-023", {"postgres95_formatting": counted(FORMATTING, 10)}, "no effect"),
        # its parts are one routine, which is high, whatever its share; high in the scans alone
        ("lai-024", managing(970, 200), "holds"),
        ("lai-024", managing(205, 200), "holds"),
        ("lai-024", managing(50, 200), "partly"),
        ("lai-024", managing(50, 50), "not so"),
        # memory is given out by one of the first ten in all seven figures, in some, in none
        ("lai-025", allocating(7), "holds"),
        ("lai-025", allocating(7, routine="malloc"), "holds"),
        ("lai-025", allocating(6), "partly"),
        ("lai-025", allocating(0), "not so"),
        # taking it back is something else; a state that nobody built leaves the claim open
        ("lai-025", allocating(7, routine="AllocSetFree"), "not so"),
        ("lai-025", allocating(7, states=PROFILED[:-1]), UNTESTED),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, said):
    assert word(claim, "profiling", **tables) == said
