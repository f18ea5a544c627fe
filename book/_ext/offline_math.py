"""Sphinx extension: mathematics as MathML, made at build time.

Browsers draw MathML themselves, so pages need neither MathJax nor its fonts nor a
network, and a screen reader gets the formula's structure. A formula that isn't
valid LaTeX is a warning, which stops a `-W` build.
"""

import html

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

logger = logging.getLogger(__name__)
converter = LatexToMathML()


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))


def visit_inline(translator, node) -> None:
    translator.body.append(to_mathml(node, displaystyle=False))
    raise nodes.SkipNode


def visit_display(translator, node) -> None:
    number = ""
    if node["number"]:
        number = f'<span class="eqno">({node["number"]})</span>'
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    math = to_mathml(node, displaystyle=True)
    translator.body.append(f'<div class="math-display"{anchor}>{math}{number}</div>\n')
    raise nodes.SkipNode


def to_mathml(node, *, displaystyle: bool) -> str:
    latex = node.astext()
    # Sphinx takes blank lines and alignment at the top level, as amsmath's `split`
    if displaystyle and ("\\\\" in latex or "&" in latex) and "\\begin{" not in latex:
        latex = f"\\begin{{aligned}}{latex}\\end{{aligned}}"
    try:
        return converter.convert_with_local_state(latex, displaystyle=displaystyle)
    except LatexError as error:
        logger.warning("a formula is not valid LaTeX: %s: %s", latex, error, location=node)
        return f'<code class="math-error">{html.escape(latex)}</code>'
