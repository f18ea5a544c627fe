"""The chapter on the four tactics: what INGRES's rows decide, the disk of 1981, today's servers."""

import re
from unittest.mock import Mock

import pytest

from pgrerun.chapters.four_tactics import experiments
from pgrerun.chapters.four_tactics.experiments import simulated_disk
from pgrerun.errors import CannotMeasure
from pgrerun.lab import university_ingres
from pgrerun.lab.instruments import callgrind, cold_files
from pgrerun.lab.server import bundled
from pgrerun.lab.testbed import Testbed, collected
from pgrerun.parameters import chapter_parameters
from pgrerun.record import printed
from tests.judging import judged, measured, word

SMALL = {"pairs": 5, "tuples": 10_000, "megabytes": 4, "milliseconds": 100, "evaluations": 20_000}
EXPERIMENTS = collected(experiments)


@pytest.fixture(scope="module")
def bed():
    found = Testbed(chapter_parameters("four_tactics", SMALL), bundled())
    yield found
    found.close()


# ---- INGRES


def process(query, name, instructions, tuples=1, **more):
    return {
        "query": query,
        "tuples": tuples,
        "organization": "heap",
        "processes": "together",
        "fillfactor": 100,
        "process": name,
        "instructions": instructions,
        "reads": 1,
    } | more


def routine(name, own, inclusive=0, calls=1, failed=0, taken=0, branches=1, query="c", tuples=3360):
    return {
        "query": query,
        "tuples": tuples,
        "organization": "heap",
        "fillfactor": 100,
        "processes": "together",
        "process": "decomp70",
        "routine": name,
        "instructions": own,
        "inclusive": inclusive,
        "calls": calls,
        "failed_branches": failed,
        "taken_branches": taken,
        "branches": branches,
    }


@pytest.mark.parametrize(
    ("parser", "expected"), [(200, "holds"), (1, "no effect")], ids=["much", "little"]
)
def test_a_short_command_gains_by_what_its_parser_takes(parser, expected):
    taken = {"monitor": 10**6, "parser": parser, "decomp70": 100}
    rows = [process("b", name, count) for name, count in taken.items()]
    assert word("ston-001", "four_tactics", ingres_benchmark=rows) == expected


def test_relations_that_are_left_out_set_their_claims_aside():
    rows = [process("b", "parser", 9), process("b", "decomp70", 100)]
    found = judged("ston-002", "four_tactics", ingres_benchmark=rows)
    assert str(found.verdict) == "not tested here"
    assert found.capability == "ingres_tuples = 3360"


@pytest.mark.parametrize(
    ("claim", "get", "interpret", "expected"),  # branches of a call not taken, and taken
    [
        ("ston-026", (21.5, 21.5), (59.5, 59.5), "holds"),
        ("ston-026", (2, 3), (8, 17), "different now"),
        ("ston-026", (21.5, 2), (59.5, 8), "partly"),
        ("ston-027", (21, 22), (60, 60), "holds"),
        ("ston-027", (2, 3), (8, 17), "different now"),
        ("ston-027", (21, 3), (60, 60), "partly"),
        ("ston-029", (2, 3), (2, 3), "holds"),  # microcode loses if few branches fail
        ("ston-029", (40, 30), (40, 30), "reversed"),
        ("ston-029", (2, 3), (40, 30), "reversed"),  # both together, not either
        ("ston-029", (2, 40), (3, 30), "partly"),
    ],
)
def test_failing_branches_are_judged_in_both_readings(claim, get, interpret, expected):
    rows = [
        routine(name, 50, calls=10, failed=10 * failed, taken=10 * taken, branches=branches)
        for name, branches, (failed, taken) in (
            ("getsymbol", 43, get),
            ("interpret", 119, interpret),
        )
    ]
    rows.append(routine("scan", 1, query="h") | {"organization": "hash"})
    assert word(claim, "four_tactics", ingres_routines=rows) == expected


