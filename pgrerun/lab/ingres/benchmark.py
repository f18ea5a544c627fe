"""The benchmark of the memorandum of 1981: its relations, its queries, and what a run of one costs.

A run is named by its query and the number of tuples: "c_210".
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

from pgrerun.lab.ingres.files import Cache, Disk, Extents, PageFile, UnixFile
from pgrerun.lab.ingres.pages import Domain, Layout
from pgrerun.lab.ingres.processor import THREADED, DataBase
from pgrerun.lab.ingres.qualification import Relation
from pgrerun.lab.ingres.relation import Hash, Heap, Isam
from pgrerun.lab.quel import figures, read, tree

NARROW = Layout(
    (
        Domain("pnum", "i", 2),
        Domain("pname", "c", 20),
        Domain("color", "c", 8),
        Domain("weight", "i", 2),
        Domain("qoh", "i", 2),
    )
)
WIDE = Layout((*NARROW.domains, Domain("filler", "c", 166)))
PAGES, ALONE, TRACKS = "UNIX, with its read-ahead", "UNIX, without read-ahead", "a track at a time"
_TRACKS_ON_DISK = 400
_TEXTS = {query.label: query.text for query in figures.queries("1981")}
WIDE_QUERIES = "efghi"
"""Those on the keyed relation, by their letters."""

Statements = tuple[tree.Statement, ...]


def texts() -> dict[str, str]:
    """The benchmark's queries by their letter, as printed, without their declarations."""
    return {
        label: " ".join(
            text.replace("range of p is PARTS", "").replace("range of q is PARTS", "").split()
        )
        for label, text in _TEXTS.items()
    }


class Benchmark:
    """The relations of section 1.5, in files of their own, or all on one disk in extents.

    folder: where the files are. narrow: the tuples of each heap by their number. loaded, inserted:
    those that the keyed relation is built from, and that come afterwards. files: `PAGES` or
    `ALONE` (of their own), or `TRACKS`. cache: pages kept, standing for UNIX's buffers. A context
    manager, which closes the files.
    """

    def __init__(
        self,
        folder: Path,
        narrow: Mapping[int, Iterable[Sequence[Any]]],
        loaded: Sequence[Sequence[Any]],
        inserted: Sequence[Sequence[Any]],
        files: str = PAGES,
        cache: int = 64,
    ):
        self._folder, self._loaded, self._inserted = folder, loaded, inserted
        self._numbers, self._files, self.cache = itertools.count(), files, Cache(cache)
        self._disk = Disk(folder / "disk", _TRACKS_ON_DISK) if files == TRACKS else None
        self.relations: dict[str, Relation] = {
            f"parts_{tuples}": Heap.build(self.file(), NARROW, rows)
            for tuples, rows in narrow.items()
        }
        self.relations["parts_wide"] = self._keyed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for relation in self.relations.values():
            relation.file.close()

    def file(self) -> PageFile:
        """An empty file for a relation."""
        if self._disk:
            return Extents(self._disk, self.cache)
        return UnixFile(
            self._folder / f"relation{next(self._numbers)}",
            self.cache,
            read_ahead=self._files == PAGES,
        )

    def _keyed(self, structure: type[Isam | Hash] = Isam, **how: Any) -> Isam | Hash:
        relation = structure.build(self.file(), WIDE, "pnum", self._loaded, **how)
        for row in self._inserted:
            relation.insert(row)
        return relation

    def hashed(self, filling: float) -> DataBase:
        """The same data base with PARTS hashed on pnum, its main pages filled to this part."""
        return DataBase(
            self.cache,
            self.file,
            THREADED,
            self.relations | {"parts_wide": self._keyed(Hash, filling=filling)},
        )

    def base(self, engine: str) -> DataBase:
        """INGRES with one of the engines on these relations."""
        return DataBase(self.cache, self.file, engine, dict(self.relations))

    def warm(self, base: DataBase, run: str) -> Statements:
        """The command of a run for `base.execute`, declared and executed once."""
        _, declarations, command = _parsed(run)
        base.execute(declarations)
        base.execute(command)
        return command

    def run(self, base: DataBase, run: str, warm: bool = True) -> dict[str, float]:
        """One run of the tables ("c_3360").

        Returns wall and cpu (seconds), reads, pages, and tuples (in the answer). Unless `warm`,
        neither the cache nor the operating system has any of the relation when it starts.
        """
        relation, declarations, command = _parsed(run)
        if not warm:
            self.cache.empty()
            if declarations:
                base.relations[relation].file.evict()
        self.cache.reads.clear()
        base.execute(declarations)
        with _timed() as spent:
            answer = base.execute(command)
        return spent | {
            "reads": self.cache.reads.requests,
            "pages": self.cache.reads.pages,
            "tuples": len(answer),
        }


@cache
def _parsed(run: str) -> tuple[str, Statements, Statements]:
    """A run's relation, declarations and command, parsed once: no tactic is about parsing."""
    query, size = run.split("_")
    relation = "parts_wide" if query in WIDE_QUERIES else f"parts_{size}"
    return (
        relation,
        read("" if query == "a" else f"range of p is {relation} range of q is {relation}"),
        read(texts()[query]),
    )


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    spent: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
