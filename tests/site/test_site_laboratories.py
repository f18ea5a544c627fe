"""PostgreSQL in the page: what is shown before it runs, what it does when it runs, and the book
without it.
"""

import functools
import http.server
import json
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from test_site_browser import quiet

from pgrerun.record import claims

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "book" / "_ext"
NAMES = ("hot", "optimizer", "visibility", "memory")
PAGES = tuple(f"laboratory-{name}" for name in NAMES)
BOOT = 300  # seconds, for a server compiled to WebAssembly on a busy machine


@pytest.fixture(scope="module")
def extension():
    sys.path.insert(0, str(EXTENSIONS))
    try:
        import laboratories

        yield laboratories
    finally:
        sys.path.remove(str(EXTENSIONS))


@pytest.fixture(scope="module")
def laboratories(toy_site) -> Path:
    if not (toy_site / "_static" / "pglite").exists():
        note = BeautifulSoup(
            (toy_site / "laboratory-hot.html").read_text(), "html.parser"
        ).select_one(".admonition.note")
        pytest.skip(note.get_text(" ", strip=True))
    return toy_site


@pytest.fixture(scope="module")
def address(laboratories):
    """The site served as readers are told to."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=laboratories)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_was_recorded_and_loads_no_postgresql_by_itself(laboratories, page):
    soup = BeautifulSoup((laboratories / f"{page}.html").read_text(), "html.parser")
    assert soup.select(".laboratory-recorded table")
    assert not [one["src"] for one in soup.select("script[src]") if "pglite" in one["src"]]


def test_the_recorded_page_has_a_chain_that_a_visit_prunes(laboratories):
    soup = BeautifulSoup((laboratories / "laboratory-hot.html").read_text(), "html.parser")
    steps = [
        [item["class"][1] for item in page.select("li")] for page in soup.select(".line-pointers")
    ]
    assert steps[0] == ["normal"] * 4
    assert steps[3] == ["normal"] * 4 + ["heap-only"] * 3
    assert steps[4] == ["redirected"] * 2 + ["normal"] * 2 + ["unused"] + ["heap-only"] * 2


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_from_a_file_the_page_says_how_to_serve_it(browser, laboratories, page):
    with browser.page(width=360, height=740) as opened:
        opened.open(laboratories / f"{page}.html")
        said = opened.run("document.querySelector('.laboratory-start').textContent")
        assert "http.server" in said and "recorded" in said
        assert opened.run("document.documentElement.scrollWidth") <= 360
        quiet(opened)


def started(browser_page, address: str, name: str) -> None:
    browser_page.visit(f"{address}/laboratory-{name}.html")
    assert not [url for url in browser_page.requests if "pglite" in url], (
        "nothing is fetched before the reader asks"
    )
    browser_page.run("document.querySelector('.laboratory-start button').click()")
    browser_page.until(
        "document.querySelector('.laboratory').dataset.state === 'running'",
        "PostgreSQL runs in the page",
        BOOT,
    )


def local(browser_page, address: str) -> None:
    """Nothing came from elsewhere, and nobody complained."""
    assert all(
        url.startswith((address, "data:", "blob:", "about:")) for url in browser_page.requests
    ), browser_page.requests
    assert not browser_page.complaints, browser_page.complaints


@pytest.mark.browser
def test_typed_updates_are_seen_on_the_page(browser, address):
    states = (
        "[...document.querySelectorAll('.laboratory-live .line-pointer')].map(item =>"
        " item.classList[1])"
    )
    with browser.page(width=360, height=740) as page:
        started(page, address, "hot")
        assert page.run(states) == ["normal"] * 4
        page.run(
            "document.querySelector('.laboratory textarea').value = 'UPDATE page SET v = v + 1"
            " WHERE id = 1'"
        )
        page.run("document.querySelector('.laboratory form').requestSubmit()")
        page.until(f"{states}.length === 5", "the new version is on the page")
        assert page.run(states)[-1] == "heap-only"
        assert "Of these HOT: 1," in page.run(
            "document.querySelector('.laboratory-shown').textContent"
        )
        page.run("document.querySelector('.laboratory textarea').value = 'UPDAT page'")
        page.run("document.querySelector('.laboratory form').requestSubmit()")
        page.until("!!document.querySelector('.laboratory-error')", "the error is told")
        assert "syntax error" in page.run("document.querySelector('.laboratory-error').textContent")
        assert page.run("document.documentElement.scrollWidth") <= 360
        local(page, address)


def run_typed(page, sql: str, key: bool = False) -> None:
    """Type a statement, and send it with the button or with Ctrl+Enter."""
    how = (
        "text.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true,"
        " bubbles: true, cancelable: true}))"
        if key
        else "text.form.requestSubmit()"
    )
    page.run(
        "{ const text = document.querySelector('.laboratory textarea');"
        f" text.value = {json.dumps(sql)}; {how}; }}"
    )


def put(page, control: str, value: str) -> None:
    page.run(
        f"{{ const input = document.querySelector('[data-name={control}]');"
        f" input.value = '{value}';"
        " input.dispatchEvent(new Event('input', {bubbles: true})); }"
    )


STATUS = "document.querySelector('.laboratory [role=status]').textContent"
TYPED = "document.querySelector('.laboratory textarea').value"
CHOSEN = "document.querySelector('.laboratory-plan b').textContent"
MARKER = "Number(document.querySelector('.laboratory-chart .now').getAttribute('x1'))"


@pytest.mark.browser
def test_a_loop_is_counted_sent_by_key_and_focus_stays_where_the_reader_was(browser, address):
    with browser.page() as page:
        page.visit(f"{address}/laboratory-hot.html")
        page.run("document.querySelector('.laboratory-start button').focus()")
        started(page, address, "hot")
        assert page.run("!!document.activeElement.closest('.laboratory-live')")
        update = "UPDATE page SET v = v + 1 WHERE id = 1"
        loop = f"DO $$ BEGIN FOR i IN 1..3 LOOP {update}; END LOOP; END $$"
        run_typed(page, loop, key=True)
        page.until(f"{STATUS} === 'Done: 3 tuples were updated.'", "the loop's updates are counted")
        local(page, address)


@pytest.mark.browser
def test_slider_marker_and_query_agree_and_an_edited_query_is_kept(browser, address):
    with browser.page(width=390, height=844) as page:
        started(page, address, "optimizer")
        assert "tuples" in page.run(CHOSEN) and "Seq Scan" not in page.run(CHOSEN)
        put(page, "share", "0")
        page.until(f"{CHOSEN} === 'Seq Scan on tuples'", "all tuples are read in order")
        assert page.run("document.querySelector('output').textContent") == "100 %"
        edited = "SELECT unique2 FROM tuples WHERE unique2 < 1000 ORDER BY unique2"
        run_typed(page, edited)
        page.until(f"{CHOSEN}.startsWith('Index Only Scan')", "an edited query is explained")
        page.until(f"{MARKER} > 0 && {MARKER} < 500", "the marker has moved to a tenth")
        values = "['attribute', 'share'].map(n => document.querySelector(`[data-name=${n}]`).value)"
        assert page.run(values) == ["unique2", "-1"]
        assert page.run("document.querySelector('output').textContent") == "10 %"
        at = page.run(MARKER)
        put(page, "price", "1")
        page.until("document.querySelector('.laboratory-shown').textContent", "explained again")
        assert page.run(TYPED) == edited and page.run(MARKER) == at
        put(page, "share", "-2")
        page.until(f"{MARKER} < {at}", "the marker follows the slider")
        assert page.run(TYPED) == edited.replace("1000", "100")
        run_typed(page, "SELECT * FROM tuples WHERE unique1 BETWEEN 1 AND 5000")
        page.until(f"{MARKER} > {at}", "the marker is where the planner expects the query to be")
        tall = page.run(
            "document.querySelector('.laboratory-live .laboratory-chart').getBoundingClientRect()"
            ".bottom - document.querySelector('[type=range]').getBoundingClientRect().top"
        )
        assert 0 < tall <= 844 - 60, "slider and chart share a screen, below the page's bar"
        clipped = page.run(
            "[...document.querySelectorAll('.laboratory-live .laboratory-chart text')].filter(t =>"
            " t.getBoundingClientRect().right > t.closest('svg').getBoundingClientRect().right + 1)"
            ".map(t => t.textContent)"
        )
        assert clipped == []
        local(page, address)


@pytest.mark.browser
def test_updates_spoil_an_index_only_scan_until_a_vacuum(browser, address):
    rows = (
        "[...document.querySelectorAll('.laboratory-live tbody tr')].map(row =>"
        " [...row.cells].map(cell => cell.textContent))"
    )
    with browser.page(width=360, height=740) as page:
        started(page, address, "visibility")
        [loaded] = page.run(rows)
        assert loaded[2] == "100 of 100" and loaded[3].startswith("0 of ")
        put(page, "where", "neighbours")
        page.run("document.querySelector('[data-n=\"0\"]').click()")
        page.until(f"{rows}.length === 2", "what the update spoils is seen")
        page.run("document.querySelector('[data-n=\"1\"]').click()")
        page.until(f"{rows}.length === 3", "what a vacuum gives back is seen")
        _, updated, vacuumed = page.run(rows)
        # as many rows as there are pages, beside each other: those of a few pages
        assert updated[1] == "100" and updated[3].startswith("100 of ")
        assert int(updated[2].split()[0]) < 100
        assert vacuumed[2] == "100 of 100" and vacuumed[3].startswith("0 of ")
        assert page.run("document.documentElement.scrollWidth") <= 360
        local(page, address)


@pytest.mark.browser
def test_the_join_s_method_changes_with_memory(browser, address):
    with browser.page(width=360, height=740) as page:
        started(page, address, "memory")
        page.until(f"{CHOSEN} === 'Hash Join'", "the hash table fits")
        put(page, "memory", "7")
        page.until(f"{CHOSEN} === 'Merge Join'", "it doesn't")
        run_typed(page, "SELECT a.k FROM a JOIN b ON a.k = b.u")
        page.until(f"{TYPED}.includes('b.u') && {CHOSEN}", "another join is explained")
        assert page.run("document.querySelector('[data-name=to]').value") == "b.u"
        assert page.run("document.documentElement.scrollWidth") <= 360
        local(page, address)


CHAPTERS = {
    "hot": "hot",
    "optimizer": "optimizer",
    "access_paths": "visibility",
    "explorations": "memory",
}


@pytest.mark.browser
def test_the_record_is_asked_in_the_page(browser, address):
    shown = "document.querySelector('.laboratory.ask').innerText"
    with browser.page() as page:
        page.visit(f"{address}/ask.html?sql=SELECT%20count(*)%20FROM%20claims.ledger")
        page.until(lambda: "1 rows" in page.run(shown), "the query is answered", BOOT)
        cell = page.run("document.querySelector('.laboratory.ask td').textContent")
        assert int(cell) == len(claims.ledger())
        page.run("document.querySelector('.ask-this').click()")
        said = "document.querySelector('.laboratory.ask [role=status]').textContent"
        page.until(lambda: "1 rows" not in page.run(said), "an example is asked")
        assert not page.complaints


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_its_laboratory_beside_the_paragraph(chapter):
    cells = json.loads((ROOT / "notebooks" / f"{chapter}.ipynb").read_text())["cells"]
    found = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    placed = [
        source for source in found if f"```{{laboratory}} {CHAPTERS[chapter]}\n:beside:" in source
    ]
    assert len(placed) == 1 and not placed[0].startswith("```")


# ---- the book without them


def build(root: Path, environment: dict[str, str]) -> BeautifulSoup:
    (root / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nextensions = ['laboratories']\n"
    )
    (root / "index.rst").write_text("Title\n=====\n\n.. laboratory:: hot\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(root), str(root / "_build" / "html")]
    environment = environment | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return BeautifulSoup((root / "_build" / "html" / "index.html").read_text(), "html.parser")


def test_without_node_the_page_says_so(tmp_path):
    page = build(tmp_path, {"PATH": str(tmp_path)})
    assert "without its laboratories: npm wasn" in page.select_one(".note").get_text()
    assert not page.select(".laboratory, script[src*=laboratory]")


def test_without_a_network_the_page_says_so(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("npm", "node"):
        (programs / name).write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 1\n")
        (programs / name).chmod(0o755)
    page = build(tmp_path, {"PATH": f"{programs}:/usr/bin:/bin"})
    said = page.select_one(".note").get_text()
    assert "be fetched with npm" in said and "no route to host" in said


def building(folder: Path, builder: str = "html") -> SimpleNamespace:
    """What the extension needs of Sphinx."""
    return SimpleNamespace(
        outdir=folder / builder,
        builder=SimpleNamespace(name=builder),
        config=SimpleNamespace(html_static_path=[]),
    )


def test_nothing_is_fetched_to_be_printed(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "fetch", lambda *_: pytest.fail("fetched"))
    extension.vendor(app := building(tmp_path, "print"))
    assert "wasn't built before" in app.laboratories["missing"]


def test_another_archive_is_refused(extension, tmp_path, monkeypatch):
    def bring(client, package, version, folder):
        folder.mkdir()
        (folder / "index.js").write_text("")
        with tarfile.open(folder / "other.tgz", "w:gz") as archive:
            archive.add(folder / "index.js")
        return folder / "other.tgz"

    monkeypatch.setattr(extension.packages, "bring", bring)
    monkeypatch.setattr(extension.shutil, "which", lambda program: program)
    app = building(tmp_path)
    extension.vendor(app)
    assert "isn't the archive" in app.laboratories["missing"] and not app.config.html_static_path
    assert not list((tmp_path / ".pglite").iterdir())


def test_an_unknown_laboratory_is_an_error(extension, tmp_path):
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nextensions = ['laboratories']\n"
    )
    (tmp_path / "index.rst").write_text("Title\n=====\n\n.. laboratory:: cold\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(tmp_path), str(tmp_path / "out")]
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode and "There is no laboratory 'cold'" in done.stderr


def test_what_is_recorded_is_kept_for_the_next_build(extension, tmp_path):
    app = building(tmp_path)
    digest = "0" * 16
    kept = tmp_path / ".pglite" / digest
    (kept / "static" / "pglite").mkdir(parents=True)
    (kept / "recorded.json").write_text(
        json.dumps(dict.fromkeys(NAMES, "") | {"postgresql": "18.6"})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            extension.hashlib, "sha256", lambda data: SimpleNamespace(hexdigest=lambda: digest)
        )
        patch.setattr(extension, "fetch", lambda *_: pytest.fail("fetched again"))
        extension.vendor(app)
    assert app.laboratories["postgresql"] == "18.6" and app.config.html_static_path == [
        str(kept / "static")
    ]


def test_numbers_are_written_as_in_the_tables_of_the_book():
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js")
    module = EXTENSIONS / "laboratories" / "experiments.mjs"
    script = (
        f"const {{ formatted }} = await import({json.dumps(module.as_uri())});"
        " console.log([2052.57, 1280, 0.12345, 0].map(formatted).join(' '))"
    )
    told = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["2,053", "1,280", "0.1235", "0"]
