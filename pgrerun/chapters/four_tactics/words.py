"""Tables and sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun import narrate, published, statistics, tables
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics import compilation, files, heirs, mangos, profile, reading, system, travel
from pgrerun.chapters.four_tactics.miniature import ALONE, PAGES, TRACKS
from pgrerun.errors import CannotMeasure
from pgrerun.parameters import time_to_run


def apparatus(chapter: Chapter) -> tables.Table:
    """The memorandum's machine and relations, and this run's."""
    now, relations = chapter.run.environment["machine"], published.table("four_tactics_relations").value
    flush = now["fdatasync_8k_seconds"]
    rows = [
        ("machine", "DEC VAX 11/780", f"{now['cpu_model']}, {now['cpus_usable']} processors"),
        ("system", "INGRES on UNIX", f"a miniature of INGRES in Python; PostgreSQL {chapter.run.environment['server']['version']}"),
        ("disk", "not said", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        ("relation of the scans", f"{relations.tuples:g} tuples of {relations.tuple_bytes:g} bytes", f"the same; on PostgreSQL {chapter.parameters.tuples:,} tuples"),
        ("relation of the joins", f"{relations.loaded:g} tuples of {relations.wide_bytes:g} bytes, and {relations.inserted:g} inserted", "the same"),
        ("page", f"{published.cell('four_tactics_said', 'block_bytes', 'value'):g} bytes", "the same; on PostgreSQL 8 kB"),
        ("time to run", "", time_to_run("four_tactics")),
    ]  # fmt: skip
    return tables.table(pd.DataFrame(rows, columns=["", "1981", "this run"]), "Apparatus then and now")


def scale(chapter: Chapter) -> narrate.Sentence | None:
    """What one tuple of query c costs, then and here: why only ratios are compared."""
    cost = compilation.per_tuple(chapter, compilation.INTERPRETER)
    if cost.empty:
        return None
    then = published.cell("four_tactics_said", "record_interpreted_s", "value")
    return narrate.Sentence(
        f"A VAX took {narrate.number(1e6 * then)} microseconds to interpret query c for one tuple; the miniature, in Python, takes {narrate.number(1e6 * cost.median())}. "
        "Nothing follows from that. What can be compared is the ratio of two engines that were built with equal care."
    )


def even(chapter: Chapter) -> narrate.Sentence | None:
    """The break-even then and now, of both queries with a qualification."""
    found = {query: compilation.break_even(chapter, query) for query in "cd"}
    if None in found.values():
        return None
    return narrate.Sentence(
        f"{narrate.then_and_now(published.cell('four_tactics_said', 'break_even', 'value'), found['c'], 'number of tuples of query c from which on compiling pays')} "
        f"For query d it is {narrate.interval(found['d'])}."
    )


def reads_agree(found: pd.DataFrame) -> narrate.Sentence:
    """How far the miniature's reads are from Table 8."""
    off = (found["read"] / found["printed, less catalogs"] - 1).set_axis(found["run"].str[0] + found["run"].str[1:].str.replace("_", " ")) * 100
    within = off[off.abs() <= 2]
    rest = ", ".join(f"{run} {narrate.number(value, 1)} %" for run, value in off.drop(within.index).items())
    return narrate.Sentence(f"{len(within)} of {narrate.count(len(off), 'run')} agree with the print within two percent{f'; off are {rest}' if rest else ''}.")


def twice_ahead(chapter: Chapter) -> narrate.Sentence | None:
    """What read-ahead takes away from the tactic, on the query where it gained most."""
    with_it, without = (files.improvement(chapter, "e_3360", base=base) for base in (PAGES, ALONE))
    if None in (with_it, without):
        return None
    return narrate.Sentence(
        f"Against UNIX files without any read-ahead, tracks gain {narrate.interval(without)} on query e; against the read-ahead of today {narrate.interval(with_it)}. "
        + ("The gain is the kernel's now." if with_it.low < 1.05 < without.low else "Read-ahead doesn't make the difference here." if with_it.low > 1.05 else "Neither is sure to gain.")
    )


