"""The report's queries beside what is run here."""

import re
from collections.abc import Iterator

from pgrerun.chapters.optimizer.queries import LARGE_TUPLES, scan, steps
from pgrerun.lab.quel import figures
from pgrerun.lab.testbed import Row, Testbed, experiment


@experiment(units={"postquel": "text", "sql": "text"})
def commands(bed: Testbed) -> Iterator[Row]:
    """The report's queries as printed, and what is run here, the lists of attributes cut short."""
    first = figures.printed("2.4").splitlines()[0]
    listed = [("set 1", first, scan("tenk1", LARGE_TUPLES, steps()[0]))]
    for number, figure in ((2, "2.5"), (3, "2.6")):
        for query in figures.queries(figure):
            if number == 3 or not query.indexed:
                name = f"set {number}, query {query.label}"
                listed.append((name, *figures.translated(query.text)[0]))
    for name, text, sql in listed:
        yield {"query": name, "postquel": _shortened(text), "sql": _shortened(sql)}


def _shortened(text: str) -> str:
    return re.sub(r", (two1 = |onek1.two AS ).*(string4\)|AS st42)", ", …", text)
