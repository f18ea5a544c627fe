"""Tables and sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import (
    compilation,
    compilation_today,
    files,
    microcode,
    operating_system,
)
from pgrerun.chapters.four_tactics.evidence.tactics import PRINTED
from pgrerun.chapters.four_tactics.experiments.compilation_today import (
    INTERPRETED,
    JITTED,
    TUPLEWISE,
    VECTORWISE,
)
from pgrerun.chapters.four_tactics.experiments.connections import (
    ALONE,
    DUCKDB,
    LOOPBACK,
    TOGETHER,
    UNIX,
    pipelined,
)
from pgrerun.chapters.four_tactics.experiments.files import DIRECT, JUMPS, LARGE, ROW
from pgrerun.chapters.four_tactics.experiments.microcode import BY_INSTRUCTION, BY_TABLE
from pgrerun.chapters.four_tactics.experiments.reading import AHEAD
from pgrerun.lab.ingres import INTERPRETER
from pgrerun.lab.ingres.benchmark import ALONE as NOT_AHEAD
from pgrerun.lab.ingres.benchmark import PAGES, TRACKS
from pgrerun.page import narrate, tables
from pgrerun.parameters import time_to_run
from pgrerun.record import printed
from pgrerun.record.statistics import Interval


def apparatus(chapter: Chapter) -> tables.Table:
    """The memorandum's machine and relations, and this run's."""
    now = chapter.run.environment["machine"]
    relations = printed.table("four_tactics_relations").value
    flush = now["fdatasync_8k_seconds"]
    rows = [
        ("machine", "DEC VAX 11/780", f"{now['cpu_model']}, {now['cpus_usable']} processors"),
        (
            "system",
            "INGRES on UNIX",
            "a miniature of INGRES in Python; PostgreSQL"
            f" {chapter.run.environment['server']['version']}",
        ),
        ("disk", "not said", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        (
            "relation of the scans",
            f"{relations.tuples:g} tuples of {relations.tuple_bytes:g} bytes",
            f"the same; on PostgreSQL {chapter.parameters.tuples:,} tuples",
        ),
        (
            "relation of the joins",
            f"{relations.loaded:g} tuples of {relations.wide_bytes:g} bytes, and"
            f" {relations.inserted:g} inserted",
            "the same",
        ),
        (
            "page",
            f"{printed.cell('four_tactics_said', 'block_bytes', 'value'):g} bytes",
            "the same; on PostgreSQL 8 kB",
        ),
        ("time to run", "", time_to_run("four_tactics")),
    ]
    frame = pd.DataFrame(rows, columns=["", "1981", "this run"])
    return tables.table(frame, "Apparatus then and now")


def reads_agree(found: pd.DataFrame) -> narrate.Sentence:
    """How far the miniature's reads are from Table 8 (`miniature.reads`)."""
    labels = found["run"].str[0] + found["run"].str[1:].str.replace("_", " ")
    off = 100 * (found["read"] / found["printed, less catalogs"] - 1).set_axis(labels)
    within = off.abs() <= 2
    rest = ", ".join(f"{run} {narrate.number(value, 1)} %" for run, value in off[~within].items())
    return narrate.Sentence(
        f"{within.sum()} of {narrate.count(len(off), 'run')} agree with the print within two"
        f" percent{f'; off are {rest}' if rest else ''}."
    )


# ---- compilation


def scale(chapter: Chapter) -> narrate.Sentence:
    """What one tuple of query c costs, then and here: why only ratios are compared."""
    cost = compilation.per_tuple(chapter, INTERPRETER)
    then = printed.cell("four_tactics_said", "record_interpreted_s", "value")
    return narrate.Sentence(
        f"A VAX took {narrate.number(1e6 * then)} microseconds to interpret query c for one tuple;"
        f" the miniature, in Python, takes {narrate.number(1e6 * cost.median())}. Nothing follows"
        " from that. What can be compared is the ratio of two engines that were built with equal"
        " care."
    )


