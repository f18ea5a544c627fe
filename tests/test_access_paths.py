"""The chapter `access_paths`: what its experiments find, and that its claims can fail."""

import judging
import pytest
from servers import url_of

from pgrerun.chapters.access_paths import accounts
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    builds,
    covering,
    joins,
    lookups,
    ranges,
    sorting,
    trees,
    visibility,
)
from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab.instruments import plans, sizes
from pgrerun.record import printed

ROWS = 20_000
SMALL = {
    "accounts": ROWS,
    "joined": ROWS,
    "objects": 10_000,
    "lookups": 500,
    "milliseconds": 1,
    "clients": 2,
    "crashes": 1,
    "pairs": 5,
    "seed": 1,
}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with as little of everything as its parameters allow."""
    with judging.opened(tmp_path_factory.mktemp("runs"), "access_paths", SMALL) as found:
        yield found


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.bed.server


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


def where(name, value, **values):
    """A change of rows: where the column `name` has a value, others get these."""

    def change(frame):
        frame.loc[frame[name] == value, list(values)] = list(values.values())
        return frame

    return change


# ---- the print


def test_the_layout_of_a_page_gives_the_talks_sizes():
    assert printed.value("tree_pages(?)", accounts.in_print()) == 274_194
    # a level more from one entry to the next
    assert [printed.value("tree_pages(?)", rows) for rows in (366, 367)] == [2, 4]


def test_print_against_print():
    rows = printed.recomputed("access_paths").set_index("where")
    [(where_, row)] = rows[~rows.agrees].iterrows()
    assert "entire test case in memory" in where_ and row.recomputed == "90,600 lookups"


# ---- what is counted, and that it can come out otherwise


# of what is counted, words that no notebook commits
@pytest.mark.parametrize(
    ("claim", "expected"),
    {"haas-040": "partly"}.items(),
)
def test_what_counts_say(chapter, claim, expected):
    assert judging.changed_word(chapter, claim) == expected


CHANGED = [
    ("haas-029", {"map_size": lambda f: f.assign(bits=1.0)}, "holds"),
    ("haas-030", {"bits": where("step", "one row updated", all_visible=286)}, "partly"),
    ("haas-030", {"bits": where("step", visibility.BESIDE, all_visible=286)}, "partly"),
    ("haas-033", {"reads": where("scan", accounts.ONLY, table_pages=1)}, "partly"),
    ("haas-036", {"index_sizes": where("columns", "(aid)", bytes=8192)}, "partly"),
    ("haas-036", {"index_sizes": lambda f: f.assign(computed=9)}, "partly"),
    ("haas-036", {"index_sizes": where("columns", "(aid)", bytes=8192, pages=1)}, "not so"),
    ("haas-037", {"index_sizes": lambda f: f.assign(entry=24)}, "partly"),
    ("haas-040", {"autovacuum": lambda f: f.assign(marked=0)}, "holds"),
    ("haas-040", {"autovacuum": lambda f: f.assign(marked=0, vacuumed=0)}, "inconclusive"),
    ("haas-043", {"reads": where("scan", accounts.ONLY, index_pages=0)}, "not so"),
    ("haas-044", {"costs": lambda f: f.assign(chosen="Seq Scan")}, "partly"),
    ("haas-045", {"reads": lambda f: f.assign(heap_fetches=7)}, "partly"),
    ("haas-045", {"reads": where("scan", covering.HALF, heap_fetches=1000)}, "partly"),
    ("haas-045", {"reads": where("scan", covering.HALF, unmarked=0, heap_fetches=0)}, "partly"),
    ("haas-047", {"costs": lambda f: f.assign(index_only=f["index_only"] ** 0.5)}, "holds"),
    ("haas-056", {"btrees": where("way", "built at once", lookup=9)}, "not so"),
]


@pytest.mark.parametrize(("claim", "changes", "expected"), CHANGED)
def test_other_rows_give_another_word(chapter, claim, changes, expected):
    assert judging.changed_word(chapter, claim, **changes) == expected


@pytest.mark.parametrize(
    ("before", "then", "records", "wrong", "expected"),
    [
        (0, 56, 1, 0, "holds"),
        (56, 56, 1, 0, "partly"),
        (0, 20, 1, 0, "partly"),
        (0, 56, 0, 1, "holds"),  # of today's, and told only
        (56, 0, 0, 0, "not so"),
    ],
)
def test_what_was_not_in_the_wal_before_is_told_by_its_growth(
    before, then, records, wrong, expected
):
    grown = [
        {"server": server, "pages": bits, "bits": bits, "bytes": 300 + per_bit * bits}
        for server, per_bit in (("9.1", before), ("9.2", then))
        for bits in (64, 640)
    ]
    crash = {"crash": 1, "updated": 5, "marked": 9, "wrong_visible": 0, "wrong_frozen": 0}
    logged = [{"change": "cleared", "bits": 1, "records": records}]
    tables = {"crashes": [crash | {"differing": wrong}], "logged": logged}
    found = judging.word("haas-031", "access_paths", logged_on_releases=grown, **tables)
    assert found == expected


# ---- what is timed


def blocks(experiment_rows):
    """Rows of variants in seven blocks that hardly differ."""
    return [
        {**row, **{name: value * (1 + b / 1000) for name, value in metrics.items()}}
        | {"comparison": 0, "block": b, "disturbed": "", "left_out": False}
        for row, metrics in experiment_rows
        for b in range(7)
    ]


def fraction_rows(none, **others):
    """Gains by the share of all-visible pages: with none, and by per cent ("at_50") with others."""
    gains = dict.fromkeys(ranges.PERCENT, 2.0) | {0: none}
    gains |= {int(name.removeprefix("at_")): gain for name, gain in others.items()}
    return blocks(
        ({"percent": percent, "scan": scan}, {"seconds": value})
        for percent, gain in gains.items()
        for scan, value in ((accounts.PLAIN, gain), (accounts.ONLY, 1.0))
    )


@pytest.mark.parametrize(
    ("slow", "none", "some", "expected"),
    [
        (700, 0.8, {"at_10": 1.0}, "holds"),
        (5000, 0.8, {"at_10": 0.95, "at_25": 1.3}, "holds"),
        (100, 0.8, {"at_25": 1.0}, "partly"),
        (700, 1.0, {"at_25": 1.0}, "partly"),
        (700, 0.8, {}, "partly"),
        (700, 0.8, {"at_50": 1.0}, "partly"),  # timed too shortly to decide
        (100, 1.0, {}, "not so"),
    ],
)
def test_gains_vary_from_a_loss_to_what_the_talk_has_heard_of(slow, none, some, expected):
    on_disk = blocks(
        ({"scan": scan}, {"seconds": value, "reads": 0.0})
        for scan, value in ((accounts.PLAIN, slow), (accounts.ONLY, 1.0))
    )
    tables = {
        "ranges_on_slow_disk": on_disk,
        "fractions": fraction_rows(none, **some),
        "scan_instructions": [
            {"scan": accounts.ONLY, "instructions": 12},
            {"scan": accounts.PLAIN, "instructions": 10},
        ],
    }
    assert judging.word("haas-038", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("covering_index", "waiting", "expected"),
    [
        (3.7, 0.55, "holds"),
        (1.0, 0.55, "no effect"),
        (0.5, 0.55, "reversed"),
        (3.7, 0.1, "not tested here"),
    ],
)
def test_lookups_are_judged_by_throughput_where_they_wait_for_reads(
    covering_index, waiting, expected
):
    small = {lookups.KEY: (1.0, waiting), lookups.COVERING: (covering_index, 0.0)}
    variants = {(accounts.DIRECT, index): found for index, found in small.items()}
    variants |= {(accounts.AMPLE, i): (1.0, 0.0) for i in (lookups.COVERING, lookups.AGAIN)}
    found = blocks(
        (
            {"memory": memory, "index": index},
            {"throughput": tps, "waiting": share, "table_reads": 1.0, "index_reads": 1.0},
        )
        for (memory, index), (tps, share) in variants.items()
    )
    assert judging.word("haas-035", "access_paths", lookups=found) == expected


def updated_rows(fetched, gain):
    """A table that is updated all the time, and by how much an index-only scan gains on it."""
    return blocks([({}, {"fetched": fetched, "index_only": 1.0, "plain": gain})])


@pytest.mark.parametrize(
    ("far", "near", "updated", "expected"),
    [
        (100, 4, 0.97, "holds"),
        (4, 100, 0.97, "partly"),
        (100, 4, 2.0, "partly"),
        (1.0, 0.5, 0.97, "partly"),  # a smaller loss than in memory is no gain
        (1.0, 1.0, 2.0, "not so"),
    ],
)
def test_it_suits_what_waits_for_reads_and_is_hardly_updated(far, near, updated, expected):
    found = blocks(
        ({"rows_lie": ranges.ANYWHERE, "memory": memory, "scan": scan}, {"seconds": value})
        for memory, gain in ((accounts.DIRECT, far), (accounts.AMPLE, near))
        for scan, value in ((accounts.PLAIN, gain), (accounts.ONLY, 1.0))
    )
    tables = {"ranges": found, "updated_all_the_time": updated_rows(0.92, updated)}
    assert judging.word("haas-042", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("built", "grown", "larger", "expected"),
    [
        (1.2, 1.5, True, "holds"),
        (0.95, 1.0, True, "holds"),
        (0.8, 1.5, True, "partly"),
        (1.2, 0.8, True, "partly"),
        (1.2, 1.5, False, "partly"),
    ],
)
def test_an_index_that_outgrew_its_table_has_to_save_little(built, grown, larger, expected):
    times = {covering.BUILT: built, covering.GROWN: grown}
    scanned = blocks(
        ({"way": way, "scan": scan}, {"seconds": seconds, "pages": 9.0})
        for way, only in times.items()
        for scan, seconds in ((accounts.ONLY, only), (covering.SEQUENTIAL, 1.0))
    )
    sizes_ = [
        {"way": way, "columns": n, "table_pages": 5 if larger else 50, "index_pages": 4 + n}
        for way in times
        for n in (1, 2, 4)
    ]
    tables = {"widths": sizes_, "wide_scans": scanned}
    assert judging.word("haas-041", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("fetched", "gain", "expected"),
    [(0.92, 0.97, "holds"), (0.92, 1.3, "partly"), (0.4, 0.97, "partly"), (0.4, 2.0, "not so")],
)
def test_updates_leave_little_to_gain_by_count_and_time(fetched, gain, expected):
    updates = [{"updates": n, "fetched": f, "computed": f} for n, f in ((0, 0.0), (3, 0.5))]
    tables = {"updates": updates, "updated_all_the_time": updated_rows(fetched, gain)}
    assert judging.word("haas-034", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [(2.5, "holds"), (0.6, "partly"), (0.5, "partly"), (0.001, "reversed")],
)
def test_the_join_is_judged_by_direction_on_9_1_and_9_2(before, expected):
    seconds = {("9.1", builds.EVERY): before, ("9.2", builds.FIRST): 0.58}
    seconds |= {("9.2", builds.LATER): 0.01}
    found = blocks(
        ({"server": s, "execution": e, "millions": 1.0}, {"seconds": value})
        for (s, e), value in seconds.items()
    )
    assert judging.word("haas-049", "access_paths", join_from_files=found) == expected


# ---- on 9.1 and 9.2 themselves, where they are registered


SCAN = "Index Scan accounts by accounts_pkey"
FIRST = f"Merge Right Join(Merge Join({SCAN}, {SCAN}), Sort(Function Scan))"
HASHED = (
    "Hash Right Join(Hash Join(Seq Scan accounts, Hash(Seq Scan accounts)), Hash(Function Scan))"
)
LAST = f"Merge Join({SCAN}, Nested Loop(Function Scan, {SCAN}))"


@pytest.mark.parametrize(
    ("alone", "nested", "shape", "expected"),
    [
        (2000, 2000, FIRST, "holds"),
        (2000, 2000, HASHED, "holds"),
        (2000, 2000, LAST, "partly"),
        (2000, 20, FIRST, "partly"),
        (20, 20, FIRST, "partly"),
        (20, 20, LAST, "not so"),
    ],
)
def test_what_9_1_could_not_do_only_9_1_shows(alone, nested, shape, expected):
    words = {"shape": shape, "joins": "", "through": False, "table_rows": 1000}
    read = {("9.1", "left alone"): alone, ("9.1", "made to use nested loops"): nested}
    read |= {("9.2", "left alone"): 20}
    found = [{"server": s, "plan": p, "rows_read": n, **words} for (s, p), n in read.items()]
    assert judging.word("haas-050", "access_paths", join_on_releases=found) == expected


@pytest.mark.parametrize(
    ("joined", "read", "todays", "expected"),
    [
        ("Nested Loop, Nested Loop", 20, 20, "holds"),
        ("Nested Loop, Nested Loop", 20, 2000, "holds"),
        ("Nested Loop, Nested Loop", 21, 20, "partly"),
        ("Nested Loop, Hash Join", 20, 20, "partly"),
        ("Merge Join, Merge Join", 2000, 20, "not so"),
    ],
)
def test_what_9_2_reads_by_its_own_plan_decides(joined, read, todays, expected):
    words = {"shape": "", "through": True}
    found = [words | {"server": "9.2", "form": joins.TALKS, "joins": joined, "rows_read": read}]
    found += [found[0] | {"server": "9.1", "joins": "Merge Join", "rows_read": 2000}]
    found += [found[0] | {"form": joins.INNER, "joins": "Merge Join", "rows_read": 2000}]
    today = [words | {"plan": joins.PROBES, "joins": "Nested Loop", "rows_read": todays}]
    today += [words | {"plan": joins.MERGE, "joins": "Merge Join", "rows_read": 2000}]
    tables = {"forms_on_releases": found, "join_plans": today}
    assert judging.word("haas-051", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("talks", "inner", "in_a_row", "expected"),
    [
        ((600, 20), (20, 20), (20, 20), "holds"),
        ((600, 100), (20, 20), (20, 20), "partly"),
        ((600, 20), (600, 20), (20, 20), "partly"),
        ((600, 20), (20, 20), (600, 20), "partly"),
        ((20, 20), (600, 20), (600, 20), "not so"),
    ],
)
def test_who_benefits_is_told_by_the_rows_read_before_and_after(talks, inner, in_a_row, expected):
    words = {"shape": "", "joins": ""}
    read = {joins.TALKS: talks, joins.INNER: inner, joins.IN_A_ROW: in_a_row}
    found = [
        {"server": server, "form": form, "rows_read": many, "through": False, **words}
        for form, both in read.items()
        for server, many in zip(("9.1", "9.2"), both)
    ]
    today = [
        {"form": form, "rows_read": 20, "through": form == joins.TALKS, **words} for form in read
    ]
    tables = {"forms_on_releases": found, "forms": today}
    assert judging.word("haas-052", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("before", "after", "sorts", "expected"),
    [
        (False, True, False, "holds"),
        (False, True, True, "holds"),  # told only
        (True, True, False, "partly"),
        (False, False, False, "partly"),
        (True, False, False, "not so"),
    ],
)
def test_a_list_of_keys_is_looked_up_by_the_release_that_could_and_not_by_that_which_could_not(
    before, after, sorts, expected
):
    found = [
        {"server": server, "keys": "neighbouring keys", "asked": asked, "way": way, "pages": 9}
        | {"node": node, "by_index": looked_up and way == arrays.PLAIN, "sorts": sorts}
        for server, looked_up in (("9.1", before), ("9.2", after))
        for asked in arrays.ASKED
        for way, node in ((arrays.PLAIN, "Index Scan"), (arrays.BITMAP, "Bitmap Heap Scan"))
    ]
    assert judging.word("haas-053", "access_paths", lists_on_releases=found) == expected


@pytest.mark.parametrize(
    ("instructions", "time", "expected"),
    [
        (1.2, 1.2, "holds"),
        (1.2, 1.0, "partly"),
        (1.0, 1.2, "partly"),
        (1.0, 1.0, "no effect"),
    ],
)
def test_sort_support_is_asked_for_instructions_and_for_the_time_of_9_2(
    instructions, time, expected
):
    def by_how(gain):
        hows = (sorting.UNSORTED, sorting.SUPPORTED, sorting.UNSUPPORTED)
        return zip(hows, (10.0, 20.0, 10 + 10 * gain))

    counted = [{"how": how, "instructions": n} for how, n in by_how(instructions)]
    timed = blocks(({"how": how}, {"seconds": seconds}) for how, seconds in by_how(time))
    tables = {"sort_instructions": counted, "sorts_on_releases": timed}
    assert judging.word("haas-058", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("instructions", "time", "expected"),
    [
        *((1.2, 1.2, "holds"), (1.2, 1.0, "partly"), (1.0, 1.2, "partly")),
        *((1.0, 1.0, "no effect"), (0.8, 0.8, "reversed")),
    ],
)
def test_a_scan_that_looks_at_the_table_all_the_same_is_asked_for_work_and_time(
    instructions, time, expected
):
    scans = (accounts.PLAIN, accounts.ONLY)
    counted = [{"scan": of, "instructions": n} for of, n in zip(scans, (1.0, instructions))]
    timed = blocks(
        ({"scan": of, "percent": 0}, {"seconds": many}) for of, many in zip(scans, (1.0, time))
    )
    tables = {"scan_instructions": counted, "fractions": timed}
    assert judging.word("haas-039", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("element", "expected"), [(2.0, "holds"), (1.5, "no effect"), (1.0, "reversed")]
)
def test_assignments_to_an_element_are_compared_whole(element, expected):
    seconds = {("9.1", "element"): element, ("9.1", "variable"): 1.0}
    seconds |= {("9.2", "element"): 1.5, ("9.2", "variable"): 0.5}
    found = blocks(
        ({"server": s, "assigned": a}, {"seconds": value}) for (s, a), value in seconds.items()
    )
    assert judging.word("haas-066", "access_paths", array_assignments=found) == expected


@pytest.mark.parametrize(
    ("overlaps", "contained", "expected"),
    [(4.0, 4.0, "holds"), (1.0, 1.0, "no effect"), (90.0, 1.0, "partly"), (1.0, 90.0, "partly")],
)
def test_estimates_of_each_operator_of_arrays_are_held_against_those_of_9_1(
    overlaps, contained, expected
):
    errors = {"overlaps": overlaps, "is contained by": contained}
    asked = {"elements": "{1}", "estimated": 1, "found": 1}
    found = [
        {"server": server, "operator": operator, "q_error": error, **asked}
        for operator, before in errors.items()
        for server, error in (("9.1", before), ("9.2", 1.0))
    ]
    assert judging.word("haas-054", "access_paths", selectivity_on_releases=found) == expected


@pytest.mark.parametrize(
    ("of_9_2", "today", "expected"),
    [(1.2, 1.2, "holds"), (1.0, 0.5, "holds"), (0.8, 1.2, "not so")],
)
def test_text_searches_by_sp_gist_are_judged_on_the_release_that_the_talk_tried(
    of_9_2, today, expected
):
    tables = {
        name: blocks(
            ({"index": index}, {"build": 1.0, "pages": 9, "search": search, "accesses": 4.0})
            for index, search in ((trees.SPACE, sp_gist), (trees.BTREE, 1.0))
        )
        for name, sp_gist in (("texts_on_releases", of_9_2), ("texts", today))
    }
    assert judging.word("haas-057", "access_paths", **tables) == expected


@pytest.mark.parametrize(("before", "expected"), [(30, "holds"), (9, "no effect"), (3, "reversed")])
def test_the_plan_cache_of_9_2_is_held_against_that_of_9_1(before, expected):
    found = [{"server": s, "shape": "", "pages": n} for s, n in (("9.1", before), ("9.2", 9))]
    assert judging.word("haas-064", "access_paths", prepared_on_releases=found) == expected


@pytest.mark.parametrize(
    ("build", "short", "accesses", "expected"),
    [
        (2.0, 2.0, 2.0, "holds"),
        (1.0, 2.0, 2.0, "partly"),
        (2.0, 1.0, 2.0, "partly"),
        (2.0, 2.0, 1.0, "partly"),
        (1.0, 0.5, 0.5, "not so"),
    ],
)
def test_gist_is_built_faster_in_memory_and_outside_and_better_or_not(
    build, short, accesses, expected
):
    found = blocks(
        ({"server": s}, {"build": b, "pages": 9.0, "accesses": a})
        for s, b, a in (("9.1", build, accesses), ("9.2", 1.0, 1.0))
    )
    outgrown = blocks(
        ({"server": s, "buffered": s == "9.2"}, {"build": b, "pages": 9.0, "calls": b})
        for s, b in (("9.1", short), ("9.2", 1.0))
    )
    tables = {"gist_on_releases": found, "gist_short_of_memory": outgrown}
    assert judging.word("haas-055", "access_paths", **tables) == expected


@pytest.mark.parametrize(
    ("left", "fetched", "expected"), [(0, 9, "holds"), (1, 9, "partly"), (0, 0, "partly")]
)
def test_only_a_map_that_is_gone_was_thrown_away(left, fetched, expected):
    steps = {"vacuumed on 9.1": (1, None), "upgraded to 9.2": (left, fetched)}
    steps |= {"vacuumed on 9.2": (1, 0)}
    found = [
        {"step": step, "map_pages": pages, "total": 5, "rows": 9, "heap_fetches": looked_up}
        for step, (pages, looked_up) in steps.items()
    ]
    assert judging.word("haas-048", "access_paths", upgraded=found) == expected


@pytest.mark.parametrize(
    ("unchanged", "few", "some", "without", "expected"),
    [
        (0, 20, 2000, 2000, "holds"),
        (0, 20, 80, 2000, "holds"),
        (0, 2000, 2000, 2000, "partly"),
        (50, 20, 2000, 2000, "partly"),
        (0, 20, 2000, 0, "partly"),
        (2000, 2000, 2000, 2000, "not so"),
    ],
)
def test_what_the_map_spared_vacuum_9_1_says(unchanged, few, some, without, expected):
    found = [
        {"server": "9.1", "every": every, "pages": 2000, "scanned": scanned, "without": without}
        for every, scanned in ((0, unchanged), (100, few), (32, some))
    ]
    assert judging.word("haas-032", "access_paths", vacuums_on_releases=found) == expected


# ---- what the experiments do


def test_ready_relations_are_left_alone_and_others_made_anew(server, connection):
    query = "SELECT 'accounts'::regclass::oid, (SELECT count(*) FROM accounts)"
    accounts.load(server, 100, accounts.KEYED)
    found = [connection.execute(query).fetchone()]
    for rows in (100, 200):
        accounts.ready(server, rows, accounts.KEYED)
        found.append(connection.execute(query).fetchone())
    assert found[0] == found[1] and found[2][1] == 200


def test_a_wrong_answer_has_no_time(connection):
    assert accounts.timed(connection, "SELECT 1", 1) > 0
    with pytest.raises(RerunError, match="gave 1 instead of 2"):
        accounts.timed(connection, "SELECT 1", 2)


def test_a_statement_is_planned_anew_after_settings_change(server, connection):
    """Prepared, it would keep its plan: two scans compared would then be one."""
    accounts.ready(server, ROWS, accounts.COVERED)
    query = "SELECT count(abalance) FROM covered WHERE aid BETWEEN 1 AND 1000"
    with connection.transaction():
        for scan in [*["indexonlyscan"] * 8, "indexscan"]:
            accounts.allow_only(connection, scan)
            accounts.timed(connection, query, 1000)
        fetched = "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'covered'"
        assert connection.execute(fetched).fetchone() == (1000,)


@pytest.mark.parametrize(
    "node, scan",
    [
        ("Seq Scan", "seqscan"),
        ("Index Scan", "indexscan"),
        ("Index Only Scan", "indexonlyscan"),
        ("Bitmap Heap Scan", "bitmapscan"),
    ],
)
def test_only_one_way_is_left(server, connection, node, scan):
    accounts.ready(server, ROWS, accounts.COVERED)
    accounts.allow_only(connection, scan)
    assert plans.explain(connection, "SELECT sum(abalance) FROM covered WHERE aid < 500").find(node)


def test_a_server_that_does_not_start_is_told_without_its_log(chapter):
    """The log's lines would publish temporary paths in a verdict."""

    def refuse(**settings):
        raise ServerError("FATAL: in /tmp/somewhere/postgresql.conf")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(CannotMeasure) as caught:
        patch.setattr(chapter.bed, "cluster", refuse)
        accounts.place(chapter.bed, accounts.DIRECT, ROWS)
    assert "/tmp" not in str(caught.value) and "debug_io_direct" in str(caught.value)


