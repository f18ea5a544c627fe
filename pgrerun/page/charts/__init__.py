"""The recurring charts, and how a chart travels from a notebook into a page.

Every chart verb takes a tidy frame and returns a `Figure`: an Altair chart with the question it
answers, a caption, a text description and the columns of its table. A `Figure` draws itself without
a network in Jupyter Lab, papermill and the book: its HTML holds a picture (for whoever has no
JavaScript) and the Vega-Lite specification, which `book/_ext/charts.js` replaces by the
live chart, adding the table and the data download. Statistics are not made here: values
and intervals come in with the frame (see `statistics.py`).

Provenance has one mark everywhere, told apart by shape, fill and dash as well as
colour, so that it survives grey print and colour-blind eyes:

| kind               | mark                               | meaning                             |
|--------------------|------------------------------------|-------------------------------------|
| `printed`          | hollow diamond                     | a number printed in a document      |
| `published`        | grey dot                           | the run published with the book     |
| `measured`         | filled dot, its interval as a rule | the run that made this page         |
| `published-slowed` | grey triangle                      | the published run on a slowed disk  |
| `slowed`           | filled triangle, with its interval | the run that made this page, on one |
| `simulated`        | hollow dashed square               | a model's number                    |
| `gathered`         | filled square, with its interval   | the runs of many machines           |
"""

from pgrerun.page.charts.comparisons import compare, observations, stacked
from pgrerun.page.charts.figure import (
    MARKS,
    VEGALITE_MIME,
    VEGALITE_VERSION,
    VERDICTS,
    Axis,
    Figure,
    Reference,
    Words,
    svg,
)
from pgrerun.page.charts.flame_graph import flame
from pgrerun.page.charts.lives import lives
from pgrerun.page.charts.page_layout import heap_pages
from pgrerun.page.charts.plan_regions import plan_diagram
from pgrerun.page.charts.sweeps import lines, scatter

__all__ = [
    "Axis",
    "Figure",
    "MARKS",
    "Reference",
    "VEGALITE_MIME",
    "VEGALITE_VERSION",
    "VERDICTS",
    "Words",
    "compare",
    "flame",
    "heap_pages",
    "lines",
    "lives",
    "observations",
    "plan_diagram",
    "scatter",
    "stacked",
    "svg",
]