@pytest.mark.parametrize(
    ("of_a", "of_others", "pages", "expected"),
    [
        *((0, 3, (3, 4), "partly"), (2, 3, (3, 4), "holds"), (2, 3, (3, 35), "partly")),
        *((2, 1, (3, 4), "holds"), (0, 3, (3, 35), "not so"), (0, 1, (3, 35), "not so")),
    ],
)
def test_catalogs_explain_a_gain_if_no_other_command_gains_and_whole_tracks_spare_reads(
    of_a, of_others, pages, expected
):
    read = {"a": of_a} | dict.fromkeys("bcd", of_others)
    rows = [
        process(query, "parser", 1, tuples=int(query != "a"), catalog_reads=reads)
        | {"relation_reads": 1}
        for query, reads in read.items()
    ]
    asked = [
        process(query, "parser", 1) | {"relation": "attribute", "page": page, "writes": 0}
        for query in "bcd"
        for page in pages
    ]
    found = {"ingres_benchmark": rows, "ingres_requests": asked}
    assert word("ston-034", "four_tactics", **found) == expected


@pytest.mark.parametrize(
    ("own", "saving", "called", "size", "expected"),
    [
        *((319, 0, 0.319, 1, "holds"), (319, 0, 0.319, 1000, "holds"), (300, 40, 0.3, 1, "holds")),
        *((319, 160, 0.319, 1, "partly"), (160, 160, 0.2, 1, "partly"), (319, 0, 0.1, 1, "partly")),
        *((160, 250, 0.2, 1, "partly"), (100, 0, 0.5, 1, "partly")),  # what is printed lies between
        *((100, 0, 0.2, 1, "different now"), (400, 160, 0.5, 1, "different now")),
    ],
)
def test_two_routines_are_judged_by_the_least_and_the_most_that_they_can_take(
    own, saving, called, size, expected
):
    rows = [
        routine(name, many * size * (1 if query == "h" else 2), calls=calls, query=query)
        | {"organization": "hash" if query == "h" else "heap"}
        for query, calls in (("h", called * 37.6 / 0.00007), ("c", called * 9.77 / 0.00007))
        for name, many in (
            ("getsymbol", own),
            ("csv", saving),
            ("scan", 1000 - own - saving),
        )
    ]
    rows.append(routine("interpret", 10**9, 10**9, query="h") | {"organization": "isam"})
    assert word("ston-023", "four_tactics", ingres_routines=rows) == expected


@pytest.mark.parametrize(
    ("looks", "conversions", "anyway", "expected"),
    [
        *((2, 2, 0, "holds"), (2, 3, 1, "holds"), (2, 1, 0, "partly"), (2, 2, 1, "partly")),
        *((1, 2, 0, "partly"), (0, 0, 0, "not so")),
    ],
)
def test_both_constants_shall_be_converted_for_every_row(looks, conversions, anyway, expected):
    counts = {
        "integers beside a float": {"typecheck": looks, "itof": conversions},
        "floats alone": {"typecheck": looks, "itof": anyway},
    }
    rows = [
        {"constants": constants, "tuples": 1000, "routine": name, "calls": 1000 * each, "answer": 1}
        for constants, called in counts.items()
        for name, each in called.items()
    ]
    assert word("ston-006", "four_tactics", ingres_figure_1=rows) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("ingres_figure_1", "ingres_substitution"),
        *("disk_of_1981", "unix_cache", "catalogs_placed"),
    ],
)
def test_what_ingres_is_asked_is_set_aside_without_it(bed, monkeypatch, name):
    monkeypatch.delenv(university_ingres.VARIABLE, raising=False)
    with pytest.raises(CannotMeasure, match="University INGRES"):
        measured(bed, EXPERIMENTS[name])


@pytest.mark.parametrize(
    ("calls", "hidden", "folded", "expected"),
    [
        *((3360, "log", 84, "holds"), (1, "log", 84, "partly"), (3360, "log", 840, "partly")),
        *((1, "log", 840, "not so"), (3360, "another name", 84, "inconclusive")),
    ],
)
def test_a_constant_computed_once_shall_cost_no_row_anything(calls, hidden, folded, expected):
    rows = [
        {"query": "d", "how": how, "tuples": tuples, "function": function}
        | {"exclusive": many, "inclusive": many, "calls": 1}
        for how, tuples, function, many in (
            ("as printed", 3360, "log", 84),
            ("as printed", 33_600, "log", folded),
            ("logarithm hidden", 3360, hidden, 90_000),
        )
    ]
    counted = [routine("log", 1, calls=calls, query="d")]
    assert word("ston-007", "four_tactics", ingres_routines=counted, profile=rows) == expected