def test_vacuum_skips_as_many_pages_as_are_computed(chapter):
    found = list(chapter.experiments["skipped"](chapter.bed))
    assert all(row["scanned"] == row["computed"] for row in found)
    assert len({row["scanned"] for row in found}) > 1


def test_bits_are_taken_away_without_changing_the_table(server, connection):
    server.extension("pg_visibility")
    accounts.load(server, ROWS, accounts.COVERED)
    pages = sizes.pages(connection, accounts.COVERED)
    assert pages == accounts.table_pages(ROWS)
    query = (
        "SELECT all_visible, (SELECT count(*) FROM covered)"
        " FROM pg_visibility_map_summary('covered')"
    )
    for percent, expected in ((100, pages), (0, 0), (50, pages / 2)):
        ranges.unmark(connection, accounts.COVERED, percent)
        visible, rows = connection.execute(query).fetchone()
        assert visible == pytest.approx(expected, abs=0.1 * pages) and rows == ROWS


def test_a_copied_operator_class_sorts_alike_without_sort_support(connection):
    own = sorting.CLASSES["int4_ops"]
    for _ in range(2):  # once is enough
        sorting.copy_without_sort_support(connection, "btree", "int4_ops", own)
    functions = (
        "SELECT opcname, array_agg(amprocnum) FROM pg_amproc JOIN pg_opclass ON opcfamily"
        " = amprocfamily JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcname IN"
        " ('int4_ops', %s) AND amproclefttype = 'int4'::regtype AND amprocrighttype ="
        " 'int4'::regtype GROUP BY opcname"
    )
    found = dict(connection.execute(functions, [own]).fetchall())
    assert sorted([*found[own], 2]) == sorted(found["int4_ops"])
    query = "SELECT i FROM (VALUES (3), (1), (2)) AS v (i) ORDER BY i USING <#"
    assert connection.execute(query).fetchall() == [(1,), (2,), (3,)]


