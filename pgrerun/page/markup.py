"""HTML from Jinja2 templates, which lie in `templates/`: a file of macros for each page.

What is put in is escaped, unless it is `Markup` already, as what a macro returns is.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["Markup", "macros", "source"]

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_TEMPLATES.filters["fixed"] = lambda number, digits=1: f"{number:.{digits}f}"
_TEMPLATES.filters["short"] = lambda number: f"{number:g}"


def macros(name: str) -> Any:
    """The macros of `templates/NAME.html` as a module's functions, which return `Markup`."""
    return _TEMPLATES.get_template(f"{name}.html").module


def source(name: str) -> str:
    """The text of a file beside the templates."""
    return Path(__file__).with_name("templates").joinpath(name).read_text("utf-8")