def break_even(chapter: Chapter) -> narrate.Sentence:
    """The break-even then and now, of both queries with a qualification."""
    then = printed.cell("four_tactics_said", "break_even", "value")
    what = "number of tuples of query c from which on compiling pays"
    of_c, of_d = (compilation.break_even(chapter, query) for query in "cd")
    return narrate.then_and_now(then, of_c, what) + f"For query d it is {narrate.interval(of_d)}."


def jit(chapter: Chapter, compile_times: pd.DataFrame) -> narrate.Sentence:
    """Whether JIT pays on this relation."""
    ratio = chapter.ratio("jit", "seconds", JITTED, INTERPRETED)
    said = narrate.ratio_sentence(
        ratio, "time of query d", "PostgreSQL with JIT", "PostgreSQL without"
    )
    compiling = narrate.number(compile_times["compiling (ms)"].median(), 1)
    even = compilation_today.jit_break_even(chapter)
    from_then = (
        f"What it saves per tuple makes up for that from {narrate.interval(even)} tuples on."
        if even
        else "That the compiled form is quicker isn't sure here, so no number of tuples makes up"
        " for that."
    )
    return narrate.Sentence(
        f"{said} Its compiler takes {compiling} ms per command, however many tuples there are: here"
        f" {chapter.parameters.tuples:,}. {from_then}"
    )


def vectors(chapter: Chapter) -> narrate.Sentence:
    """What a third way gives, which neither interprets each tuple nor compiles."""
    gain = chapter.ratio("vectors", "seconds", TUPLEWISE, VECTORWISE)
    said = narrate.ratio_sentence(gain, "time of query d", TUPLEWISE, VECTORWISE)
    return said + "Both run on one processor and find the relation in memory."


# ---- microcode


def bound(chapter: Chapter) -> narrate.Sentence:
    """What is gained if GETSYMBOL and INTERPRET take no time, in print and here."""
    said = narrate.then_and_now(
        microcode.printed_bound(),
        microcode.bound(chapter),
        "gain if both routines took no time at all",
    )
    return said + "No instruction for them can give more."


def checksums(chapter: Chapter) -> narrate.Sentence:
    """What an instruction of its own gives a checksum."""
    return narrate.ratio_sentence(
        chapter.ratio("checksums", "time", BY_TABLE, BY_INSTRUCTION),
        "time per MB",
        "a check without an instruction of its own",
        "a check with one",
    )


# ---- files


def jumps(found: pd.DataFrame) -> narrate.Sentence:
    """What jumps away and back did to reading ahead, and why (`experiments.files.read_ahead`)."""
    more, reads = files.beyond(found), found.set_index("pattern").reads
    why = (
        "A jump makes it start over, as in UNIX."
        if files.read_ahead(found)["jumps away and back end it"]
        else "It doesn't remember one place per file, as UNIX did: it marks a page of what it has"
        " fetched ahead, and whoever comes to the mark sets off the next fetch, wherever the"
        " reader was in between."
    )
    return narrate.Sentence(
        f"Of {narrate.count(int(reads[ROW]), 'block')} in a row the kernel fetched {more[ROW]} kB"
        f" more than it had been asked for by then, and {more[JUMPS]} kB more with the jumps. {why}"
    )


def read_ahead_gain(chapter: Chapter) -> narrate.Sentence:
    """What read-ahead takes away from the tactic, on the query where it gained most."""
    ahead, without = (
        chapter.ratio("cold files", "wall e_3360", base, TRACKS) for base in (PAGES, NOT_AHEAD)
    )
    if ahead.low > 1.05:
        why = "Read-ahead doesn't make the difference here."
    elif without.low > 1.05:
        why = "The gain is the kernel's now."
    else:
        why = "Neither is sure to gain."
    return narrate.Sentence(
        f"Against UNIX files without any read-ahead, tracks gain {narrate.interval(without)} on"
        f" query e; against the read-ahead of today {narrate.interval(ahead)}. {why}"
    )


