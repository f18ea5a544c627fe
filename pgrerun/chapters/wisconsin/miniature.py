"""University INGRES takes its seat: the miniature of 1981 runs the 32 queries, at a size that suits an engine written in Python.

Its seconds are Python's and stand beside no other system's. What counts is the pages that its
structures imply, and how much faster it is compiled than interpreted.
"""

import itertools
from collections.abc import Iterator

from pgrerun.chapters.wisconsin.contenders import population
from pgrerun.chapters.wisconsin.queries import RESULT, ROLES, STATES, Variant, relation
from pgrerun.ingres import Cache, DataBase, Domain, Heap, Isam, Layout, UnixFile
from pgrerun.instruments import clock
from pgrerun.quel import tree
from pgrerun.server.private import PrivateDirectory, base_directory

INTERPRETED, COMPILED = "INGRES in miniature", "INGRES in miniature, compiled"
_KEY = "unique2"  # the clustered attribute is the key of an ISAM relation


class Miniature:
    """The miniature with one of its engines, on files of its own, behind a cache of so many pages."""

    def __init__(self, name: str, engine: str, cache: int = 64):
        self.name, self._engine, self.cache = name, engine, Cache(cache)

    def __enter__(self) -> "Miniature":
        self._directory, self._numbers = PrivateDirectory(base_directory()), itertools.count()
        self.base = DataBase(self.cache, self._file, self._engine)
        self._rows: list[tuple] = []
        return self

    def __exit__(self, *exception: object) -> None:
        for stored in self.base.relations.values():
            stored.close()
        self._directory.close()

    def _file(self) -> UnixFile:
        return UnixFile(self._directory.path / f"relation{next(self._numbers)}", self.cache)

    def load(self, n: int) -> None:
        """Heaps where nothing is indexed; with a clustered index, ISAM on its attribute; other indices are secondary ones."""
        for state, indexed in STATES.items():
            for role in ROLES:
                layout, rows = _tuples(role, n)
                stored = Isam.build(self._file(), layout, _KEY, rows) if _KEY in indexed else Heap.build(self._file(), layout, rows)
                for attribute in indexed:
                    if attribute != _KEY:
                        stored.index(self._file(), attribute)
                self.base.relations[relation(role, state)] = stored

    def run(self, variant: Variant) -> float:
        """Run a query that was parsed before, with what comes before it; seconds of the query alone."""
        self.base.run(variant.before)
        statement = variant.statement
        with clock.stopwatch() as watch:
            self._rows = self.base.execute([statement])
        return watch.seconds

    def answer(self, variant: Variant) -> tuple[int, int]:
        """Its own tuples, counted and summed up in memory."""
        counted, (names, tuples) = variant.answer, self._left(variant)
        if counted.among:
            keys = [names.index(name) for name in ("unique1", "unique2")]
            tuples = [one for one in tuples if any(one[key] in counted.among for key in keys)]
        attribute = lambda name: [one[names.index(name)] for one in tuples]
        return counted.checksum(attribute)

    def _left(self, variant: Variant) -> tuple[list[str], list[tuple]]:
        """What a query left or showed: the attributes' names, and all tuples."""
        match variant.statement:
            case tree.Retrieve(into="", targets=(tree.All(of),)):
                return _names(self.base.relations[of]), self._rows
            case tree.Retrieve(into=name) | tree.Append(relation=name) | tree.Replace(variable=name) | tree.Delete(variable=name):
                stored = self.base.relations[name]
                return _names(stored), list(stored.rows())
        raise NotImplementedError(f"No query of the benchmark is a {type(variant.statement).__name__}.")

    def tidy(self, variant: Variant) -> None:
        if getattr(variant.statement, "into", ""):
            self.base.run(f"destroy {RESULT}")
        self.base.run(variant.after)

    def pages(self, variant: Variant) -> tuple[int, int]:
        """Pages that a query touches, and that it reads from an empty cache."""
        self.base.run(variant.before)
        statement = variant.statement
        self.cache.empty()
        self.base.execute([statement])
        found = self.cache.reads.touched, self.cache.reads.requests
        self.tidy(variant)
        return found


def _tuples(role: str, n: int) -> tuple[Layout, Iterator[tuple]]:
    """The tuples of a relation and their layout: the specification's 13 integers and three strings."""
    source = population("tenk2" if role == "bprime" else role, n)
    layout = Layout((*(Domain(name, "i", 4) for name in source.integers), *(Domain(name, "c", 52) for name in source.texts)))
    columns = source.columns(0, n // 10 if role == "bprime" else None)
    decoded = ([value.decode() for value in column.tolist()] if name in source.texts else column.tolist() for name, column in columns.items())
    return layout, zip(*decoded)


def _names(stored: Heap | Isam) -> list[str]:
    return [domain.name for domain in stored.layout.domains]
