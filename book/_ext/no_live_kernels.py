"""Sphinx extension: take thebe out of the pages.

Jupyter Book always loads sphinx-thebe, which puts the address of a script on a
public server into every page (twice, so that browsers report an error), for live
kernels on another public server. This book runs on the reader's own machine.
"""


def setup(app):
    app.connect("config-inited", disconnect)
    # after everything that adds scripts
    app.connect("html-page-context", remove_files, priority=900)


def disconnect(app, config) -> None:
    for listeners in app.events.listeners.values():
        listeners[:] = [
            one for one in listeners if not one.handler.__module__.startswith("sphinx_thebe")
        ]


def remove_files(app, pagename, templatename, context, doctree) -> None:
    for files in ("script_files", "css_files"):
        context[files] = [
            one
            for one in context[files]
            if "thebe" not in str(getattr(one, "filename", None) or one).lower()
        ]
