"""Tables and sentences that only this chapter says; judgements are put into words by `narrate`."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import compilation_today, files, operating_system
from pgrerun.chapters.four_tactics.evidence.tactics import PRINTED
from pgrerun.chapters.four_tactics.experiments.compilation_today import (
    LARGE,
    TUPLEWISE,
    VECTORWISE,
    stand_in,
)
from pgrerun.chapters.four_tactics.experiments.connections import (
    ALONE,
    LOOPBACK,
    TOGETHER,
    pipelined,
)
from pgrerun.chapters.four_tactics.experiments.files import JUMPS, ROW
from pgrerun.chapters.four_tactics.miniature import in_words
from pgrerun.errors import CannotMeasure
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
            f" {chapter.run.environment['server']['version']}{_stand_in(chapter)}",
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


def _stand_in(chapter: Chapter) -> str:
    """Of the apparatus: the other release that JIT will be measured on, if any."""
    try:
        other = stand_in(chapter)
    except CannotMeasure:
        return ""
    return f"; for its JIT PostgreSQL {other.version}" if other else ""


def reads_agree(found: pd.DataFrame) -> narrate.Sentence:
    """How far the miniature's reads are from Table 8 (`miniature.reads`)."""
    labels = found["run"].map(in_words)
    off = 100 * (found["read"] / found["printed, less catalogs"] - 1).set_axis(labels)
    within = off.abs() <= 2
    rest = "; ".join(
        f"{run}, by {narrate.number(value, 1)} %" for run, value in off[~within].items()
    )
    return narrate.Sentence(
        f"The pages read in {within.sum()} of {narrate.count(len(off), 'run')} agree with the"
        f" printed ones within two percent{f'; off are {rest}' if rest else ''}."
    )


# ---- compilation


def jit(chapter: Chapter) -> narrate.Sentence:
    """From how many tuples on JIT pays, or could at best."""
    least, even = (
        compilation_today.least_break_even(chapter),
        compilation_today.jit_break_even(chapter),
    )
    large = chapter.parameters.tuples
    said = narrate.ratio_sentence(
        compilation_today.gain(chapter, "wall", LARGE).inverse(),
        f"time of query d on {large:,} tuples",
        "PostgreSQL with JIT",
        "PostgreSQL without",
    )
    pays = (
        f"What it saves per tuple makes up for that from {narrate.interval(even)} tuples on."
        if even
        else "That the compiled form is quicker isn't sure here, so no number of tuples makes up"
        " for that."
    )
    elsewhere = compilation_today.elsewhere(chapter)
    return narrate.Sentence(
        f"{said} While query c is being compiled, {narrate.interval(least)} tuples could be"
        f" interpreted. {pays}{f' {elsewhere}.' if elsewhere else ''}"
    )


def vectors(chapter: Chapter) -> narrate.Sentence:
    """What a third way gives, which neither interprets each tuple nor compiles."""
    gain = chapter.ratio("vectors", "seconds", TUPLEWISE, VECTORWISE)
    said = narrate.ratio_sentence(gain, "time of query d", TUPLEWISE, VECTORWISE)
    return said + "Both run on one processor and find the relation in memory."


# ---- files


def jumps(found: pd.DataFrame) -> narrate.Sentence:
    """What jumps away and back did to reading ahead, and why (`experiments.files.read_ahead`)."""
    more, reads = files.beyond(found), found.set_index("pattern").reads
    why = (
        "A jump makes it start over, as in UNIX."
        if files.read_ahead(found)["jumps away and back end that"]
        else "It doesn't remember one place per file, as UNIX did: it marks a page of what it has"
        " fetched ahead, and a read of that page sets off the next fetch."
    )
    return narrate.Sentence(
        f"Of {narrate.count(int(reads[ROW]), 'block')} in a row the kernel fetched {more[ROW]} kB"
        f" ahead, and {more[JUMPS]} kB with the jumps. {why}"
    )


def simulated(requested: files.Requested) -> narrate.Sentence:
    """How the disk was set, and how far what it gives is from what is printed."""
    found, seek = files.simulated(requested), files.seek_time(requested)
    off = {
        what: 100 * (found[what] / found[f"printed {what}"] - 1).drop(files.CALIBRATED)
        for what in ("unix", "tracks")
    }
    ranges = {
        what: f"{narrate.number(value.min(), 0)} to {narrate.number(value.max(), 0)} %"
        for what, value in off.items()
    }
    return narrate.Sentence(
        f"A request is set to {narrate.number(1000 * seek, 1)} ms, so that query e takes the"
        " printed time on UNIX files, and a track to one turn of the disk more. The other commands"
        f" then differ from the printed times by {ranges['tracks']} on tracks and by"
        f" {ranges['unix']} on UNIX files, and query e on tracks by"
        f" {narrate.number(100 * (found['tracks'] / found['printed tracks'] - 1)['e_3360'], 1)} %."
    )


def requests(requested: files.Requested) -> tables.Table:
    """Requests and response times on the simulated disk, beside the print."""
    columns = {"gain": "UNIX over tracks, simulated", "printed gain": "UNIX over tracks, printed"}
    columns |= {"requests": "requests on UNIX files", "tracks": "tracks (s)", "unix": "UNIX (s)"}
    columns |= {"printed tracks": "tracks, printed (s)", "printed unix": "UNIX, printed (s)"}
    frame = files.simulated(requested).rename(columns=columns).round(2)
    frame.insert(0, "query", frame.index.str[0])
    return tables.table(frame.reset_index(drop=True), "The benchmark on a simulated disk of 1981")


# ---- operating system


def connection_times(chapter: Chapter) -> narrate.Sentence:
    """What the ways mean for a command's time."""
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


# ---- the closing table


def closing(effort: Mapping[str, Interval | float]) -> tables.Table:
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
        response = f"{row.response_low:g}-{row.response_high:g}% response time"
        effect = f"{row.effect}, {response}" if row.response_low > 0 else row.effect
        rows.append((tactic, effect, months, gain))
    columns = ["tactic", "published effect", "published man-months", "old over new, here"]
    return tables.table(pd.DataFrame(rows, columns=columns), "Effects and efforts")
