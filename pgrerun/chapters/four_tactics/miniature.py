"""The benchmark of 1981 on the miniature of INGRES: its relations, its queries, and what one run of a query costs."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pandas as pd

from pgrerun import published, tables
from pgrerun.ingres import ENGINES, THREADED, Cache, DataBase, Disk, Domain, Extents, Hash, Heap, Isam, Layout, UnixFile
from pgrerun.quel import figures, read, tree
from pgrerun.relations import Parts
from pgrerun.server.private import PrivateDirectory, base_directory

NARROW = Layout((Domain("pnum", "i", 2), Domain("pname", "c", 20), Domain("color", "c", 8), Domain("weight", "i", 2), Domain("qoh", "i", 2)))
WIDE = Layout((*NARROW.domains, Domain("filler", "c", 166)))
RUNS = tuple(published.table("four_tactics_compiled_wall").index)
"""The runs of the tables: query and number of tuples, as "c_210"."""

PAGES, ALONE, TRACKS = "UNIX, with its read-ahead", "UNIX, without read-ahead", "a track at a time"
_TRACKS_ON_DISK = 400
_TEXTS = {query.label: query.text for query in figures.queries("1981")}
_WIDE_QUERIES = "efghi"


def texts() -> dict[str, str]:
    """The benchmark's queries by their letter, as printed, without their declarations."""
    return {label: " ".join(text.replace("range of p is PARTS", "").replace("range of q is PARTS", "").split()) for label, text in _TEXTS.items()}


class Miniature:
    """The relations of section 1.5, each in a file of its own (`PAGES`, `ALONE`), or all on one disk in extents (`TRACKS`).

    cache: pages kept, standing for UNIX's buffers. A context manager: the files are gone afterwards.
    """

    def __init__(self, files: str = PAGES, cache: int = 64):
        self._directory = PrivateDirectory(base_directory())
        self._numbers, self._files, self.cache = itertools.count(), files, Cache(cache)
        self._disk = Disk(self._directory.path / "disk", _TRACKS_ON_DISK) if files == TRACKS else None
        self.relations = {f"parts_{size}": Heap.build(self.file(), NARROW, Parts(size).rows()) for size in (1, 210, 3360)}
        self.relations["parts_wide"] = self._keyed()

    def __enter__(self) -> "Miniature":
        return self

    def __exit__(self, *exception: object) -> None:
        for relation in self.relations.values():
            relation.file.close()
        self._directory.close()

    def file(self):
        """An empty file for a relation."""
        if self._disk:
            return Extents(self._disk, self.cache)
        return UnixFile(self._directory.path / f"relation{next(self._numbers)}", self.cache, read_ahead=self._files == PAGES)

    def _keyed(self, structure: type[Isam | Hash] = Isam, **how) -> Isam | Hash:
        parts = Parts(wide=True)
        rows = list(parts.rows())
        relation = structure.build(self.file(), WIDE, "pnum", rows[: parts.loaded], **how)
        for row in rows[parts.loaded :]:
            relation.insert(row)
        return relation

    def hashed(self, filling: float) -> DataBase:
        """The same data base with PARTS hashed on pnum, its main pages filled to this part."""
        return DataBase(self.cache, self.file, THREADED, self.relations | {"parts_wide": self._keyed(Hash, filling=filling)})

    def base(self, engine: str) -> DataBase:
        """INGRES with one of the engines on these relations."""
        return DataBase(self.cache, self.file, engine, dict(self.relations))

    def run(self, base: DataBase, run: str, warm: bool = True) -> dict[str, float]:
        """One run of the tables ("c_3360"): seconds of wall clock and CPU, reads, pages, tuples in the answer.

        Unless `warm`, neither the cache nor the operating system has any of the relation when it starts.
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
        return spent | {"reads": self.cache.reads.requests, "pages": self.cache.reads.pages, "tuples": len(answer)}


@cache
def _parsed(run: str) -> tuple[str, list[tree.Statement], list[tree.Statement]]:
    """A run's relation, declarations and command, parsed once: the tactics have nothing to do with parsing."""
    query, size = run.split("_")
    relation = "parts_wide" if query in _WIDE_QUERIES else f"parts_{size}"
    return relation, read("" if query == "a" else f"range of p is {relation} range of q is {relation}"), read(texts()[query])


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    spent: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def layout() -> pd.DataFrame:
    """Pages and tuples as printed, as 1024-byte pages determine them, and as the miniature has them: what, printed, computed, built."""
    derived = published.derived("four_tactics_relations")
    with Miniature() as mini:
        keyed = mini.relations["parts_wide"]
        built = {
            "small_pages": mini.relations["parts_210"].pages, "pages": mini.relations["parts_3360"].pages,
            "main_tuples": keyed.layout.per_page, "main_pages": keyed.main, "overflow_pages": keyed.overflow,
        }  # fmt: skip
    names = {
        "small_pages": "pages of 210 tuples of 34 bytes", "pages": "pages of 3360 tuples of 34 bytes", "main_tuples": "tuples of 200 bytes on a page",
        "main_pages": "main pages of the keyed relation", "overflow_pages": "its overflow pages",
    }  # fmt: skip
    rows = [(names[key], int(derived.value[key]), derived.layout[key], count) for key, count in built.items()]
    return pd.DataFrame(rows, columns=["what", "printed", "computed", "built"]).astype({"computed": "Int64"})