@pytest.mark.parametrize(
    ("share", "calling", "expected"),
    [
        *((44, "di", "holds"), (44, "dib", "partly"), (44, "d", "partly")),
        *((20, "di", "partly"), (20, "dib", "not so")),
    ],
)
def test_the_logarithm_is_there_because_of_the_commands_that_have_one(share, calling, expected):
    taken = {query: share if query in calling else 0 for query in "bdhi"}
    total = 1000 * sum(map(bool, taken.values())) // len(taken)
    rows = [routine("scan", total - many, query=query) for query, many in taken.items()]
    rows += [routine("log", many, query=query) for query, many in taken.items() if many]
    for row in rows:
        row["organization"] = "hash" if row["query"] == "h" else "heap"
    assert word("ston-024", "four_tactics", ingres_routines=rows) == expected


@pytest.mark.parametrize(
    ("read", "get_page", "expected"),
    [
        *((43, 0, "holds"), (1, 42, "partly"), (43, 40, "partly")),
        *((1, 90, "partly"), (1, 2, "different now"), (60, 9, "different now")),  # between, outside
    ],
)
def test_asking_for_a_page_is_judged_with_looking_for_it_and_without(read, get_page, expected):
    # what chooses a buffer is a routine of its own, and get_page calls it
    taken = {"read": read, "get_page": 0, "choose_buf": get_page, "scan": 1000 - read - get_page}
    calling = {"get_page": read + get_page}
    rows = [
        routine(name, many, calling.get(name, many), query=query) | {"organization": organization}
        for query, organization in (("c", "heap"), ("h", "hash"))
        for name, many in taken.items()
    ]
    rows.append(routine("get_page", 10**9, 10**9, query="h") | {"organization": "isam"})
    assert word("ston-025", "four_tactics", ingres_routines=rows) == expected


@pytest.mark.parametrize(
    ("overlays", "answer", "expected"),  # of query i, on one row and on all
    [
        *(((0, 0), 1, "holds"), ((1, 1), 1, "partly"), ((0, 1), 1, "not so")),
        *(((0, 0), 2, "inconclusive"), ((1, 1), 2, "inconclusive")),
    ],
)
def test_messages_are_told_by_blocks_where_each_answer_is_one(overlays, answer, expected):
    commands = [("a", 1, 0), ("i", 1, overlays[0]), ("i", 3360, overlays[1])]
    rows = [
        process(query, name, 1, tuples, messages_read=read, messages_written=written)
        for query, tuples, others in commands
        for name, read, written in (
            *(("monitor", 1, 2), ("parser", 2 + answer, 3)),  # two blocks ask, each time
            ("decomp70", 2 + others, answer + others),
            *[("overlay", 1, 1)] * others,
        )
    ]
    assert word("ston-052", "four_tactics", ingres_benchmark=rows) == expected


@pytest.mark.parametrize(("organization", "expected"), [("isam", "partly"), ("hash", "holds")])
def test_the_messages_of_query_h_are_those_of_its_isam_table(organization, expected):
    commands = [("a", "none", 0), ("i", "isam", 0)]
    commands += [("h", kind, int(kind == organization)) for kind in ("isam", "hash")]
    rows = [
        process(query, name, 1, 3360, messages_read=read, messages_written=written)
        | {"organization": kind}
        for query, kind, others in commands
        for name, read, written in (
            *(("monitor", 1, 2), ("parser", 3, 3), ("decomp70", 2 + others, 1 + others)),
            *[("overlay", 1, 1)] * others,
        )
    ]
    assert word("ston-052", "four_tactics", ingres_benchmark=rows) == expected


def test_query_h_on_a_hashed_table_is_told():
    """Of it the parser takes another share than is claimed."""
    shares = {("i", "isam"): 0.01, ("h", "isam"): 0.01, ("h", "hash"): 0.2}
    rows = [
        process(query, name, 1000 * part, 3360) | {"organization": kind, "processes": "together"}
        for (query, kind), share in shares.items()
        for name, part in (("parser", share), ("decomp70", 1 - share))
    ]
    found = judged("ston-002", "four_tactics", ingres_benchmark=rows)
    assert str(found.verdict) == "holds"
    beside = found.beside["query h on a hashed table"].evidence
    assert beside.estimate == pytest.approx(1 / (1 - 0.2), 1e-6)


# ---- the disk