def test_scratch_tables_are_gone(chapter, connection):
    """Wide ones would fill a disk."""
    list(chapter.bed.measure(chapter.experiments["widths"], {"rows": 100}))
    list(chapter.bed.measure(chapter.experiments["selectivity"], {}))
    left = connection.execute("SELECT to_regclass('wide_keys'), to_regclass('tagged')").fetchone()
    assert left == (None, None)


# ---- on somebody's server


@pytest.fixture(scope="module")
def borrowing(chapter, tmp_path_factory):
    """The chapter on somebody's server, in a database of its own and without a superuser."""
    with chapter.bed.server.connect() as connection:
        connection.execute("CREATE ROLE somebody LOGIN")
        connection.execute("CREATE DATABASE theirs OWNER somebody")
    url = url_of(chapter.bed.server, user="somebody", database="theirs")
    given = SMALL | {"server": url}
    with judging.opened(tmp_path_factory.mktemp("borrowing"), "access_paths", given) as found:
        yield found


@pytest.mark.parametrize("memory", [accounts.DIRECT, accounts.KERNEL])
def test_memory_cant_be_made_short_on_somebodys_server(borrowing, memory):
    assert accounts.place(borrowing.bed, accounts.AMPLE, ROWS) is borrowing.bed.server
    with pytest.raises(CannotMeasure):
        accounts.place(borrowing.bed, memory, ROWS)


def test_what_is_set_aside_stops_nothing(borrowing):
    for name in ("lookups", "scan_instructions", "points", "reads"):
        assert borrowing.run(name) is None
    assert borrowing.judge("haas-039").capability == "restart"
    assert borrowing.judge("haas-033").capability == "superuser"
