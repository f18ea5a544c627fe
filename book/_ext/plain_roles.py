"""Sphinx extension: take out ARIA roles that docutils gives a bibliography and that contradict each
other.

Its entries are a `list` whose children aren't list items, and each bears a role that
the standard has withdrawn. The plain elements say as much, and no reader's software
stumbles over them.
"""

import re

_ROLES = re.compile(r' role="list"(?= class="citation-list")| role="doc-biblioentry"')


def setup(app):
    app.connect("html-page-context", plain)


def plain(app, pagename, templatename, context, doctree) -> None:
    if 'class="citation-list"' in (context.get("body") or ""):
        context["body"] = _ROLES.sub("", context["body"])
