"""What a page was made from, in plain words: the names of the record's entries as a reader sees
them, here and where two runs are compared."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

CAPTION = "Parameters, settings and machine"
"""The caption of a chapter's last table."""

_NAMES: Mapping[str, str] = {
    "server name": "server",
    "server version": "server: version",
    "machine cpu model": "machine: processor",
    "machine cpus": "machine: logical processors",
    "machine cpus usable": "machine: logical processors that the run may use",
    "machine cores": "machine: processor cores",
    "machine governor": "machine: frequency governor",
    "machine memory": "machine: memory",
    "machine swap used": "machine: swap in use",
    "machine filesystem type": "machine: file system",
    "machine filesystem options": "machine: mount options of the file system",
    "machine fdatasync 8k": "machine: time to flush 8 kB to its disk (fdatasync)",
    "machine clock reading": "machine: time to read the clock",
    "machine load average": "machine: load average over 1, 5 and 15 minutes",
    "python": "software: Python",
    "machine python": "software: Python",
    "commit": "commit of this book",
}
_GROUPS = {"parameter": "parameter", "machine": "machine", "packages": "software", "spark": "Spark"}


def name(entry: str) -> str:
    """What an entry like "machine cpu model" is called; a name in plain words stays as it is."""
    first, _, rest = entry.partition(" ")
    if entry in _NAMES or first not in _GROUPS or not rest:
        return _NAMES.get(entry, entry)
    return f"{_GROUPS[first]}: {rest}"


def named(rows: Mapping[str, str]) -> dict[str, str]:
    """Values by their entries' plain names, each once, without those that are empty."""
    return {name(entry): value for entry, value in rows.items() if value not in ("", "None")}


def processor(machine: Mapping[str, Any]) -> str:
    """What a machine of a record calculates with: its processor's name, else its architecture."""
    return str(machine["cpu_model"] or machine["architecture"])


def days(moments: Iterable[str]) -> str:
    """The day of all of them, or the first and the last: "2026-11-26 to 2026-11-28"; "" of none."""
    found = sorted({moment[:10] for moment in moments})
    return " to ".join(found[:1] + found[1:][-1:])


def when(moment: str) -> str:
    """A time in ISO 8601 as a date to read: "23 November 2026, 13:06 UTC"; else what it is."""
    try:
        then = datetime.fromisoformat(moment).astimezone(UTC)
    except ValueError:
        return moment
    return f"{then.day} {_MONTHS[then.month - 1]} {then:%Y, %H:%M} UTC"


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)  # whatever the locale
