"""PostgreSQL in the page: what is shown before it runs, what it does when it runs, and the book
without it.
"""

import functools
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import checkouts
import pytest
from bs4 import BeautifulSoup
from servers import script

from pgrerun.record import claims

EXTENSIONS = checkouts.ROOT / "book" / "_ext"
BOOT = 300  # seconds, for a server compiled to WebAssembly on a busy machine
UPDATE = "UPDATE page SET v = v + 1 WHERE id = 1"


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
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=laboratories)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["hot", "optimizer", "visibility", "memory"])
def test_from_a_file_the_page_shows_what_was_recorded_and_how_to_serve_it(
    browser, laboratories, name
):
    with browser.page(width=360) as page:
        page.open(laboratories / f"laboratory-{name}.html")
        said = page.run("document.querySelector('.laboratory-start').textContent")
        assert "http.server" in said and "recorded" in said
        assert page.run("document.querySelector('.laboratory-recorded table').textContent")
        assert page.noise() == []


def started(page, address: str, name: str) -> None:
    page.visit(f"{address}/laboratory-{name}.html")
    assert not [url for url in page.requests if "pglite" in url], "fetched before it was asked for"
    page.run("document.querySelector('.laboratory-start button').click()")
    page.until(
        "document.querySelector('.laboratory').dataset.state === 'running'",
        "PostgreSQL runs in the page",
        BOOT,
    )


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
def test_typed_updates_are_seen_on_the_page(browser, address):
    states = (
        "[...document.querySelectorAll('.laboratory-live .line-pointer')].map(item =>"
        " item.classList[1])"
    )
    shown = "document.querySelector('.laboratory-shown').textContent"
    error = "document.querySelector('.laboratory-error')"
    with browser.page(width=360) as page:
        started(page, address, "hot")
        assert page.run(states) == ["normal"] * 4
        run_typed(page, UPDATE)
        page.until(f"{states}.length === 5", "the new version is on the page")
        assert page.run(states)[-1] == "heap-only" and "Of these HOT: 1," in page.run(shown)
        loop = f"DO $$ BEGIN FOR i IN 1..3 LOOP {UPDATE}; END LOOP; END $$"
        run_typed(page, loop, key=True)
        page.until(f"{STATUS} === 'Done: 3 tuples were updated.'", "the loop's are counted")
        run_typed(page, "UPDAT page")
        page.until(f"{error}?.textContent.includes('syntax error')", "the error is told")
        assert page.fits().noise(address) == []


@pytest.mark.browser
def test_slider_marker_and_query_agree_and_an_edited_query_is_kept(browser, address):
    seen = (
        "[...['attribute', 'share'].map(n => document.querySelector(`[data-name=${n}]`).value),"
        " document.querySelector('output').textContent]"
    )
    with browser.page(width=390) as page:
        started(page, address, "optimizer")
        put(page, "share", "0")
        page.until(f"{CHOSEN} === 'Seq Scan on tuples'", "all tuples are read in order")
        assert page.run(seen)[2] == "100 %"
        edited = "SELECT unique2 FROM tuples WHERE unique2 < 1000 ORDER BY unique2"
        run_typed(page, edited)
        page.until(f"{CHOSEN}.startsWith('Index Only Scan')", "an edited query is explained")
        page.until(f"{MARKER} > 0 && {MARKER} < 500", "the marker has moved to a tenth")
        assert page.run(seen) == ["unique2", "-1", "10 %"]
        at = page.run(MARKER)
        put(page, "price", "1")
        page.until("document.querySelector('.laboratory-shown').textContent", "explained again")
        assert page.run(TYPED) == edited and page.run(MARKER) == at
        put(page, "share", "-2")
        page.until(f"{MARKER} < {at}", "the marker follows the slider")
        assert page.run(TYPED) == edited.replace("1000", "100")
        assert page.fits().noise(address) == []