def processor_share(chapter: Chapter) -> narrate.Sentence:
    """CPU's part of the cold runs: what no file system can gain."""
    share = files.processor_share(chapter)
    reads = chapter.table("cold files", "reads e_3360").iloc[0]
    return narrate.Sentence(
        f"Tracks need {narrate.number(reads[TRACKS])} reads for query e instead of"
        f" {narrate.number(reads[PAGES])}. But of the response time on UNIX files,"
        f" {narrate.number(share.min(), 0)} to {narrate.number(share.max(), 0)} percent are CPU"
        " time here, which no file system shortens."
    )


def copying(chapter: Chapter) -> narrate.Sentence:
    """Why reading into user space costs what it does: no copy, but every read is waited for."""
    waits = chapter.table("raw files", "waits").median()
    ratio = chapter.ratio("raw files", "cpu", DIRECT, LARGE)
    said = narrate.ratio_sentence(
        ratio, "CPU time", "reading into user space", "reading through the cache"
    )
    paid = " A copy is saved and sleeps are paid." if waits[DIRECT] > waits[LARGE] else ""
    return narrate.Sentence(
        f"{said} Without the cache nobody reads ahead: the process went to sleep"
        f" {narrate.number(waits[DIRECT], 1)} times for each MB, and"
        f" {narrate.number(waits[LARGE], 1)} times with it.{paid}"
    )


def asked_ahead(chapter: Chapter) -> narrate.Sentence:
    """What asking ahead alone gives on scattered pages: PostgreSQL's effective_io_concurrency."""
    return narrate.ratio_sentence(
        files.asked_ahead(chapter),
        "time to fetch scattered pages",
        "workers that are asked for a page when it is needed",
        f"workers that are asked for {AHEAD} pages ahead",
    )


# ---- operating system


def fewer_switches(chapter: Chapter, sleeps: pd.DataFrame) -> narrate.Sentence:
    """Why a read isn't always a switch: what is there before the process sleeps needs none."""
    ratio = files.switches_per_read(chapter)
    rows = sleeps.set_index("slept")
    reads = narrate.count(int(rows.reads.sum()), "read")
    said = (
        f"A read of one page cost PostgreSQL {narrate.interval(ratio)} voluntary switches, where a"
        " switch for every read would be 1."
    )
    if len(rows) == 1:
        each = "each" if rows.index[0] else "none"
        return narrate.Sentence(
            f"{said} A process that reads blocks one by one, past the cache, went to sleep for"
            f" {each} of {reads}."
        )
    quick, slow = rows.microseconds[False], rows.microseconds[True]
    why = (
        "what is there before the process has gone to sleep needs no switch"
        if quick < slow
        else "and these weren't the faster ones"
    )
    return narrate.Sentence(
        f"{said} Why a read can do without shows where a process reads blocks one by one, past the"
        f" cache, and looks at its count of switches after each: of {reads},"
        f" {int(rows.reads[False])} came without a switch, in a median of"
        f" {narrate.number(quick, 0)} microseconds, the others in {narrate.number(slow, 0)}: {why}."
    )


def table_9(chapter: Chapter) -> tables.Table:
    """Table 9 with the costs of today."""
    return tables.table(operating_system.table_9(chapter), "Table 9 again, computed")


def cheaper_since(chapter: Chapter) -> narrate.Sentence:
    """What became cheaper since, and what MANGOS's arithmetic makes of it."""
    factors, found = operating_system.cheaper(chapter), operating_system.table_9(chapter)
    then, now = found["in print (%)"], found["with today's costs (%)"]
    *of_system, evaluating = factors.values()
    ways = ", ".join(f"{what} {narrate.interval(factor)}" for what, factor in factors.items())
    slower = (
        " What an operating system does hasn't become cheaper by as much as what a data base system"
        " does."
        if max(cost.high for cost in of_system) < evaluating.low
        else ""
    )
    return narrate.Sentence(
        f"On a VAX under UNIX it took so many times what it takes here: {ways}.{slower} If a"
        " command still took as many reads and messages, MANGOS would gain"
        f" {narrate.number(now.min(), 0)} to {narrate.number(now.max(), 0)} percent of CPU time,"
        f" where the memorandum has {narrate.number(then.min(), 1)} to"
        f" {narrate.number(then.max(), 1)}."
    )


