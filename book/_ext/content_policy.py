"""Sphinx extension: every page tells the browser to fetch nothing from another host.

A Content-Security-Policy in each page's head. Scripts and styles are this site's own files; an
inline script runs only if the theme puts the same one on every page, known by its digest, so that
nothing a run record or a notebook's output brings along can run. Vega compiles its expressions and
the laboratories their database, which takes `unsafe-eval`.
"""

import base64
import hashlib
import re
from pathlib import Path

_INLINE = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*json)[^>]*>(.*?)</script>", re.DOTALL)
_HANDLER = re.compile(r'\son[a-z]+="([^"]*)"')
_CHARSET = re.compile(r'<meta charset="[^"]*" ?/?>')
# Sphinx makes these without any content, so that their scripts are the theme's.
_BARE = ("genindex", "search")
_SOURCES = {
    "default-src": "'self' data: blob:",
    "style-src": "'self' 'unsafe-inline'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}


def setup(app):
    app.connect("build-finished", write)


def write(app, exception) -> None:
    if exception or app.builder.name != "html":
        return
    html = Path(app.outdir)
    bare = {name: (html / f"{name}.html").read_text("utf-8") for name in _BARE}
    for file in sorted(html.rglob("*.html")):
        name = file.relative_to(html).with_suffix("").as_posix()
        if not name.startswith("_"):
            text = file.read_text("utf-8")
            charset = _CHARSET.search(text)
            if charset is None:
                raise ValueError(f"{file} has no <meta charset>, behind which its policy belongs")
            said = f'<meta http-equiv="Content-Security-Policy" content="{policy(name, bare)}">'
            whole = f"{text[: charset.end()]}\n    {said}{text[charset.end() :]}"
            file.write_text(whole, "utf-8")


def policy(page: str, bare: dict[str, str]) -> str:
    """What `page` may load and run; `bare` are the pages without content, by name."""
    scripts = [
        script.replace(f"pagename = '{_BARE[0]}'", f"pagename = '{page}'")
        for script in _INLINE.findall(bare[_BARE[0]]) + _HANDLER.findall(bare[_BARE[0]])
    ]
    scripts += _INLINE.findall(bare[page]) if page in bare else []
    scripts += ["window.print()"]  # the theme's button, which these pages lack
    digests = " ".join(dict.fromkeys(f"'sha256-{_digest(script)}'" for script in scripts))
    run = f"script-src 'self' blob: 'unsafe-eval' 'unsafe-hashes' {digests}"
    return "; ".join([*(f"{what} {sources}" for what, sources in _SOURCES.items()), run])


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