@pytest.mark.browser
def test_updates_spoil_an_index_only_scan_until_a_vacuum(browser, address):
    rows = (
        "[...document.querySelectorAll('.laboratory-live tbody tr')].map(row =>"
        " [...row.cells].map(cell => cell.textContent))"
    )
    with browser.page(width=360) as page:
        started(page, address, "visibility")
        put(page, "where", "neighbours")
        for n, what in enumerate(("what the update spoils", "what a vacuum gives back")):
            page.run(f"document.querySelector('[data-n=\"{n}\"]').click()")
            page.until(f"{rows}.length === {n + 2}", f"{what} is seen")
        loaded, updated, vacuumed = page.run(rows)
        for whole in (loaded, vacuumed):
            assert whole[2] == "100 of 100" and whole[3].startswith("0 of ")
        # as many rows as there are pages, beside each other: those of a few pages
        assert updated[1] == "100" and updated[3].startswith("100 of ")
        assert int(updated[2].split()[0]) < 100
        assert page.fits().noise(address) == []


@pytest.mark.browser
def test_the_join_s_method_changes_with_memory(browser, address):
    with browser.page(width=360) as page:
        started(page, address, "memory")
        page.until(f"{CHOSEN} === 'Hash Join'", "the hash table fits")
        put(page, "memory", "7")
        page.until(f"{CHOSEN} === 'Merge Join'", "it doesn't")
        run_typed(page, "SELECT a.k FROM a JOIN b ON a.k = b.u")
        page.until(f"{TYPED}.includes('b.u') && {CHOSEN}", "another join is explained")
        assert page.run("document.querySelector('[data-name=to]').value") == "b.u"
        assert page.fits().noise(address) == []


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
        assert page.noise(address) == []


# ---- the book without them


def build(
    root: Path, environment: dict[str, str], name: str = "hot"
) -> tuple[subprocess.CompletedProcess, Path]:
    (root / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nextensions = ['laboratories']\n"
    )
    (root / "index.rst").write_text(f"Title\n=====\n\n.. laboratory:: {name}\n")
    out = root / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(root), str(out)]
    environment = environment | {"PYTHONPATH": str(checkouts.ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done, out / "index.html"


def test_without_node_the_page_says_so_and_an_unknown_laboratory_is_an_error(tmp_path):
    done, page = build(tmp_path, {"PATH": str(tmp_path)})
    found = BeautifulSoup(page.read_text(), "html.parser")
    assert (
        done.returncode == 0
        and "without its laboratories: npm wasn" in found.select_one(".note").text
    )
    assert not found.select(".laboratory, script[src*=laboratory]")
    done, _ = build(tmp_path, {"PATH": str(tmp_path)}, "cold")
    assert done.returncode and "There is no laboratory 'cold'" in done.stderr


def test_without_a_network_the_page_says_so(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("npm", "node"):
        script(programs / name, "echo 'no route to host' >&2\nexit 1")
    done, page = build(tmp_path, {"PATH": f"{programs}:/usr/bin:/bin"})
    said = BeautifulSoup(page.read_text(), "html.parser").select_one(".note").text
    assert done.returncode == 0 and "npm" in said and "no route" in said


def test_another_archive_is_refused(tmp_path, monkeypatch):
    extension = checkouts.laboratories()

    def bring(client, package, version, folder):
        folder.mkdir()
        (folder / "other.tgz").write_bytes(b"")
        return folder / "other.tgz"

    monkeypatch.setattr(extension.packages, "bring", bring)
    monkeypatch.setattr(extension.shutil, "which", lambda program: program)
    extension.vendor(app := checkouts.building(tmp_path))
    assert "isn't the archive" in app.laboratories["missing"] and not app.config.html_static_path


def test_what_is_recorded_is_kept_for_the_next_build_and_nothing_fetched_to_be_printed(
    tmp_path, monkeypatch
):
    extension = checkouts.laboratories()
    monkeypatch.setattr(extension, "fetch", lambda *_: pytest.fail("fetched"))
    extension.vendor(app := checkouts.building(tmp_path, "print"))
    assert "wasn't built before" in app.laboratories["missing"]
    digest = "0" * 16
    kept = tmp_path / ".pglite" / digest
    (kept / "static" / "pglite").mkdir(parents=True)
    (kept / "recorded.json").write_text('{"postgresql": "18.6"}')
    hashed = lambda data: SimpleNamespace(hexdigest=lambda: digest)
    monkeypatch.setattr(extension.hashlib, "sha256", hashed)
    extension.vendor(app := checkouts.building(tmp_path))
    assert app.laboratories["postgresql"] == "18.6"
    assert app.config.html_static_path == [str(kept / "static")]
