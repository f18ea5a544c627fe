"""Sphinx extension: PostgreSQL in the page, and the laboratories that use it.

PGlite is PostgreSQL compiled to WebAssembly. It is fetched with npm at the first
build, held to its digest, kept in `_build/.pglite` and served with the site, never
from somebody else's server. `{laboratory} NAME` puts one in a page: what it has
shown at build, and a button that starts it. Without Node and npm, or without a
network at the first build, pages say that they were built without laboratories, and
why; nothing else changes.
"""

import hashlib
import html
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.util import logging

from pgrerun.errors import FetchError
from pgrerun.lab.server import packages

PACKAGE = "@electric-sql/pglite"
VERSION = "0.5.16"  # PostgreSQL 18.6
SHA256 = "04e3a275aa4f7663d94ec06fcf1288379c23845a3cd09decf474b424b1ee5c7c"
HERE = Path(__file__).parent
WANTED = (
    "*.js",
    "pglite.wasm",
    "pglite.data",
    "initdb.wasm",
    "contrib/pageinspect.js",
    "pageinspect.tar.gz",
    "contrib/pg_visibility.js",
    "pg_visibility.tar.gz",
)
NAMES = ("hot", "optimizer", "visibility", "memory")
PATIENCE = 600  # seconds for the recording, on a busy machine

logger = logging.getLogger(__name__)


class Missing(Exception):
    """Why there are no laboratories; the page says it in these words."""


def setup(app):
    app.add_directive("laboratory", Laboratory)
    app.connect("builder-inited", vendor)


def vendor(app) -> None:
    """Have PGlite and what the laboratories show in the cache, and PGlite in the site's
    `_static/pglite`.

    For print nothing is fetched: only the site runs it.
    """
    cache = Path(app.outdir).parent / ".pglite"
    scripts = sorted(HERE.glob("*.mjs"))
    digest = hashlib.sha256(
        b"".join([SHA256.encode(), *(script.read_bytes() for script in scripts)])
    ).hexdigest()[:16]
    kept = cache / digest
    try:
        if not (kept / "recorded.json").exists():
            if app.builder.name == "print":
                raise Missing("its site, where PostgreSQL runs in the page, wasn't built before.")
            fetch(cache, kept)
        size = sum(path.stat().st_size for path in (kept / "static").rglob("*") if path.is_file())
        app.laboratories = json.loads((kept / "recorded.json").read_text("utf-8")) | {
            "megabytes": size / 1e6
        }
        app.config.html_static_path.append(str(kept / "static"))
    except Missing as reason:
        logger.info("Built without laboratories: %s", reason)
        app.laboratories = {"missing": str(reason)}


def fetch(cache: Path, kept: Path) -> None:
    for program in ("npm", "node"):
        if shutil.which(program) is None:
            raise Missing(f"{program} wasn't found. With Node.js installed, build the book again.")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        here = Path(folder)
        try:
            archive = packages.bring("npm", PACKAGE, VERSION, here / "client")
            packages.require_digest(archive, SHA256)
            packages.unpack(archive, here / "package", below="package")
        except FetchError as error:
            raise Missing(f"PGlite can't be fetched with npm: {error}") from None
        static = here / "built" / "static" / "pglite"
        source = here / "package" / "dist"
        for pattern in WANTED:
            for path in source.glob(pattern):
                goal = static / path.relative_to(source)
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, goal)
        shutil.copy(here / "package" / "LICENSE", static)
        shutil.copy(HERE / "experiments.mjs", static)
        recorded = _run(
            ["node", str(HERE / "record.mjs"), str(static)],
            here,
            "PGlite doesn't run under this Node.js",
        )
        json.loads(recorded)
        (here / "built" / "recorded.json").write_text(recorded, "utf-8")
        for stale in (path for path in cache.iterdir() if path != here):
            shutil.rmtree(stale)
        (here / "built").rename(kept)


def _run(command: list[str], folder: Path, otherwise: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise Missing(f"{otherwise}: it took more than {PATIENCE} s.") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Missing(f"{otherwise}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout


class Laboratory(Directive):
    """`{laboratory} hot`: the recorded output, and what starts the laboratory."""

    required_arguments = 1
    option_spec = {"beside": directives.flag}

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        if name not in NAMES:
            raise self.error(f"There is no laboratory {name!r}; there are {', '.join(NAMES)}.")
        env = self.state.document.settings.env
        env.note_reread()  # what it shows isn't in the page's source
        found, beside = env.app.laboratories, "beside" in self.options
        if beside and env.app.builder.name == "print":
            return []  # it has a page of its own there
        if "missing" in found:
            words = f"This book was built without its laboratories: {found['missing']}"
            return [nodes.note("", nodes.paragraph("", words))]
        up = "../" * env.docname.count("/")
        said = {
            "pglite": f"{up}_static/pglite/",
            "start": f"Start PostgreSQL {found['postgresql']} in this page",
            "starting": (
                f"PostgreSQL is starting: {found['megabytes']:.0f} MB are read from this site"
            ),
            "running": (
                f"PostgreSQL {found['postgresql']} is running in this page. What you do stays in it"
                " and is gone when you leave."
            ),
            "on-file": (
                "To start PostgreSQL in this page, serve the book: run python3 -m http.server in"
                " the folder that holds its front page, and open the address that it prints. Until"
                " then, this is what was recorded when the book was built."
            ),
            "on-paper": (
                "In the book's site this page starts PostgreSQL. On paper it stands still: this is"
                " what was recorded when the book was built."
            ),
            "on-old": (
                "This browser has no WebAssembly, so PostgreSQL can't be started in it. This is"
                " what was recorded when the book was built."
            ),
        }
        attributes = "".join(f' data-{key}="{html.escape(words)}"' for key, words in said.items())
        recorded = found[name]
        if beside:
            recorded = f"<details><summary>Recorded at build</summary>{recorded}</details>"
        return [
            nodes.raw(
                "",
                f'<div class="laboratory" data-laboratory="{name}"{attributes}><p'
                ' class="laboratory-start"></p><div'
                f' class="laboratory-recorded">{recorded}</div></div>',
                format="html",
            )
        ]
