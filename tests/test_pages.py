"""Pages of records: notebooks that are executed without a kernel."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from pgrerun.errors import RerunError
from pgrerun.site.book import Page, make_pages
from pgrerun.site.execution import ChapterFailed


def page(folder, *cells, name="toy"):
    """The page of a notebook that sets `pairs` to 7 and then has these cells; it is given 9."""
    parameters = new_code_cell("pairs = 7", metadata={"tags": ["parameters"]})
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python"}}
    source = folder / f"{name}.ipynb"
    nbformat.write(
        new_notebook(cells=[parameters, *map(new_code_cell, cells)], metadata=kernel), source
    )
    return Page(name, str(source), str(folder), str(folder / f"{name}-made.ipynb"), {"pairs": 9})


def outputs(page):
    """Of the last cell: kind, and what it says."""
    shown = nbformat.read(page.kept, as_version=4).cells[-1].outputs
    return [
        (one.output_type, one.text if "text" in one else one.data["text/plain"]) for one in shown
    ]


def test_outputs_stand_in_the_order_in_which_they_came(tmp_path):
    made = page(
        tmp_path,
        "from IPython.display import Markdown, display",
        "print('first')\nprint('second')\ndisplay(pairs)\nprint('third')\npairs + 1",
    )
    assert list(make_pages([made])) == ["toy"]
    assert outputs(made) == [
        ("stream", "first\nsecond\n"),
        ("display_data", "9"),
        ("stream", "third\n"),
        ("execute_result", "10"),
    ]


def test_a_notebook_finds_its_record_and_runs_in_its_own_folder(tmp_path):
    made = page(
        tmp_path, f"import os\nos.environ['PGRERUN_RECORD'] == os.getcwd() == {str(tmp_path)!r}"
    )
    list(make_pages([made]))
    assert outputs(made) == [("execute_result", "True")]


@pytest.mark.parametrize(
    ("cell", "kind", "said"),
    [
        ("1 / 0", ChapterFailed, r"failed in cell \[3\] with ZeroDivisionError"),
        ("1 +", ChapterFailed, "SyntaxError"),
        (
            "from pgrerun.errors import RecordError\nraise RecordError('mend it')",
            RerunError,
            "mend it",
        ),
        ("import os\nos._exit(3)", RerunError, "ended with 3"),
    ],
)
def test_what_a_notebook_raises_is_told_once_the_others_are_made(tmp_path, cell, kind, said):
    bad, good = page(tmp_path, cell, name="bad"), page(tmp_path, "pairs", name="good")
    made = make_pages([bad, good])
    assert next(made) == "good"
    with pytest.raises(kind, match=said):
        next(made)
    assert outputs(good) == [("execute_result", "9")]
