"""Four tactics: what the printed tables of the 1981 memorandum imply, and where they disagree."""

from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from pgrerun.record.printed.reading import Check, cell, printed, table

_PAGE, _HEADER, _LINE = 1024, 12, 2  # bytes; university INGRES's page header and line table entry
NEW = {
    "four_tactics_compiled_wall": "dc",
    "four_tactics_compiled_cpu": "dc",
    "four_tactics_files_wall": "fs",
    "four_tactics_files_cpu": "fs",
    "four_tactics_mangos_cpu": "mangos",
}
"""The tables of seconds, and in each the column of the system with the tactic."""


def _improvement(name: str) -> pd.DataFrame:
    """Adds, per run: the improvement (%) as a share of the new time and of the old one, the
    speed-up (old over new), and whether half a unit of the last printed digits of both times lets
    either formula give the printed one.
    """
    t = table(name)
    new, old = t[NEW[name]], t.ingres
    t["over_new"], t["over_old"] = 100 * (old - new) / new, 100 * (old - new) / old
    t["speed_up"] = old / new
    digits = printed(name)[[NEW[name], "ingres"]].map(_half_digit)
    t["within_rounding"] = [
        _reachable(row.improvement, row[NEW[name]], row.ingres, *digits.loc[key])
        for key, row in t.iterrows()
    ]
    return t


