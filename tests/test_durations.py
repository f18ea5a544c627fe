"""The table of minutes and disk."""

import csv

import pytest
from bs4 import BeautifulSoup

from pgrerun import parameters
from pgrerun.site import durations

FIRST, SECOND, *REST = parameters.chapters()


@pytest.fixture
def space(tmp_path):
    """Writes what was measured, as bytes by chapter and profile."""

    def write(taken):
        file = tmp_path / "disk_space.csv"
        with file.open("w", newline="", encoding="utf-8") as rows:
            writer = csv.writer(rows)
            writer.writerow(["chapter", "profile", "bytes", "postgresql", "date"])
            writer.writerows([*key, size, "18.6", "2026-11-27"] for key, size in taken.items())
        return file

    return write


def cells(file):
    page = BeautifulSoup(durations.table({FIRST: "The first"}, file), "html.parser")
    heads = [one.get_text() for one in page.select("thead th")]
    rows = [[one.get_text() for one in row.select("td")] for row in page.select("tbody tr")]
    return heads, {row[0]: dict(zip(heads, row)) for row in rows}


def test_all_chapters_take_the_time_of_all_and_the_disk_of_one(space):
    taken = {(name, "ci"): 10**8 for name in parameters.chapters()} | {(SECOND, "ci"): 25 * 10**8}
    heads, rows = cells(space(taken))
    assert heads[-1] == "ci (GB)" and "laptop (GB)" not in heads
    assert [rows[one]["ci (GB)"] for one in ("The first", SECOND, "all")] == ["0.1", "2.5", "2.5"]
    minutes = [parameters.info(name).minutes["laptop"] for name in parameters.chapters()]
    assert float(rows["all"]["laptop (min)"]) == sum(minutes)


def test_what_nobody_has_measured_is_not_told(space, tmp_path):
    _, rows = cells(space({(FIRST, "laptop"): 10**9}))
    found = [rows[one]["laptop (GB)"] for one in ("The first", SECOND, "all")]
    assert found == ["1", durations.UNKNOWN, durations.UNKNOWN]
    heads, _ = cells(tmp_path / "none.csv")
    assert not any("GB" in head for head in heads)


def test_what_is_kept_names_chapters_and_profiles_that_there_are():
    kept = durations.disk_space(durations.SPACE)
    assert {name for name, _ in kept} <= set(parameters.chapters()) and kept
    assert {profile for _, profile in kept} <= set(parameters.PROFILES)
    assert all(size > 10**6 for size in kept.values())
