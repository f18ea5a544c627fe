"""Sphinx extension: what a page says about itself where somebody links to it, and its source.

Each page has a description, its first paragraph, and a picture, the scoreboard's, in meta tags.
`source_address`, one setting in `_config.yml`, is where this book's source can be had; with it
every page's foot leads there. Without it, and without `html_baseurl`, addresses stay relative.
"""

import html
from pathlib import Path

from bs4 import BeautifulSoup

from pgrerun.site import scoreboard

_LONGEST = 200  # characters of a description
_PICTURE = "_static/preview.svg"


def setup(app):
    app.add_config_value("source_address", "", "html")
    app.connect("config-inited", lead_to_source)
    app.connect("html-page-context", describe)
    app.connect("build-finished", draw)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def lead_to_source(app, config) -> None:
    if address := html.escape(config.source_address):
        foot = f'<p>Source of this book: <a href="{address}">{address}</a></p>'
        config.html_theme_options = {**config.html_theme_options, "extra_footer": foot}


def describe(app, pagename, templatename, context, doctree) -> None:
    if app.builder.name != "html":
        return  # nobody links to a page of an ePub, whose XHTML closes every tag
    paragraphs = BeautifulSoup(context.get("body") or "", "html.parser").select("section > p")
    said = " ".join(paragraphs[0].get_text().split()) if paragraphs else app.config.project
    if len(said) > _LONGEST:
        said = said[:_LONGEST].rpartition(" ")[0] + " …"
    up = "" if app.config.html_baseurl else "../" * pagename.count("/")
    tags = {
        "og:type": "article",
        "og:title": BeautifulSoup(context.get("title") or "", "html.parser").get_text(),
        "og:description": said,
        "og:image": f"{app.config.html_baseurl or up}{_PICTURE}",
    }
    found = [f'<meta name="description" content="{html.escape(said)}">']
    found += [f'<meta property="{k}" content="{html.escape(v)}">' for k, v in tags.items()]
    context["metatags"] = "\n".join([context.get("metatags") or "", *found])


def draw(app, exception) -> None:
    if not exception and app.builder.name == "html":
        records = scoreboard.records(Path(app.srcdir) / "results")
        (Path(app.outdir) / _PICTURE).write_text(scoreboard.picture(records), "utf-8")