def reads() -> pd.DataFrame:
    """Pages touched and read from an empty cache by each query, beside Table 8: run, touched, read, printed, beyond (print less the catalogs').

    The catalogs that INGRES read with every command are what its shortest command with a relation reads beyond its one page.
    """
    printed = published.table("four_tactics_access").reads
    catalogs = printed["bcd_1"] - 1
    rows = []
    with Miniature() as mini:
        base = mini.base(ENGINES[0])
        for run in ("b_1", "b_210", "b_3360", "e_3360", "f_3360", "g_3360", "h_3360", "i_3360"):
            done = mini.run(base, run, warm=False)
            key = run if run in printed else f"bcd_{run[2:]}"
            rows.append((run, mini.cache.reads.touched, done["reads"], int(printed[key]), int(printed[key] - catalogs)))
    return pd.DataFrame(rows, columns=["run", "touched", "read", "printed", "printed, less catalogs"])


STRUCTURES = {"ISAM": None, "hash": 1.0, "hash, pages half full": 0.5}


def structures() -> pd.DataFrame:
    """Pages read from an empty cache by each query with a key, by the structure of PARTS: query, and a column for each. Exact."""
    with Miniature() as mini:
        bases = {name: mini.base(THREADED) if filling is None else mini.hashed(filling) for name, filling in STRUCTURES.items()}
        return pd.DataFrame([{"query": query} | {name: mini.run(base, f"{query}_3360", warm=False)["reads"] for name, base in bases.items()} for query in _WIDE_QUERIES])


def structure_facts(found: pd.DataFrame, margin: float = 0.25) -> dict[str, bool]:
    """Whether each query reads about as many pages of a hashed relation as of an indexed sequential one: a quarter more or less."""
    return {f"query {row.query} reads about as much": bool(1 / (1 + margin) <= row.hash / row.ISAM <= 1 + margin) for row in found.itertuples()}


def described_queries() -> tables.Table:
    """The nine queries, and what each of them tests."""
    purpose = {
        "a": "a command without a relation", "b": "a scan without a qualification", "c": "three comparisons", "d": "arithmetic and a logarithm of a constant",
        "e": "a range of the key", "f": "a join on the key", "g": "the same, of few tuples", "h": "a join of a range", "i": "a join with a qualification on both sides",
    }  # fmt: skip
    rows = [(label, f"`{text}`", purpose[label]) for label, text in texts().items()]
    return tables.table(pd.DataFrame(rows, columns=["query", "QUEL", "what it is for"]), "The benchmark's queries")
