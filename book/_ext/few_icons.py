"""Sphinx extension: the theme's icons as one small style sheet.

The theme loads all of FontAwesome, a script of one and a half megabytes, before a page's first word
is painted, for the dozen icons on its buttons. Their outlines are taken from that script when the
site is built (`book/_templates/static/webpack-macros.html` leaves out the script itself).
"""

import re
from pathlib import Path

import pydata_sphinx_theme

ICONS = (
    "angle-left",
    "angle-right",
    "arrow-up",
    "bars",
    "chevron-down",
    "circle-half-stroke",
    "download",
    "file",
    "file-pdf",
    "list",
    "magnifying-glass",
    "moon",
    "sun",
    "xmark",
)
SCRIPTS = (
    Path(pydata_sphinx_theme.__file__).parent
    / "theme"
    / "pydata_sphinx_theme"
    / "static"
    / "scripts"
)
STYLE = "icons.css"
# before the element, whose own display the theme changes
_RULES = """/* Icons: Font Awesome Free, https://fontawesome.com, CC BY 4.0;
   see scripts/fontawesome.js.LICENSE.txt */
:is(.fa-solid, .fas)::before {
  content: ""; display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em;
  background: currentColor; mask: var(--icon) center / contain no-repeat;
}
.fa-lg { font-size: 1.25em; }
@media (forced-colors: active) { :is(.fa-solid, .fas)::before { background: ButtonText; } }
"""


def setup(app):
    app.connect("builder-inited", add_style)
    app.connect("build-finished", remove_the_rest)


def add_style(app) -> None:
    if app.builder.name == "html":
        folder = Path(app.outdir).parent / ".icons"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STYLE).write_text(
            style((SCRIPTS / "fontawesome.js").read_text(encoding="utf-8")), encoding="utf-8"
        )
        app.config.html_static_path.append(str(folder))
        app.add_css_file(STYLE)


def style(script: str) -> str:
    """The rules for ICONS, with their outlines as they stand in FontAwesome's script."""
    return _RULES + "".join(
        f'.fa-{name} {{ --icon: url("data:image/svg+xml,{_outline(name, script)}"); }}\n'
        for name in ICONS
    )


def _outline(name: str, script: str) -> str:
    found = re.findall(rf'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"', script)
    width, height, path = found[-1]  # the last of its packs is the solid one
    return (
        f"%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}'%3E%3Cpath"
        f" d='{path}'/%3E%3C/svg%3E"
    )


def remove_the_rest(app, exception) -> None:
    """No page asks for these, and a site on a stick is lighter without them."""
    if not exception and app.builder.name == "html":
        static = Path(app.outdir) / "_static"
        for file in (static / "scripts" / "fontawesome.js", *static.glob("*/*.map")):
            file.unlink()