def _half_digit(text: str) -> float:
    """Half a unit of the last digit of a printed number."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def _reachable(
    improvement: float, new: float, old: float, new_half: float, old_half: float
) -> bool:
    """Whether times that round to the printed ones can give the improvement, of either time."""
    ends = [
        (o, n) for o in (old - old_half, old + old_half) for n in (new - new_half, new + new_half)
    ]
    span = [100 * (o - n) / under for o, n in ends for under in (o, n)]
    return min(span) - 0.05 <= improvement <= max(span) + 0.05


def formula(name: str) -> tuple[str, int, int]:
    """Which base most of a table's improvements are shares of ("over_new" or "over_old"), in how
    many rows of those that tell.
    """
    t = _improvement(name)
    telling = t[(t.over_new - t.over_old).abs() > 0.05]
    nearer = {
        base: int(
            (
                (telling[base] - telling.improvement).abs()
                == (telling[["over_new", "over_old"]].sub(telling.improvement, axis=0))
                .abs()
                .min(axis=1)
            ).sum()
        )
        for base in ("over_new", "over_old")
    }
    base = max(nearer, key=nearer.__getitem__)
    return base, nearer[base], len(telling)


def _access() -> pd.DataFrame:
    """Adds the reads beyond those of the shortest command with a relation: what its data cost."""
    t = table("four_tactics_access")
    t["beyond_one"] = t.reads - t.reads["bcd_1"]
    return t


def _microcode() -> pd.DataFrame:
    """Adds, per routine: instruction fetches saved (us), what is left after calling the microcode
    (us), the saving in percent of a call, and that share of the routine's printed share of all CPU
    time (%).
    """
    t = table("four_tactics_microcode")
    said = table("four_tactics_said").value
    t["saved_us"] = t.branches / 2 * said.fetch_ns / 1000
    t["net_us"] = t.saved_us - said.microstore_us
    t["recomputed_routine"] = 100 * t.saved_ms / t.call_ms
    t["recomputed_overall"] = (
        t.routine_percent / 100 * table("four_tactics_profile").percent.reindex(t.index)
    )
    return t


def _relations() -> pd.DataFrame:
    """Adds to `value` the layout's number, where 1024-byte pages and the tuple's width determine
    it.
    """
    t = table("four_tactics_relations")
    narrow, wide = (
        (_PAGE - _HEADER) // (t.value[width] + _LINE) for width in ("tuple_bytes", "wide_bytes")
    )
    t.loc["small_pages", "layout"] = -(-t.value.small_tuples // narrow)
    t.loc["pages", "layout"] = -(-t.value.tuples // narrow)
    t.loc["main_tuples", "layout"] = wide
    t.loc["main_pages", "layout"] = -(-t.value.loaded // wide)
    return t


def _mangos() -> pd.DataFrame:
    """Adds to Table 9 as `_improvement`, and the CPU time that Table 8 and the costs of switch and
    message give (s).
    """
    t = _improvement("four_tactics_mangos_cpu")
    said, access = table("four_tactics_said").value, table("four_tactics_access")
    saved = {
        "reads": said.switch_ms / 1e3 - said.mangos_switch_us / 1e6,
        "messages": said.message_ms / 1e3 - said.mangos_message_us / 1e6,
    }
    for key in t.index:
        row = access.loc[key if key in access.index else f"bcd_{key[2:]}"]
        t.loc[key, "model"] = (
            t.ingres[key] - row.reads * saved["reads"] - row.messages * saved["messages"]
        )
    return t


DERIVED: dict[str, Callable[[], pd.DataFrame]] = {
    **{name: partial(_improvement, name) for name in NEW if name != "four_tactics_mangos_cpu"},
    "four_tactics_mangos_cpu": _mangos,
    "four_tactics_access": _access,
    "four_tactics_microcode": _microcode,
    "four_tactics_relations": _relations,
}

_TITLES = {name: f"Table {number}" for name, number in zip(NEW, (1, 2, 5, 6, 9))}
_BASE = {"over_new": "the new time", "over_old": "the old time"}


def checks() -> list[Check]:
    """Print against print for the chapter on four tactics."""
    improvements = [check for name in NEW for check in _improvements(name)]
    return [
        *improvements,
        *_check_sizes(),
        *_check_compilation(),
        *_check_microcode(),
        *_check_file_system(),
        *_check_mangos(),
    ]


def _check_sizes() -> list[Check]:
    relations = _relations()
    access = DERIVED["four_tactics_access"]()
    return [
        Check(
            "1.5, pages of PARTS with 3,360 tuples",
            f"{relations.value.pages:g}",
            f"{relations.layout.pages:g}",
            agrees=relations.value.pages == relations.layout.pages,
            note=(
                f"What {relations.value.tuple_bytes:g}-byte tuples fill on pages with a header of"
                f" {_HEADER} bytes and a line table. Table 8 sides with the layout: its scan reads"
                f" {access.beyond_one.bcd_3360:g} pages more than that of one tuple."
            ),
        ),
        Check(
            "1.5, pages of PARTS with 210 tuples",
            f"{relations.value.small_pages:g}",
            f"{relations.layout.small_pages:g}",
            agrees=relations.value.small_pages == relations.layout.small_pages,
            note="By the same layout.",
        ),
        Check(
            "1.5, main pages of the keyed PARTS",
            f"{relations.value.main_pages:g}",
            f"{relations.layout.main_pages:g}",
            agrees=relations.value.main_pages == relations.layout.main_pages,
            note="By the same layout.",
        ),
    ]


def _check_compilation() -> list[Check]:
    said = table("four_tactics_said").value
    conclusions = table("four_tactics_conclusions")
    dc_wall = DERIVED["four_tactics_compiled_wall"]()
    dc = DERIVED["four_tactics_compiled_cpu"]()
    fs_wall = DERIVED["four_tactics_files_wall"]()
    per_record = {column: dc[column]["c_3360"] / 3360 for column in ("ingres", "dc")}
    break_even = said.compile_s / (said.record_interpreted_s - said.record_compiled_s)
    long = ~dc.index.str.endswith(("_0", "_1"))
    return [
        Check(
            "Tables 1 and 5, query g on INGRES",
            f"{dc_wall.ingres.g_3360:g} s",
            f"{fs_wall.ingres.g_3360:g} s",
            agrees=dc_wall.ingres.g_3360 == fs_wall.ingres.g_3360,
            note="The same runs of the same system are printed twice.",
        ),
        *(
            Check(
                f"2.4, per record of query c, {how}",
                f"{printed:g} s",
                f"{per_record[system]:.4f} s",
                agrees=abs(per_record[system] - printed) < 5e-5,
                note="Table 2, divided by all tuples.",
            )
            for how, system, printed in (
                ("interpreted", "ingres", said.record_interpreted_s),
                ("compiled", "dc", said.record_compiled_s),
            )
        ),
        Check(
            "2.4, break-even",
            f"{said.break_even:g} records",
            f"{break_even:.0f} records",
            agrees=abs(break_even - said.break_even) < 0.5,
            note="The cost of compiling over what it saves per record.",
        ),
        Check(
            "VI, compilation of longer commands",
            f"{conclusions.low.DC:g} to {conclusions.high.DC:g} %",
            (
                f"{dc_wall.improvement[long].min():g} to {dc_wall.improvement[long].max():g} % of"
                f" wall clock, {dc.improvement[long].min():g} to {dc.improvement[long].max():g} %"
                " of CPU"
            ),
            agrees=False,
            note="Every command with more than one tuple in Tables 1 and 2.",
        ),
    ]


def _check_microcode() -> list[Check]:
    said = table("four_tactics_said").value
    micro = _microcode()
    profile = table("four_tactics_profile").percent
    return [
        Check(
            "3.4, gain of both routines",
            f"{said.gain_percent:g} %",
            f"{micro.recomputed_overall.sum():.1f} %",
            agrees=abs(micro.recomputed_overall.sum() - said.gain_percent) < 0.05,
            note="Each routine's speed-up times its share of the profile in Table 3, of the old"
            " time. Of the new one, as in most of the memorandum's tables, it is the printed gain.",
        ),
        Check(
            "3.4, net saving after calling the microcode",
            "negative",
            f"{micro.net_us.min():.1f} to {micro.net_us.max():.1f} µs per call",
            agrees=bool((micro.net_us < 0).any()),
            note=(
                f"Half the branches at {said.fetch_ns:g} ns each, less {said.microstore_us:g} µs:"
                " positive for both routines, so the last sentence of the section doesn't follow"
                " from Table 4."
            ),
        ),
        Check(
            "3.3 and Table 3, “all six routines”",
            "6",
            f"{len(profile)}",
            agrees=len(profile) == 6,
            note="Table 3 lists more, and Table 4 has two.",
        ),
    ]


def _check_file_system() -> list[Check]:
    said = table("four_tactics_said").value
    conclusions = table("four_tactics_conclusions")
    fs_wall = DERIVED["four_tactics_files_wall"]()
    fs = DERIVED["four_tactics_files_cpu"]()
    scans = fs.improvement[["b_3360", "c_3360", "d_3360"]]
    simple = fs_wall.improvement[["a_0", "b_1", "c_1", "d_1"]]
    return [
        Check(
            "4.3, CPU of sequential commands",
            f"about {said.sequential_cpu:g} %",
            f"{scans.min():g} to {scans.max():g} %",
            agrees=bool(scans.between(7.5, 12.5).all()),
            note="Queries b, c and d with 3,360 tuples in Table 6.",
        ),
        Check(
            "4.3, response of simple commands",
            f"{said.simple_low:g} to {said.simple_high:g} %",
            f"{simple.min():g} to {simple.max():g} %",
            agrees=bool(simple.between(said.simple_low, said.simple_high).all()),
            note="Queries a to d with at most one tuple in Table 5.",
        ),
        Check(
            "VI, CPU that the file system saves",
            f"{conclusions.low.FS:g} to {conclusions.high.FS:g} %",
            f"{fs.improvement.min():g} to {fs.improvement.max():g} %",
            agrees=bool(fs.improvement.between(conclusions.low.FS, conclusions.high.FS).all()),
            note="All of Table 6.",
        ),
        Check(
            "VI, response that the file system saves",
            f"{conclusions.response_low.FS:g} to {conclusions.response_high.FS:g} %",
            f"{fs_wall.improvement.min():g} to {fs_wall.improvement.max():g} %",
            agrees=bool(
                fs_wall.improvement.between(
                    conclusions.response_low.FS, conclusions.response_high.FS
                ).all()
            ),
            note=(
                f"All of Table 5. As shares of the old time they are {fs_wall.over_old.min():.0f}"
                f" to {fs_wall.over_old.max():.0f} %: the closing table changes the formula."
            ),
        ),
    ]


def _check_mangos() -> list[Check]:
    conclusions = table("four_tactics_conclusions")
    mangos = DERIVED["four_tactics_mangos_cpu"]()
    halves = printed("four_tactics_mangos_cpu")[["mangos", "ingres"]].map(_half_digit)
    return [
        Check(
            "VI, MANGOS",
            f"{conclusions.low.MANGOS:g} to {conclusions.high.MANGOS:g} %",
            f"{mangos.improvement.min():g} to {mangos.improvement.max():g} %",
            agrees=bool(
                mangos.improvement.between(conclusions.low.MANGOS, conclusions.high.MANGOS).all()
            ),
            note="All of Table 9.",
        ),
        Check(
            "Table 9 against Table 8 and the costs in 5.5",
            "times of Table 9",
            f"{(mangos.model - mangos.mangos).abs().max():.2f} s away at most",
            agrees=bool(((mangos.model - mangos.mangos).abs() <= halves.sum(axis=1)).all()),
            note="Reads times the cheaper switch, messages times the cheaper message.",
        ),
    ]


def _improvements(name: str) -> Iterator[Check]:
    """One row for the table as a whole, and one for each improvement that no rounding explains."""
    t, (base, rows, telling) = _improvement(name), formula(name)
    yield Check(
        f"{_TITLES[name]}, what improvements are shares of",
        "not said",
        f"{_BASE[base]}, in {rows} of {telling} rows that tell",
        agrees=True,
        note="The two formulas differ more, the larger the improvement.",
    )
    for row in t[~t.within_rounding].itertuples():
        other = cell("four_tactics_compiled_wall", row.Index, "ingres")
        from_other = 100 * (other / t.at[row.Index, NEW[name]] - 1)
        why = (
            f" With the {other:g} s that Table 1 has for INGRES it is {from_other:.1f} %."
            if abs(from_other - row.improvement) < 0.05
            else ""
        )
        yield Check(
            f"{_TITLES[name]}, query {row.query} with {row.size:,g} tuple{'s' * (row.size != 1)}",
            f"{row.improvement:g} %",
            f"{row.over_new:.1f} or {row.over_old:.1f} %",
            agrees=False,
            note=(
                "Of the new or of the old time; no rounding of the two times gives the printed"
                f" number.{why}"
            ),
        )
