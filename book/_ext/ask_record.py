"""Sphinx extension: PostgreSQL in the page, with every row of the record that the site shows.

`{ask-the-record}` puts the editor in a page; each SQL block of that page gets a button that asks
it. The rows are files of this site (`pgrerun.site.ask`), read when the reader starts PostgreSQL.
Without PGlite (see `laboratories`), and on paper, the page says how to ask in a terminal.
"""

import html
import shutil
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun.site import ask

_FOLDER = "record"


def setup(app):
    app.add_directive("ask-the-record", AskTheRecord)
    app.connect("builder-inited", lay_out, priority=900)


def lay_out(app) -> None:
    """Write the rows of the records that `run_pages` has read before."""
    if app.builder.name != "html" or "missing" in app.laboratories:
        return
    place = Path(app.outdir).parent / ".record"
    shutil.rmtree(place, ignore_errors=True)
    ask.write(place / _FOLDER, app.teller)
    app.config.html_static_path.append(str(place))


class AskTheRecord(Directive):
    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        found = env.app.laboratories
        if env.app.builder.name != "html" or "missing" in found:
            why = found.get("missing", "on paper nothing runs.")
            words = f"PostgreSQL doesn't run in this page: {why} Ask in a terminal, as below."
            return [nodes.note("", nodes.paragraph("", words))]
        said = {
            "pglite": "_static/pglite/",
            "record": f"_static/{_FOLDER}/",
            "start": f"Start PostgreSQL {found['postgresql']} with every row of the record",
            "on-file": (
                "To start PostgreSQL in this page, serve the book: run python3 -m http.server in"
                " the folder that holds its front page, and open the address that it prints."
            ),
        }
        attributes = "".join(f' data-{key}="{html.escape(words)}"' for key, words in said.items())
        text = f'<div class="laboratory ask"{attributes}><p class="laboratory-start"></p></div>'
        return [nodes.raw("", text, format="html")]
