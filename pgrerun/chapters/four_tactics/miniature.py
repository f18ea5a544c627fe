"""The benchmark of 1981 on the miniature of INGRES, beside the print: pages built and read."""

import pandas as pd

from pgrerun.lab.ingres import INTERPRETER, THREADED
from pgrerun.lab.ingres.benchmark import PAGES, WIDE_QUERIES, Benchmark, texts
from pgrerun.lab.relations import Parts
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.page import narrate, tables
from pgrerun.record import printed

# the runs of the tables: query and number of tuples, as "c_210"
RUNS = tuple(printed.table("four_tactics_compiled_wall").index)
BRIEF = ("a_0", "b_1", "c_1", "d_1")
LONG = tuple(run for run in RUNS if run.endswith("_3360"))


def in_words(run: str) -> str:
    """ "c_210" as a reader says it."""
    query, size = run.split("_")
    return query if size == "0" else f"{query}, {narrate.count(int(size), 'tuple')}"


def named(found: pd.DataFrame) -> pd.DataFrame:
    """A table by runs with their names in words, as the charts have them."""
    return found.assign(run=found["run"].map(in_words))


class Miniature(Benchmark):
    """The benchmark on the data of `Parts`, in a folder that is gone afterwards."""

    def __init__(self, files: str = PAGES):
        self._directory = PrivateDirectory(base_directory())
        narrow = {tuples: Parts(tuples).rows() for tuples in (1, 210, 3360)}
        wide = Parts(wide=True)
        rows = list(wide.rows())
        loaded, inserted = rows[: wide.loaded], rows[wide.loaded :]
        super().__init__(self._directory.path, narrow, loaded, inserted, files)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._directory.close()


_BUILT = {
    "small_pages": "pages of 210 tuples of 34 bytes",
    "pages": "pages of 3,360 tuples of 34 bytes",
    "main_tuples": "tuples of 200 bytes on a page",
    "main_pages": "main pages of the keyed relation",
    "overflow_pages": "its overflow pages",
}


def layout() -> pd.DataFrame:
    """Pages and tuples as printed, as 1024-byte pages determine them, and as they are built.

    Columns: what, printed, computed, built.
    """
    derived = printed.derived("four_tactics_relations").loc[list(_BUILT)]
    with Miniature() as mini:
        keyed = mini.relations["parts_wide"]
        built = [
            mini.relations["parts_210"].pages,
            mini.relations["parts_3360"].pages,
            keyed.layout.per_page,
            keyed.main,
            keyed.overflow,
        ]
    return pd.DataFrame(
        {
            "what": list(_BUILT.values()),
            "printed": derived.value.astype(int).to_list(),
            "computed": derived.layout.astype("Int64").to_list(),
            "built": built,
        }
    ).astype({"computed": "Int64"})


def reads() -> pd.DataFrame:
    """Pages touched and read from an empty cache by each query, beside Table 8.

    Columns: run, touched, read, printed, printed, less catalogs. The catalogs that INGRES read
    with every command are what its shortest command with a relation reads beyond its one page.
    """
    in_print = printed.table("four_tactics_access").reads.astype(int)
    catalogs = in_print["bcd_1"] - 1
    rows = []
    with Miniature() as mini:
        base = mini.base(INTERPRETER)
        for run in ("b_1", "b_210", "b_3360", "e_3360", "f_3360", "g_3360", "h_3360", "i_3360"):
            done = mini.run(base, run, warm=False)
            then = in_print[run if run in in_print else f"bcd_{run[2:]}"]
            rows.append((run, mini.cache.reads.touched, done["reads"], then, then - catalogs))
    columns = ["run", "touched", "read", "printed", "printed, less catalogs"]
    return pd.DataFrame(rows, columns=columns)


def structures() -> pd.DataFrame:
    """Pages read from an empty cache by each query with a key, by the structure of PARTS. Exact.

    Columns: query, ISAM, hash, hash, pages half full.
    """
    with Miniature() as mini:
        bases = {
            "ISAM": mini.base(THREADED),
            "hash": mini.hashed(1.0),
            "hash, pages half full": mini.hashed(0.5),
        }
        rows = []
        for query in WIDE_QUERIES:
            reads = {
                name: mini.run(base, f"{query}_3360", warm=False)["reads"]
                for name, base in bases.items()
            }
            rows.append({"query": query} | reads)
    return pd.DataFrame(rows)


def described_queries() -> tables.Table:
    """The nine queries, and what each of them tests."""
    purposes = {
        "a": "a command without a relation",
        "b": "a scan without a qualification",
        "c": "three comparisons",
        "d": "arithmetic and a logarithm of a constant",
        "e": "a range of the key",
        "f": "a join on the key",
        "g": "the same, of few tuples",
        "h": "a join of a range",
        "i": "a join with a qualification on both sides",
    }
    rows = [(label, f"`{text}`", purposes[label]) for label, text in texts().items()]
    frame = pd.DataFrame(rows, columns=["query", "QUEL", "what it is for"])
    return tables.table(frame, "The benchmark's queries")
