"""A headless Chromium driven over its DevTools pipe: no driver, no port, no network.

`Page` records what a reader would never see: every request, every console error
and every uncaught exception. Playwright would be a driver of its own beside the browser, made for
a browser of its own; these tests are for the one that the system has that day.
"""

import importlib.resources
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgrerun.site import printing

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0  # seconds

_AXE = importlib.resources.files("axe_core_python").joinpath("axe.min.js")
# A drawn chart is hidden behind its words, and what is folded from everybody; axe passes over both,
# but takes four times as long where they are.
_VIOLATIONS = """for (const one of document.querySelectorAll('.vl-live svg')) one.replaceChildren();
for (const one of document.querySelectorAll('details:not([open]) > :not(summary)')) one.remove();
axe.run({exclude: [['.vl-live svg']]}, {resultTypes: ['violations']})
  .then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => ({rule: one.id, help: one.help,
    where: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))})))"""


@contextmanager
def browser(profile: Path) -> Iterator["Browser"]:
    """A browser with a fresh profile, ended afterwards."""
    to_browser, our_write = os.pipe()
    our_read, from_browser = os.pipe()

    # DevTools speaks on descriptors 3 and 4. Copies above them first: an end may lie there already.
    def place_pipe():
        high = [os.dup(fd) for fd in (to_browser, from_browser)]
        while min(high) < 5:
            high = [os.dup(fd) for fd in high]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    process = subprocess.Popen(
        [printing.browser(), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=place_pipe,
        close_fds=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(our_read, our_write)
    finally:
        os.close(our_write)
        os.close(our_read)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Browser:
    def __init__(self, read: int, write: int):
        self._read, self._write = read, write
        self._buffer = b""
        self._last = 0
        self.pages: dict[str, Page] = {}

    @contextmanager
    def page(self, *, width: int = 1440, height: int = 900, dark: bool = False) -> Iterator["Page"]:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.call("Emulation.setEmulatedMedia", features=scheme)
        try:
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)
            del self.pages[session]

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": params} | (
            {"sessionId": session} if session else {}
        )
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise TimeoutError(method)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise EOFError("the browser has ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer = json.loads(message)
        if "method" in answer and answer.get("sessionId") in self.pages:
            self.pages[answer["sessionId"]].note(answer["method"], answer["params"])
        return answer


class Page:
    def __init__(self, browser: Browser, session: str):
        self._browser, self._session = browser, session
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.address, self.width, self.loaded = "", 0, False

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(
                details.get("exception", {}).get("description") or details["text"]
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(
                " ".join(str(a.get("value", a.get("description", ""))) for a in params["args"])
            )
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Page.loadEventFired":
            self.loaded = True

    def noise(self, own: str = "file:") -> list[str]:
        """What no reader should have to see: complaints, and requests to elsewhere than `own`."""
        inside = (own, "data:", "blob:", "about:")
        return [*self.complaints, *(url for url in self.requests if not url.startswith(inside))]

    def resize(self, width: int, height: int = 900) -> "Page":
        self.width = width
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        return self

    def fits(self) -> "Page":
        """Wait until the page is no wider than its screen: charts are drawn again shortly after a
        width has changed.
        """
        width = self.width
        inside = f"document.documentElement.scrollWidth <= {width} && innerWidth === {width}"
        self.until(inside, f"the page fits {width} px")
        return self

    def open(self, path: Path, query: str = "") -> "Page":
        return self.visit(path.resolve().as_uri() + query)

    def visit(self, url: str) -> "Page":
        self.address, self.loaded = url, False
        self.call("Page.navigate", url=url)
        self.until(lambda: self.loaded, "the page is loaded")
        return self

    def run(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression (promises are awaited)."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(
                answer["exceptionDetails"].get("exception", {}).get("description", expression)
            )
        return answer["result"].get("value")

    def until(
        self, condition: Callable[[], Any] | str, what: str, patience: float = PATIENCE
    ) -> Any:
        """Wait for a condition (a callable, or a JavaScript expression) to be true, at most
        `patience` seconds.
        """
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            value = (
                self.run(condition)
                if isinstance(condition, str)
                else (self.run("0"), condition())[1]
            )
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(
            f"not within {patience:.0f} s at {self.address}: {what}; the page says"
            f" {self.complaints}"
        )

    def drawn(self) -> "Page":
        """Wait until every chart of the page that isn't folded away is drawn."""
        self.until(
            "[...document.querySelectorAll('.vl-chart')].every(c => !c.clientWidth ||"
            " c.dataset.drawn && c.querySelector('svg'))",
            "every chart is drawn",
        )
        return self

    def violations(self) -> list[dict[str, Any]]:
        """What axe calls serious or critical, once nothing fades any more: the theme's buttons take
        their colours over 150 ms.
        """
        self.until(
            "document.getAnimations().every(a => a.playState === 'finished')",
            "every transition is over",
        )
        self.run(_AXE.read_text() + ";0")
        return self.run(_VIOLATIONS)
