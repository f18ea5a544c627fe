"""Sphinx extension: the builder `print`, which makes the ePub, and the place where the site offers
what was printed.

An ePub like Sphinx's own, of pages without scripts: charts as pictures in files, folded parts
unfolded, one style sheet for paper and for readers. `pgrerun.site.printing` cleans the pages and
makes the PDF from the ePub.
"""

import shutil
from importlib.metadata import metadata
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.builders.epub3 import Epub3Builder

from pgrerun.site import printing

STYLE = "_static/print.css"
DRAWINGS = Path(__file__).parents[2] / "_static" / "laboratory_drawings.css"
STAMP = "printed.txt"  # in the printed book's folder: what it was made from
NAME = "postgres-rerun"
WORDS = {".pdf": "as a PDF", ".epub": "as an ePub"}


class Printed(Epub3Builder):
    """The ePub: each page as `printing.readable` leaves it, and nothing of a theme."""

    name = "print"
    epilog = "The ePub is in %(outdir)s."

    def copy_static_files(self) -> None:
        place = Path(self.outdir) / STYLE
        place.parent.mkdir(exist_ok=True)
        styles = (DRAWINGS, Path(__file__).parent / "print.css")
        place.write_text("\n".join(style.read_text("utf-8") for style in styles), "utf-8")

    def toc_metadata(self, level, navpoints) -> dict:
        # Sphinx gives the name of the package's identifier instead of the identifier.
        return super().toc_metadata(level, navpoints) | {"uid": self.config.epub_identifier}

    def build_content(self) -> None:
        """The package, which must also say which pages hold formulas or drawings."""
        super().build_content()
        package = Path(self.outdir) / "content.opf"
        text = package.read_text(encoding="utf-8")
        for file in self.files:
            page = (
                (Path(self.outdir) / file).read_text(encoding="utf-8")
                if file.endswith(self.out_suffix)
                else ""
            )
            kinds = " ".join(
                kind for kind, tag in (("mathml", "<math "), ("svg", "<svg ")) if tag in page
            )
            if kinds:
                text = text.replace(
                    f'href="{file}" media-type', f'href="{file}" properties="{kinds}" media-type'
                )
        package.write_text(text, encoding="utf-8")


class Offered(Directive):
    """`{printed}`: links to the PDF and the ePub, if they were made from the same chapters as this
    site.
    """

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()  # what was printed isn't in the page's source
        links = [
            f'<a href="{file.name}" download>{WORDS[file.suffix]}</a>' for file in offered(env.app)
        ]
        text = (
            f'<p class="printed">To read it elsewhere: the whole book {" or ".join(links)}.</p>'
            if links
            else ""
        )
        return [nodes.raw("", text, format="html")]


def setup(app):
    app.add_builder(Printed)
    app.add_directive("printed", Offered)
    app.connect("config-inited", describe)
    # after everything that changes pages or adds scripts
    app.connect("html-page-context", clean, priority=950)
    app.connect("build-finished", finish)


def describe(app, config) -> None:
    """What the ePub says about itself comes from where the package says it."""
    ours = metadata("pgrerun")
    config.project, config.version = config.html_title, ours["Version"]
    config.epub_title, config.epub_description, config.epub_copyright = (
        config.html_title,
        ours["Summary"],
        f"{ours['License-Expression']} licence",
    )
    config.epub_basename = NAME


def clean(app, pagename, templatename, context, doctree) -> None:
    if app.builder.name == Printed.name:
        context["script_files"], context["css_files"] = [], [STYLE]
        if "body" in context:
            context["body"] = printing.readable(
                context["body"], f"{pagename}.xhtml", Path(app.outdir)
            )


def offered(app) -> list[Path]:
    """The PDF and the ePub in the build's folder; none when they show other chapters than this
    build.
    """
    folder = Path(app.outdir).parent / Printed.name
    stamp = folder / STAMP
    if (
        app.builder.name == Printed.name
        or not stamp.is_file()
        or stamp.read_text("utf-8") != printing.fingerprint(Path(app.srcdir))
    ):
        return []
    return [file for file in (folder / f"{NAME}{suffix}" for suffix in WORDS) if file.is_file()]


def finish(app, exception) -> None:
    if exception:
        return
    if app.builder.name == Printed.name:
        (Path(app.outdir) / STAMP).write_text(printing.fingerprint(Path(app.srcdir)), "utf-8")
    for file in offered(app):
        shutil.copy(file, app.outdir)
