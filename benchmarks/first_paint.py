"""How long until a chapter opened from the disk shows its first words?

Headless Chromium with a fresh profile for each opening, the site's files dropped from the kernel's
cache before it. What is measured is the browser's own first contentful paint, from the start of the
navigation. Chapters take turns.

    python benchmarks/first_paint.py [--site _build/html] [--openings 7]

Prints median and range for each chapter; exit status 1 if a median is above BAR seconds. Without a
built site or a browser nothing is measured, and it says so.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "site"))  # the driver that the site's tests use

import chromium  # noqa: E402

from pgrerun.site import printing  # noqa: E402

BAR = 1.5
PAINTED = (
    "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] || 0"
)


def forget(site: Path) -> None:
    """Have the kernel read the site's files from the disk again."""
    for file in (path for path in site.rglob("*") if path.is_file()):
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def first_paint(site: Path, page: Path) -> float:
    """Seconds from the start of the navigation."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        chromium.browser(Path(profile)) as browser,
        browser.page() as tab,
    ):
        forget(site)
        tab.open(page)
        return tab.until(PAINTED, "the page is painted") / 1000


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--site", type=Path, default=ROOT / "_build" / "html")
    arguments.add_argument("--openings", type=int, default=7)
    given = arguments.parse_args()
    pages = sorted((given.site / "results").glob("*.html"))
    if not pages or printing.browser() is None:
        print(
            "Nothing was measured: there is no built site (make site), or no Chromium on PATH.",
            file=sys.stderr,
        )
        return 0
    seconds = {page: [] for page in pages}
    for opening in range(given.openings):
        for page in sorted(pages, reverse=bool(opening % 2)):
            seconds[page].append(first_paint(given.site, page))
            print(f"opening {opening + 1}: {page.stem} {seconds[page][-1]:.2f} s", flush=True)
    for page, times in seconds.items():
        print(
            f"{page.stem}: first paint after {statistics.median(times):.2f} s (from"
            f" {min(times):.2f} to {max(times):.2f}), {given.openings} openings; at most {BAR}"
        )
    return int(max(map(statistics.median, seconds.values())) > BAR)


if __name__ == "__main__":
    sys.exit(main())
