"""A chapter that is executed in no time: known frames, every chart verb, mathematics.

Stands in for the measured chapters, so that what is tested here is the site alone.
"""

import shutil
from dataclasses import replace

import nbformat
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from pgrerun.page import charts, shown, tables
from pgrerun.record import claims, runs, statistics, verdicts

RUNGS = [
    "sixteen pages, one backend",
    "two backends",
    "forty-eight pages",
    "append, no search for free space",
]
PAGES = [
    "accounts: heap",
    "accounts: index leaf",
    "accounts: index inner",
    "branches: heap",
    "tellers: heap",
    "history: heap",
    "catalogs",
    "visibility map",
    "write-ahead log",
]


def figures() -> list[charts.Figure]:
    return [_ladder(), _pages(), _repetitions(), _sweep(), _series()]


def _ladder() -> charts.Figure:
    kinds = {"printed": 1, "simulated": 1.06, "published": 0.93, "measured": 1.04}
    rows = [
        {"label": rung, "kind": kind, "value": value}
        | ({} if kind in ("printed", "simulated") else {"low": value * 0.95, "high": value * 1.06})
        for rung, printed in zip(RUNGS, (1, 0.7, 0.9, 1.25), strict=True)
        for kind, ratio in kinds.items()
        for value in [printed * ratio]
    ]
    return charts.compare(
        pd.DataFrame(rows),
        charts.Words(
            question="Does every step of the ladder still change throughput as it did?",
            caption="Throughput relative to the first step. A rule is the interval of the median"
            " ratio within blocks.",
            description="Four rungs, one row each, with a printed, a published, a measured and a"
            " simulated ratio per row.",
        ),
        charts.Axis("throughput relative to the first step"),
        reference=charts.Reference(1, "step one"),
    )


def _pages() -> charts.Figure:
    rows = [
        {"panel": operation, "label": label, "kind": kind, "part": page, "value": value}
        for shift, operation in enumerate(("read", "written"))
        for i, page in enumerate(PAGES)
        for label, kind, value in (
            *([("the report's bound", "printed", 1)] if i < 6 else []),
            ("PostgreSQL", "measured", (i + shift) % 4 / 3 + 0.1),
            ("a model of the disk", "simulated", i % 3 / 2 + 0.1),
        )
    ]
    return charts.stacked(
        pd.DataFrame(rows),
        charts.Words(
            question="Which pages does a transaction read and write?",
            caption="I/O operations per transaction by kind of page.",
            description="Two panels, read and written, each with three stacked bars and a rule at"
            " the least possible.",
        ),
        charts.Axis("I/O operations per transaction"),
        reference=charts.Reference(6, "least possible"),
    )


def _repetitions() -> charts.Figure:
    rows = [
        {
            "label": variant,
            "kind": "measured",
            "block": block,
            "value": level * (1 + (block * 7 % 11 - 5) / 60),
        }
        for variant, level in (("flush at commit", 410), ("stable main memory", 560))
        for block in range(9)
    ]
    return charts.observations(
        pd.DataFrame(rows),
        charts.Words(
            question="How far do repetitions lie apart?",
            caption="Each tick is one block; the dot is the median and the rule its interval.",
            description="Two variants, nine ticks each, with median and interval.",
        ),
        charts.Axis("throughput", "transactions/s"),
    )


def _throughput(series: str = "", level: float = 100) -> list[dict]:
    return [
        {"series": series, "x": clients, "kind": kind, "value": value}
        | ({"low": value * 0.94, "high": value * 1.06} if kind == "measured" else {})
        for clients in (1, 2, 4, 8, 16, 32)
        for kind, factor in (("printed", 1.0), ("measured", 1.2), ("simulated", 0.85))
        for value in [factor * level * clients / (1 + 0.04 * (clients - 1))]
    ]


def _sweep() -> charts.Figure:
    return charts.lines(
        pd.DataFrame(_throughput()),
        charts.Words(
            question="Does throughput grow with the number of clients?",
            caption="Throughput against clients; the band is the interval of the median.",
            name="sweep",
            description="Three rising lines that flatten: printed, this run, simulated.",
        ),
        charts.Axis("clients", log=True),
        charts.Axis("throughput", "transactions/s"),
    )


def _series() -> charts.Figure:
    return charts.lines(
        pd.DataFrame(_throughput("read only") + _throughput("read and write", 40)),
        charts.Words(
            question="Is it the same with writes?",
            caption='A label that tries to end its script: "</script><b>".',
            description="Two bundles of three lines, reading above writing.",
        ),
        charts.Axis("clients", log=True),
        charts.Axis("throughput", "transactions/s", zero=True),
    )