def connections(chapter: Chapter) -> narrate.Sentence:
    """Messages and switches of a command by each way, and what isn't there to be tried."""
    operating_system.route(chapter)
    costs = operating_system.per_command(chapter).pivot(
        index="variant", columns="what", values="cost"
    )
    costs = costs.reindex(chapter.run.observations("ways")["variant"].unique())
    said = []
    for variant, cost in costs.iterrows():
        switches = "unknown"
        if isinstance(cost["task switches"], Interval):
            switches = narrate.number(cost["task switches"].estimate, 2)
        said.append(f"{variant} {narrate.number(cost['messages'].estimate, 2)} and {switches}")
    text = f"Messages and task switches of both sides for each command: {'; '.join(said)}."
    if {ALONE, UNIX} <= set(costs.index):
        alone, line = costs.loc[ALONE], costs.loc[UNIX]
        fewer = alone["task switches"].high < line["task switches"].low / 2
        if alone["messages"].low >= 0.5 and fewer:
            text += (
                " A single-user backend calls the kernel for each of its answers as well; what it"
                " is spared is waiting for somebody to ask again."
            )
    if chapter.borrowed:
        text += (
            " That is the way of the server's URL, and DuckDB beside it: a port to listen on and"
            " files for a single-user backend are asked of throwaway servers only."
        )
        if not costs["task switches"].drop(DUCKDB).notna().any():
            text += (
                " The server's process can't be watched from here, so its switches aren't counted."
            )
    return narrate.Sentence(text)


def connection_times(chapter: Chapter) -> narrate.Sentence:
    """What the ways mean for a command's time, where it goes, and MANGOS's arithmetic beside."""
    more = (chapter.show(part) for part in (_working, _without_client))
    return narrate.Sentence(" ".join(filter(None, (_other_routes(chapter), *more))))


def _other_routes(chapter: Chapter) -> narrate.Sentence:
    route, times = operating_system.route(chapter), operating_system.times(chapter)
    others = {
        LOOPBACK: "a client at a TCP loopback",
        pipelined(route): f"a client that sends {TOGETHER} at a time",
        ALONE: "a single-user backend",
    }
    client = f"a client at a {route}"
    said = [
        narrate.ratio_sentence(times[name], "time of a short command", who, client)
        for name, who in others.items()
        if name in times
    ]
    return narrate.Sentence(" ".join(said))


def _working(chapter: Chapter) -> narrate.Sentence:
    route, working = operating_system.route(chapter), operating_system.working(chapter)
    rest = (
        " For the rest a processor has been told of work, and hasn't taken it up yet."
        if working.high < 0.9
        else ""
    )
    return narrate.Sentence(
        f"While a client at a {route} and its backend serve one another, both together are on a"
        f" processor for {narrate.interval(working)} of the time.{rest}"
    )


def _without_client(chapter: Chapter) -> narrate.Sentence:
    times, computed = (
        operating_system.times(chapter),
        operating_system.short_without_system(chapter),
    )
    if ALONE not in times:
        return narrate.Sentence("")
    return narrate.Sentence(
        f"Without a client a command is {narrate.interval(times[ALONE].inverse())} times as fast as"
        " with one that has to be waited for. MANGOS's arithmetic, from what a message and a"
        f" switch cost on one processor, gives {narrate.interval(computed)} for a client with a"
        " library."
    )


# ---- the closing table


def closing(effort: dict[str, Interval]) -> tables.Table:
    """The memorandum's closing table, with its man-months, beside what stands for each here."""
    said = printed.table("four_tactics_conclusions")
    rows = []
    for tactic, key in PRINTED.items():
        row = said.loc[key]
        if row.months_high > row.months_low:
            months = f"{row.months_low:g} to {row.months_high:g}"
        elif row.months_high == row.months_low:
            months = f"{row.months_low:g}"
        else:
            months = f"more than {row.months_low:g}"
        gain = narrate.interval(effort[tactic]) if tactic in effort else "not measured"
        rows.append((tactic, row.effect, months, gain))
    columns = ["tactic", "published effect", "published man-months", "old time over new, here"]
    return tables.table(pd.DataFrame(rows, columns=columns), "Effects and efforts")