def asked(pages, query="e", relation="parts"):
    return [
        {
            "query": query,
            "tuples": 3360,
            "organization": "isam",
            "relation": relation,
            "page": page,
            "writes": 0,
        }
        for page in pages
    ]


def test_the_disk_is_asked_for_what_the_buffers_do_not_hold():
    pages = [*range(200), 199, 0]
    by = simulated_disk.requested(asked(pages))["e"]
    unix, tracks = by["UNIX"], by["tracks"]
    assert (len(unix.trace), unix.touched) == (201, 202)  # page 0 is long gone, 199 isn't
    assert (len(tracks.trace), tracks.touched) == (8, 202)  # seven tracks, and the first again
    assert simulated_disk.requested(asked([1], relation="INGQ1000")) == {}


def test_query_e_takes_the_printed_time_on_the_disk_that_it_has_set():
    # five pages in a row, then an overflow page
    pages = [n if n % 6 else 2000 + n for n in range(1300)]
    found = simulated_disk.requested(asked(pages))
    seek = simulated_disk.seek_time(found, "e")
    for kind, processor, column in (("UNIX", "INGRES", "ingres"), ("tracks", "FS-INGRES", "fs")):
        took = simulated_disk.seconds(found["e"], "e", kind, processor, seek)
        then = printed.cell("four_tactics_files_wall", "e_3360", column)
        assert took == pytest.approx(then, rel=1e-6 if kind == "UNIX" else 0.5)


def test_a_cache_answers_what_it_still_holds_and_what_was_written():
    rows = asked([*range(30), 0, 40])
    rows[-2]["page"], rows[0]["writes"] = 29, 1  # the last of the scan again, and a page written
    bed = Mock(rows_of=lambda name: [*rows, *asked([7], relation="INGQ1000")])
    found = {row["buffers"]: row for row in EXPERIMENTS["unix_cache"](bed)}
    assert all(row["asked"] == 31 and row["requests"] == 30 for row in found.values())
    again = asked([*range(30), 0])
    found = {
        row["buffers"]: row["requests"]
        for row in EXPERIMENTS["unix_cache"](Mock(rows_of=lambda name: again))
    }
    assert found[16] == 31 and found[32] == 30


@pytest.mark.parametrize(
    ("of_b", "of_f", "expected"), [(99, 60, "holds"), (100, 60, "partly"), (100, 100, "not so")]
)
def test_a_cache_shall_spare_every_command_a_read(of_b, of_f, expected):
    rows = [
        {"query": query, "tuples": 3360, "buffers": buffers, "asked": 100, "requests": requests}
        for query, requests in (("b", of_b), ("f", of_f))
        for buffers in (64, 128)
    ]
    assert word("ston-051", "four_tactics", unix_cache=rows) == expected


@pytest.mark.parametrize(
    ("gain", "expected"), [(1.731, "holds"), (1.2, "weaker"), (1, "no effect")]
)
def test_query_e_is_held_against_its_printed_gain(gain, expected):
    common = {"calibration": "the joins", "query": "e"}
    rows = [
        common | {"files": "UNIX", "processor": "INGRES", "seconds": 10.0 * gain},
        common | {"files": "tracks", "processor": "FS-INGRES", "seconds": 10.0},
    ]
    assert word("ston-036", "four_tactics", disk_of_1981=rows) == expected


def test_the_head_goes_between_catalogs_and_data():
    rows = asked([0], relation="relation") + asked([0, 32 * 5]) + asked([0], relation="attribute")
    rows += asked([0], query="f") + asked([0], query="f", relation="_SYSa")
    found = {
        (row["query"], row["catalogs"]): row
        for row in EXPERIMENTS["catalogs_placed"](Mock(rows_of=lambda name: rows))
    }
    edge, middle = (found["e", place] for place in ("at the edge", "in the middle"))
    assert edge["requests"] == 4 and edge["journeys"] == 2
    assert (edge["travel"], middle["travel"]) == (2 * 823 / 2 + 1, 2 * 823 / 4 + 1)
    alike = {found["f", place]["travel"] for place in simulated_disk.PLACES}
    assert alike == {2 * 823 / 3}  # a partial result is no catalog, and lies anywhere