def chapter() -> nbformat.NotebookNode:
    """An executed notebook as papermill leaves it, charts and all."""
    cells = [
        new_markdown_cell(
            "# A toy chapter\n\nWhat the document claims stands in {cite}`postgres1990`, section"
            " 3.2.2.\nThe least number of pages is a {term}`page` for each relation."
        ),
        _code("parameters = {'profile': 'ci'}", [], tags=["parameters"]),
        _code("parameter_table()", [_table()], tags=["remove-input"]),
        _code("long_table()", [_table({"n": range(13)}, "Thirteen rows")]),
        new_markdown_cell(
            "## Apparatus\n\nWith service demand $D_{\\max}$ and $n$ clients, throughput is"
            " bounded:\n\n$$\nX(n) \\le \\min\\left(\\frac{n}{D + Z},"
            " \\frac{1}{D_{\\max}}\\right)\n$$\n\n```{math}\n:label: usl\nX(n) = \\frac{\\lambda"
            " n}{1 + \\sigma (n - 1) + \\kappa n (n - 1)}\n```\n\nwhich {eq}`usl` refines."
        ),
        _code(
            "relations.load(server)",
            [new_output("stream", name="stdout", text="accounts  10000 tuples\n")],
        ),
    ]
    for i, figure in enumerate(figures()):
        cells.append(new_markdown_cell(f"## {figure.question}\n\nThe chart answers it."))
        data = figure._repr_mimebundle_()
        output = new_output(
            "execute_result" if i else "display_data",
            data=data,
            **({"execution_count": 1} if i else {}),
        )
        cells.append(
            _code(f"experiment.chart({i})", [output], tags=["chart", "nbval-ignore-output"])
        )
    papermill = {"exception": None, "parameters": {}, "duration": 1.0}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return new_notebook(
        cells=cells,
        metadata={"kernelspec": kernel, "language_info": language, "papermill": papermill},
    )


TP1 = [claim for claim in claims.ledger().values() if claim.chapter == "tp1" and claim.scored]
EFFECT = next(c for c in TP1 if c.predicate in claims.WITH_MARGIN and not set(c.sizes) - {""})
SET_ASIDE = next(claim for claim in TP1 if claim is not EFFECT)


def judged() -> list[verdicts.Judgement]:
    """Verdicts of a few claims of the toy that stands in for TP1."""
    facts = next(c for c in TP1 if c.predicate is claims.Predicate.FACTS and c is not SET_ASIDE)
    found = {"a committed change survives": True, "an open one <does>": False}
    effect = verdicts.judge(EFFECT, statistics.Interval(1.4, 1.3, 1.6, 7))
    reached = {name: statistics.exact(0.9) for name in EFFECT.regimes}
    return [
        replace(effect, regime=reached),
        verdicts.judge(facts, found),
        verdicts.set_aside(SET_ASIDE, "two processors", "there is only one"),
    ]


def verdict_cells() -> list[nbformat.NotebookNode]:
    """Cells that show them, and the chapter's end."""
    lines = "".join(shown.Verdict(one, "rows.found / rows.printed", "").html() for one in judged())
    verdicts_ = new_output("display_data", data={"text/html": lines})
    return [
        new_markdown_cell("## Verdicts\n\n<!-- supporting -->\n\nOnly who doubts reads on."),
        _code("chapter.verdicts(...)", [verdicts_]),
        _code("beside()", [_table()]),
        new_markdown_cell("## Since\n\nOften.\n\n<!-- supporting: Release by release -->\n\nNow."),
        new_markdown_cell("## Provenance"),
    ]


def record(folder) -> None:
    """The run record beside the toy that stands in for TP1."""
    environment = {
        "parameters": {"profile": "ci"},
        "server": {"name": "the wheel", "version": "18.6"},
        "commit": "",
        "machine": {
            "cpu_model": "A CPU",
            "cpus": 2,
            "memory_bytes": 2**33,
            "distribution": "Debian",
        },
    }
    with runs.Run.open("toy", "tp1", key="k", environment=environment) as run:
        for one in judged():
            run.add_verdict(one.as_dict())
    shutil.copytree(runs.root() / "toy" / "tp1", folder)


def _code(source: str, outputs: list, tags: tuple | list = ()) -> nbformat.NotebookNode:
    metadata = {"tags": list(tags), "papermill": {"status": "completed", "exception": False}}
    return new_code_cell(source, outputs=outputs, execution_count=1, metadata=metadata)


PARAMETERS = {"parameter": ["profile", "clients"], "value": ["ci", "2"]}
PARAMETERS["meaning"] = ["scale of all experiments", "backends"]


def _table(columns=PARAMETERS, caption="Parameters") -> nbformat.NotebookNode:
    shown_ = tables.Table(pd.DataFrame(columns), caption)._repr_html_()
    return new_output("display_data", data={"text/html": shown_, "text/plain": caption})
