"""Sphinx extension: live Vega-Lite charts without a network, and this book's other scripts.

Puts Vega, Vega-Lite and vega-embed (bundled inside the vl-convert wheel) and our
`charts.js` on the pages that have a chart, and on no other; so it does with the script of the
scoreboard and those of PostgreSQL in a page. None of these files may lie
under `_static`: Jupyter Book links every script it finds there on every page. The
charts' HTML is made by `pgrerun.page.charts`.
"""

from pathlib import Path

import vl_convert

VEGALITE_VERSION = vl_convert.get_vegalite_versions()[-1]
BUNDLE = f"vega-bundle-{vl_convert.__version__}-{VEGALITE_VERSION}.js"
# by what a page has that needs them
SCRIPTS = {
    'class="scoreboard"': ["scoreboard.js"],
    'class="vl-chart"': [BUNDLE, "charts.js"],
    'class="laboratory"': ["laboratory.js"],
    'class="laboratory ask"': ["ask.js"],
}


def setup(app):
    app.connect("config-inited", add_scripts)
    app.connect("html-page-context", link_scripts)


def add_scripts(app, config) -> None:
    """Have the scripts copied to the site's `_static`."""
    cache = Path(app.outdir).parent / ".vega"
    bundle = cache / BUNDLE
    if not bundle.exists():
        cache.mkdir(parents=True, exist_ok=True)
        # The bundle declares globals with `const`; inside a function they can't clash.
        source = (
            f"(function(){{{vl_convert.javascript_bundle(vl_version=VEGALITE_VERSION)}\n}})();\n"
        )
        part = bundle.with_suffix(".part")
        part.write_text(source, encoding="utf-8")
        part.replace(bundle)
        for stale in set(cache.glob("vega-bundle-*.js")) - {bundle}:
            stale.unlink()
    config.html_static_path.extend([str(cache), str(Path(__file__).parent / "scripts")])


def link_scripts(app, pagename, templatename, context, doctree) -> None:
    for what, files in SCRIPTS.items():
        if what in (context.get("body") or ""):
            for file in files:
                app.add_js_file(file, loading_method="defer")