@pytest.mark.parametrize(
    ("of_b", "of_f", "expected"),
    [(2, 1.1, "holds"), (2, 1, "partly"), (1, 1, "no effect"), (0.9, 0.9, "reversed")],
)
def test_catalogs_in_the_middle_shall_spare_every_command_a_way(of_b, of_f, expected):
    rows = [
        {"query": query, "tuples": 3360, "catalogs": catalogs, "travel": travel}
        for query, ratio in (("b", of_b), ("f", of_f))
        for catalogs, travel in (("at the edge", 100 * ratio), ("in the middle", 100))
    ]
    assert word("ston-045", "four_tactics", catalogs_placed=rows) == expected


# ---- the print


def test_claims_that_are_arithmetic_of_the_print_come_out_of_it():
    found = {
        claim: word(f"ston-{claim}", "four_tactics")
        for claim in ("015", "016", "018", "019", "020", "053", "057", "058", "059")
    }
    assert found == dict.fromkeys(found, "holds") | {"058": "partly", "059": "partly"}


# ---- today


def path(planned, *paths):
    """Rows of `plans_by_growth` with these paths before the growth, after, and analyzed."""
    states = ("small", "grown", "grown and analyzed")
    return [
        {"planned": planned, "relation": state, "path": found, "tuples": 1}
        for state, found in zip(states, paths)
    ]


def substitution(of):
    """Rows of `ingres_substitution`, where the relation with few tuples is taken, or the first."""
    return [
        {"few": few, "relation": relation, "left": 3 if few == relation else 400, "pages": 9}
        | {"reads": 0 if relation == (few if of == "few" else "p") else 27}
        for few in "pq"
        for relation in "pq"
    ]


@pytest.mark.parametrize(
    ("run_time", "ahead", "substituted", "expected"),
    [
        *(("sii", "sss", "few", "holds"), ("sii", "ssi", "few", "holds")),
        *(("sii", "sss", "first", "partly"), ("ssi", "sss", "few", "partly")),
        *(("sii", "sii", "few", "partly"), ("ssi", "sis", "first", "not so")),
    ],
)
def test_paths_shall_follow_sizes_at_run_time_alone(run_time, ahead, substituted, expected):
    constants = [
        {"planned": planned, "constant": color, "path": "s", "tuples": 1}
        for planned in ("at run time", "ahead")
        for color in ("black", "gray")
    ]
    partial = {"partial_result": "foreseen", "estimated": 1, "found": 1, "path": "s"}
    found = word(
        "ston-005",
        "four_tactics",
        plans_by_growth=path("at run time", *run_time) + path("ahead", *ahead),
        plans_by_constant=constants,
        plans_by_partial_result=[partial],
        ingres_substitution=substitution(substituted),
    )
    assert found == expected


def test_files_that_stay_cached_are_no_cold_files(bed, monkeypatch):
    kept = Mock(side_effect=CannotMeasure("cold files", "this file system forgets nothing"))
    monkeypatch.setattr(cold_files, "require_forgettable", kept)
    with pytest.raises(CannotMeasure, match="forgets nothing"):
        measured(bed, EXPERIMENTS["kernel_ahead"])


@pytest.mark.parametrize(("jumps", "expected"), [(100, "partly"), (10, "holds")])
def test_a_jump_away_and_back_is_told_from_one_that_starts_over(jumps, expected):
    fetched = {"one block": (4, 4), "two in a row": (16, 20), "40 in a row": (160, 300)}
    fetched["40, with jumps"] = (160, 160 + jumps)
    rows = [
        {"pattern": name, "reads": 1, "asked": asked, "fetched": kilobytes}
        for name, (asked, kilobytes) in fetched.items()
    ]
    assert word("ston-037", "four_tactics", kernel_ahead=rows) == expected


