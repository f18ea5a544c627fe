"""Sphinx extension: what a page says about itself where somebody links to it, and how to cite it.

Each page has a description, its first paragraph, and a picture in meta tags: that of its first
chart, or the scoreboard's. `source_address`, one setting in `_config.yml`, is where this book's
source can be had; with it every page's foot leads there. Without it, and without `html_baseurl`,
addresses stay relative. `{cite-this}` shows the entry for a bibliography, made of CITATION.cff.
"""

import html
import re
import urllib.parse
from functools import cache
from pathlib import Path

import vl_convert
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun.page import provenance
from pgrerun.page.charts.figure import SVG_DATA
from pgrerun.site import scoreboard
from pgrerun.site.book import ROOT

_LONGEST = 200  # characters of a description
_PICTURES = Path("_static/cards")
_CHART = re.compile(  # its source is quoted by ', since an SVG has "
    rf"class=\"vl-chart\".*?<img[^>]*src='{re.escape(SVG_DATA)}([^']*)'", re.DOTALL
)
_CITATION = ROOT / "CITATION.cff"


def setup(app):
    app.add_config_value("source_address", "", "html")
    app.add_directive("cite-this", CiteThis)
    app.connect("html-page-context", describe)
    app.connect("build-finished", draw)


@cache
def citation() -> dict:
    return yaml.safe_load(_CITATION.read_text("utf-8"))


def _foot(app) -> str:
    """When its runs were measured, version and licence, and where the source is."""
    known = citation()
    when = provenance.days(record.finished for record in app.env.run_records.values())
    foot = f"Measured {when}. " if when else ""
    foot += f"Version {known['version']}, licence {known['license']}."
    if address := html.escape(app.config.source_address):
        foot += f' Source of this book: <a href="{address}">{address}</a>'
    return f"<p>{foot}</p>"


class CiteThis(Directive):
    """The book as an entry of BibTeX, with the run that its pages show."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        known, address = citation(), env.config.source_address
        records = env.run_records.values()  # which `run_pages` has read
        authors = " and ".join(f"{{{one['name']}}}" for one in known["authors"])
        dates = sorted(record.finished[:10] for record in records)
        names = sorted({record.name for record in records})
        lines = {
            "author": authors,
            "title": known["title"].replace("PostgreSQL", "{PostgreSQL}"),
            "version": known["version"],
            "year": dates[-1][:4] if dates else "",
            "note": f"run {', '.join(names)}, finished {dates[-1]}" if dates else "",
            "url": address,
        }
        text = ",\n".join(f"  {name:<7} = {{{value}}}" for name, value in lines.items() if value)
        return [nodes.literal_block("", f"@misc{{postgresrerun,\n{text}\n}}", language="bibtex")]


def describe(app, pagename, templatename, context, doctree) -> None:
    if app.builder.name != "html":
        return  # nobody links to a page of an ePub, whose XHTML closes every tag
    context["theme_extra_footer"] = _foot(app)
    if pagename == app.config.root_doc:
        context["docstitle"] = ""  # else the tab says the book's name twice
    body = context.get("body") or ""
    paragraph = next(filter(_introduces, doctree.findall(nodes.paragraph)), None) if doctree else ""
    said = " ".join(paragraph.astext().split()) if paragraph else app.config.project
    if len(said) > _LONGEST:
        said = said[:_LONGEST].rpartition(" ")[0] + " …"
    picture = _PICTURES / f"{_first_chart(app, pagename, body) or 'index'}.png"
    up = "" if app.config.html_baseurl else "../" * pagename.count("/")
    tags = {
        "og:type": "article",
        "og:title": BeautifulSoup(context.get("title") or "", "html.parser").get_text(),
        "og:description": said,
        "og:image": f"{app.config.html_baseurl or up}{picture.as_posix()}",
    }
    found = [f'<meta name="description" content="{html.escape(said)}">']
    found += [f'<meta property="{k}" content="{html.escape(v)}">' for k, v in tags.items()]
    context["metatags"] = "\n".join([context.get("metatags") or "", *found])


def _introduces(paragraph: nodes.paragraph) -> bool:
    parent = paragraph.parent
    return isinstance(parent, nodes.section) or "lead" in parent.get("classes", [])


def _first_chart(app, pagename: str, body: str) -> str:
    """The page's own picture, drawn from its first chart: the picture's name, "" without one."""
    chart = _CHART.search(body)  # parsing a page of a megabyte takes a second
    if chart is None:
        return ""
    name = pagename.replace("/", "-")
    _write(app, name, urllib.parse.unquote(chart[1]))
    return name


def draw(app, exception) -> None:
    if not exception and app.builder.name == "html":
        _write(app, "index", scoreboard.picture(app.env.run_records))


def _write(app, name: str, svg: str) -> None:
    """The picture as a bitmap, which is all that forums and messengers show."""
    target = Path(app.outdir) / _PICTURES / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(vl_convert.svg_to_png(svg, scale=1.5))