def why_not_faster(chapter: Chapter) -> narrate.Sentence | None:
    """CPU's part of the cold runs: what no file system can gain."""
    found = files.processor_share(chapter)
    if found is None:
        return None
    low, high = found[PAGES].min(), found[PAGES].max()
    fewer = files.requests(chapter).set_index("query")
    return narrate.Sentence(
        f"Tracks need {narrate.number(fewer.at['e', TRACKS])} reads for query e instead of {narrate.number(fewer.at['e', PAGES])}. But of the response time on UNIX files, "
        f"{narrate.number(low, 0)} to {narrate.number(high, 0)} percent are CPU time here, which no file system shortens."
    )


def jumps(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What jumps away and back did to reading ahead, and why."""
    if found is None:
        return None
    more = files.beyond(found)
    kept = not files.read_ahead_facts(found)["jumps away and back end it"]
    return narrate.Sentence(
        f"Of {narrate.count(int(found.set_index('pattern').reads[files.ROW]), 'block')} in a row the kernel fetched {more[files.ROW]} kB more than it had been asked for by then, and "
        f"{more[files.JUMPS]} kB more with the jumps. "
        + ("It doesn't remember one place per file, as UNIX did: it marks a page of what it has fetched ahead, and whoever comes to the mark sets off the next fetch, wherever the reader was in between."
           if kept else "A jump makes it start over, as in UNIX.")
    )  # fmt: skip


def fewer_switches(found: pd.DataFrame | None, chapter: Chapter) -> narrate.Sentence | None:
    """Why a read isn't always a switch: what is there before the process has gone to sleep needs none."""
    ratio = reading.switches_per_read(chapter)
    if found is None or ratio is None:
        return None
    rows = found.set_index("slept")
    said = f"A read of one page cost PostgreSQL {narrate.interval(ratio)} voluntary switches, where a switch for every read would be 1."
    if False not in rows.index:
        return narrate.Sentence(f"{said} A process that reads blocks one by one, past the cache, went to sleep for each of {narrate.count(int(rows.reads.sum()), 'read')}.")
    if True not in rows.index:
        return narrate.Sentence(f"{said} A process that reads blocks one by one, past the cache, went to sleep for none of {narrate.count(int(rows.reads.sum()), 'read')}.")
    quick, slow = rows.microseconds[False], rows.microseconds[True]
    reason = "what is there before the process has gone to sleep needs no switch" if quick < slow else "and these weren't the faster ones"
    return narrate.Sentence(
        f"{said} Why a read can do without shows where a process reads blocks one by one, past the cache, and looks at its count of switches after each: of "
        f"{narrate.count(int(rows.reads.sum()), 'read')}, {int(rows.reads[False])} came without a switch, in a median of {narrate.number(quick, 0)} microseconds, "
        f"the others in {narrate.number(slow, 0)}: {reason}."
    )


def copying_beside_waiting(chapter: Chapter) -> narrate.Sentence | None:
    """Why reading into user space costs what it costs: the copy is saved, and every read is waited for."""
    found = reading.waits(chapter)
    if found is None:
        return None
    per = found.set_index("way")["waits per MB"]
    paid = " A copy is saved and sleeps are paid." if per[reading.DIRECT] > per[reading.LARGE] else ""
    ratio = reading.raw(chapter, "cpu", reading.DIRECT, reading.LARGE)
    return narrate.Sentence(
        f"{narrate.ratio_sentence(ratio, 'CPU time', 'reading into user space', 'reading through the cache')} Without the cache nobody reads ahead: the process went to sleep "
        f"{narrate.number(per[reading.DIRECT], 1)} times for each MB, and {narrate.number(per[reading.LARGE], 1)} times with it.{paid}"
    )


def asked_ahead(chapter: Chapter) -> narrate.Sentence | None:
    """What asking ahead alone gives on scattered pages: PostgreSQL's effective_io_concurrency."""
    ratio = reading.asked_ahead(chapter)
    return ratio and narrate.ratio_sentence(ratio, "time to fetch scattered pages", "workers that are asked for a page when it is needed", f"workers that are asked for {reading.AHEAD} pages ahead")


def mangos_again(chapter: Chapter) -> narrate.Sentence | None:
    """What became cheaper since, and what MANGOS's arithmetic makes of it."""
    factors, found = mangos.cheaper(chapter), mangos.again(chapter)
    if found is None:
        return None
    then, now = found["in print (%)"], found["with today's costs (%)"]
    *system_costs, evaluating = factors.values()
    ways = ", ".join(f"{what} {narrate.interval(factor)}" for what, factor in factors.items())
    slower = " What an operating system does hasn't become cheaper by as much as what a data base system does." if max(cost.high for cost in system_costs) < evaluating.low else ""
    return narrate.Sentence(
        f"On a VAX under UNIX it took so many times what it takes here: {ways}.{slower} If a command still took as many reads and messages, MANGOS would gain "
        f"{narrate.number(now.min(), 0)} to {narrate.number(now.max(), 0)} percent of CPU time, where the memorandum has {narrate.number(then.min(), 1)} to {narrate.number(then.max(), 1)}."
    )


def jit_beside(found: pd.DataFrame | None, chapter: Chapter) -> narrate.Sentence | None:
    """Whether JIT pays on this relation."""
    gain = heirs.jit_gain(chapter) if found is not None else None
    if gain is None:
        return None
    said = narrate.ratio_sentence(gain.inverse(), "time of query d", "PostgreSQL with JIT", "PostgreSQL without")
    even = heirs.jit_break_even(chapter)
    from_then = f"What it saves per tuple makes up for that from {narrate.interval(even)} tuples on." if even else "That the compiled form is quicker isn't sure here, so no number of tuples makes up for that."
    return narrate.Sentence(
        f"{said} Its compiler takes {narrate.number(found['compiling (ms)'].median(), 1)} ms per command, however many tuples there are: here {chapter.parameters.tuples:,}. {from_then}"
    )


def checksums_beside(chapter: Chapter) -> narrate.Sentence | None:
    """What an instruction of its own gives a checksum."""
    gain = heirs.checksum_gain(chapter)
    return gain and narrate.ratio_sentence(gain, "time per MB", "a check without an instruction of its own", "a check with one")


def bound(chapter: Chapter) -> narrate.Sentence | None:
    """Amdahl's bound: what is gained if the two routines take no time at all, by the print's profile and by this one."""
    share, profile_then = profile.evaluating(chapter), published.table("four_tactics_profile").percent
    if share is None:
        return None
    then, here = 1 / (1 - profile_then[list(profile.EVALUATING)].sum() / 100), (1 / (1 - side) for side in (share.estimate, share.low, share.high))
    found = statistics.Interval(*here, share.n)
    return narrate.Sentence(f"{narrate.then_and_now(then, found, 'gain if both routines took no time at all')} No instruction for them can give more.")


def vectors_beside(chapter: Chapter) -> narrate.Sentence | None:
    """What a third way gives, which neither interprets each tuple nor compiles."""
    gain = heirs.vectors_gain(chapter)
    if gain is None:
        return None
    return narrate.Sentence(f"{narrate.ratio_sentence(gain, 'time of query d', heirs.TUPLEWISE, heirs.VECTORWISE)} Both run on one processor and find the relation in memory.")


def travelled(chapter: Chapter) -> narrate.Sentence | None:
    """Messages and switches of a command by each way, and what isn't there to be tried."""
    found = travel.found(chapter)
    if not found:
        return None
    ways = [f"{way} {_travel_costs(costs)}" for way, costs in found.items()]
    said = f"Messages and task switches of both sides for each command: {'; '.join(ways)}."
    if travel.ALONE in found and travel.UNIX in found:
        alone, line = found[travel.ALONE], found[travel.UNIX]
        said += (
            " A single-user backend calls the kernel for each of its answers as well; what it is spared is waiting for somebody to ask again."
            if alone["messages"].low >= 0.5 and alone["switches"].high < line["switches"].low / 2 else ""
        )  # fmt: skip
    if chapter.borrowed:
        said += " That is the way of the server's URL, and DuckDB beside it: a port to listen on and files for a single-user backend are asked of throwaway servers only."
        if not any("switches" in costs for way, costs in found.items() if way != travel.DUCKDB):
            said += " The server's process can't be watched from here, so its switches aren't counted."
    return narrate.Sentence(said)


def _travel_costs(costs: dict[str, statistics.Interval]) -> str:
    switches = narrate.number(costs["switches"].estimate, 2) if "switches" in costs else "unknown"
    return f"{narrate.number(costs['messages'].estimate, 2)} and {switches}"


def travel_times(chapter: Chapter) -> narrate.Sentence | None:
    """What the ways mean for a command's time, where the time goes, and MANGOS's arithmetic beside the way without a client."""
    line = travel.line(chapter)
    if line is None:
        return None
    others = {travel.LOOPBACK: "a client at a TCP loopback", travel.pipelined(line): f"a client that sends {travel.TOGETHER} at a time", travel.ALONE: "a single-user backend"}
    ratios = {way: found for way in others if way != line and (found := travel.time_over(chapter, way, line))}
    said = [narrate.ratio_sentence(ratio, "time of a short command", others[way], f"a client at a {line}") for way, ratio in ratios.items()]
    if working := travel.working(chapter):
        said.append(
            f"While a client at a {line} and its backend serve one another, both together are on a processor for {narrate.interval(working)} of the time."
            + (" For the rest a processor has been told of work, and hasn't taken it up yet." if working.high < 0.9 else "")
        )  # fmt: skip
    outside = system.without_system(chapter)
    if travel.ALONE in ratios and outside:
        said.append(
            f"Without a client a command is {narrate.interval(ratios[travel.ALONE].inverse())} times as fast as with one that has to be waited for. "
            f"MANGOS's arithmetic, from what a message and a switch cost on one processor, gives {narrate.interval(outside['short commands'])} for a client with a library."
        )  # fmt: skip
    return narrate.Sentence(" ".join(said))


def effort(chapter: Chapter) -> dict[str, statistics.Interval | None]:
    """What stands for each tactic today, in the order of what it gained in 1981: compiled qualifications on many tuples, large asynchronous
    reads, newer instructions, and no switches and messages in a short command."""
    outside = system.without_system(chapter)
    return {
        "compilation (query d)": compilation.gain(chapter, "d_3360"),
        "file system (cold scan)": reading.faster(chapter, reading.SYNC_ONE, reading.WORKER_LARGE),
        "microcode (sorting)": profile.new_instructions(chapter),
        "operating system (short)": outside and outside["short commands"],
    }


def closing(effort: dict[str, statistics.Interval | None]) -> tables.Table:
    """The memorandum's closing table, with its man-months, beside what stands for each tactic here."""
    rows = []
    for (tactic, gain), (_, said) in zip(effort.items(), published.table("four_tactics_conclusions").loc[list(profile.TACTICS)].iterrows()):
        months = f"{said.months_low:g} to {said.months_high:g}" if said.months_high > said.months_low else f"{said.months_low:g}" if said.months_high == said.months_low else f"more than {said.months_low:g}"
        rows.append((tactic, said.effect, months, "not measured" if gain is None else narrate.interval(gain)))
    return tables.table(pd.DataFrame(rows, columns=["tactic", "effect in print", "man-months in print", "old time over new, here"]), "Effects and efforts")


OUT_OF_REACH = {
    "ston-010": ("man-months", "what a compiler takes to build can't be measured by running one"),
    "ston-034": ("catalogs of INGRES", "the miniature keeps its catalogs in memory, and PostgreSQL caches its own before a first command ends"),
    "ston-045": ("disk with a moving head", "storage without a head that moves has no middle to be near to"),
}
"""Claims that nothing here can try: capability and reason."""


def out_of_reach(chapter: Chapter) -> None:
    """Set those claims aside, each for its reason."""
    for claim, (capability, reason) in OUT_OF_REACH.items():
        chapter.set_aside(CannotMeasure(capability, reason), [claim])