@pytest.mark.parametrize(
    ("claim", "queries", "small", "large", "expected"),
    [
        ("ston-035", "bcd", 1.1, 1.1, "holds"),
        ("ston-035", "bcd", 1.0, 1.0, "no effect"),
        ("ston-035", "bcd", 0.8, 0.8, "reversed"),
        ("ston-035", "bcd", 1.1, 0.8, "partly"),
        ("ston-035", "bcd", 0.8, 1.1, "partly"),
        ("ston-035", "bcd", 1.0, 0.8, "no effect"),
        # of all long commands together the printed size decides alone
        ("ston-040", "bcdefghi", 1.15, 1.0, "holds"),
        ("ston-040", "bcdefghi", 1.0, 9.0, "no effect"),
        ("ston-040", "bcdefghi", 0.8, 1.0, "reversed"),
        ("ston-040", "bcdefghi", 1.4, 1.0, "stronger"),
    ],
)
def test_processor_time_on_the_kernels_files_is_held_against_raw_tracks(
    claim, queries, small, large, expected
):
    rows = [
        {"files": files, "query": query, "tuples": tuples, "wall": 1.0, "cpu": cpu}
        | {"block": block, "left_out": False}
        for block in range(7)
        for query in queries
        for tuples, kernel in ((3360, small), (33_600, large))
        for files, cpu in (("kernel", kernel), ("raw tracks", 1.0))
    ]
    assert word(claim, "four_tactics", file_systems=rows) == expected


@pytest.mark.parametrize(
    ("told", "waiting", "pages", "expected"),
    [
        *((0.5, 0.9, "0123", "holds"), (0.97, 0.9, "0123", "partly"), (2.0, 0.9, "0123", "partly")),
        *((0.5, 0.9, "0246", "inconclusive"), (0.5, 0.1, "0123", "not tested here")),
    ],
)
def test_fetching_ahead_takes_knowing_the_next_page_and_a_kernel_that_is_told(
    told, waiting, pages, expected
):
    kernel = [
        {"told": "nothing", "scattered": 1.0, "waiting": waiting},
        {"told": "the next pages", "scattered": told, "waiting": waiting},
    ]
    rows = [{"block": block, "left_out": False} | row for block in range(7) for row in kernel]
    requests = [
        row | {"organization": "hash", "fillfactor": 100, "process": "decomp70", "request": place}
        for place, row in enumerate(asked(map(int, pages), "h"))
    ]
    found = {"advised": rows, "ingres_requests": requests}
    assert word("ston-041", "four_tactics", **found) == expected


def steps(query, steps, leading, fetching, instructions):
    counts = {"leading": leading, "fetching": fetching, "instructions": instructions}
    return {"query": query, "steps": steps} | counts


@pytest.mark.parametrize(
    ("taken", "leading", "fetching", "expected"),  # with four operators, two of them conversions
    [
        *((4, 8, 2, "holds"), (4, 8, 8, "partly"), (9, 18, 6, "partly"), (9, 8, 2, "partly")),
        (9, 45, 18, "different now"),
    ],
)
def test_what_leads_to_an_operator_is_counted_by_steps_and_by_operators(
    taken, leading, fetching, expected
):
    rows = [steps("d", taken, leading, fetching, 700), steps("long", 9, 20, 22, 1900)]
    double = "::double precision"
    text = f"((parts.qoh){double} < ('2.25'{double} * (parts.weight){double}))"
    told = [
        {"qualification": "query d", "filter": text},
        {"qualification": "an integer beside a float", "filter": text.replace("*", "")},
    ]
    assert word("ston-009", "four_tactics", dispatch=rows, conversions=told) == expected


@pytest.mark.parametrize(
    ("d", "long", "instructions", "expected"),
    [
        *((121.0, 505.0, 720, "holds"), (160.0, 505.0, 720, "partly")),
        *((160.0, 600.0, 720, "not so"), (121.0, 505.0, 650, "not tested here")),
    ],
)
def test_threaded_code_is_judged_by_all_operators_that_are_long(d, long, instructions, expected):
    counts = [steps("least", 5, 12, 10, 600), steps("long", 9, 20, 22, 1900)]
    counts.append(steps("d", 9, 20, 22, instructions))
    times = {("least", "compiled"): 100.0, ("least", "interpreted"): 100.0}
    times |= {("long", "compiled"): 490.0, ("long", "interpreted"): long}
    times |= {("d", "compiled"): 120.0, ("d", "interpreted"): d}
    timed = [
        {"query": query, "executor": executor, "tuple": tuple_, "block": block, "left_out": False}
        for block in range(7)
        for (query, executor), tuple_ in times.items()
    ]
    assert word("ston-008", "four_tactics", dispatch=counts, jit_tuple=timed) == expected


@pytest.mark.parametrize(
    ("interpret", "checked", "expected"),
    [(0, 40, "holds"), (80, 0, "inconclusive"), (20, 20, "inconclusive"), (30, 0, "not so")],
)
def test_interpreting_is_held_against_what_compiling_is_printed_to_have_saved(
    interpret, checked, expected
):
    of_a_row = {"interpret": interpret, "typecheck": checked, "getsymbol": 0}
    rest = 100 - interpret - checked
    rows = [
        routine(name, many * tuples, many * tuples, tuples=tuples)
        for tuples in (2240, 3360)
        for name, many in (of_a_row | {"scan": rest}).items()
    ]
    assert word("ston-022", "four_tactics", ingres_routines=rows) == expected


def test_the_scan_reads_the_relation_and_not_its_index(bed):
    found = measured(bed, EXPERIMENTS["asynchronous"])
    reads = {(row["method"], row["size"]): row.get("reads") for row in found}
    with bed.cluster(
        track_io_timing="on", io_method="sync", debug_io_direct="data"
    ).connect() as connection:
        pages = connection.execute("SELECT pg_relation_size('parts') / 8192").fetchone()[0]
    assert pages <= reads["sync", "a page a read"] < 1.05 * pages
    assert reads["sync", "large reads"] < pages / 10


@pytest.mark.parametrize(
    ("ahead", "waiting", "expected"),
    [
        *((0.7, 0.6, "holds"), (1.0, 0.6, "no effect"), (1.3, 0.6, "reversed")),
        (0.7, 0.2, "not tested here"),
    ],
)
def test_reading_ahead_is_judged_on_a_disk_that_serves_one_at_a_time(ahead, waiting, expected):
    rows = [
        {"method": method, "scan": scan, "block": block, "left_out": False, **more}
        for block in range(7)
        for method, scan, more in (("sync", 1.0, {"waiting": waiting}), ("worker", ahead, {}))
    ]
    assert word("ston-042", "four_tactics", prefetched=rows) == expected


@pytest.mark.skipif(callgrind.unavailable() is not None, reason=str(callgrind.unavailable()))
def test_a_lookup_is_counted_once_its_pages_were_read(bed):
    """The one that came first was found to take a third more, for reading them."""
    ways = ("sent as text", "prepared")
    found = [row for row in measured(bed, EXPERIMENTS["profile"]) if row["how"] in ways]
    assert {row["how"] for row in found} == {*ways}
    assert not [row for row in found if re.search("^md.*read", row["function"])]


@pytest.mark.parametrize(
    ("switch", "message", "expected"),
    [(10, 9, "holds"), (18, 12, "partly"), (100, 100, "different now")],
)
def test_a_bare_system_is_held_against_the_estimate(switch, message, expected):
    counts = {"switch": switch, "message": message}
    rows = [{"what": what, "instructions": count} for what, count in counts.items()]
    assert word("ston-049", "four_tactics", bare_costs=rows) == expected


def hashed(**ratios):
    """Rows of `ingres_benchmark`: reads and instructions of hash over ISAM, for either fill."""
    rows = []
    for query, fills in ratios.items():
        rows.append(process(query, "decomp70", 100, reads=100) | {"organization": "isam"})
        for fillfactor, (reads, instructions) in zip((50, 100), fills):
            rows.append(process(query, "decomp70", 100 * instructions, reads=100 * reads))
            rows[-1] |= {"organization": "hash", "fillfactor": fillfactor}
    return rows


ALIKE, OTHER, EITHER = ((1, 1), (1.2, 0.9)), ((2, 2), (0.5, 3)), ((2, 2), (1, 1))
READS = ((2, 1), (2, 1))  # which weigh little where the processor takes most of the time


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        *(({"e": ALIKE, "f": ALIKE}, "holds"), ({"e": OTHER, "f": OTHER}, "not so")),
        *(({"e": ALIKE, "f": OTHER}, "partly"), ({"e": ALIKE, "f": OTHER, "g": EITHER}, "partly")),
        *(({"e": ALIKE, "g": EITHER}, "inconclusive"), ({"g": EITHER}, "inconclusive")),
        *(({"f": READS}, "holds"), ({"e": READS}, "partly")),
        ({"e": ALIKE, "h": OTHER}, "holds"),  # another plan than in print
    ],
)
def test_hash_is_held_against_isam_however_its_pages_are_filled(ratios, expected):
    assert word("ston-047", "four_tactics", ingres_benchmark=hashed(**ratios)) == expected
