"""The table of builds that claims ask for: `data/builds.csv`."""

import csv
import re
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_build_decides_claims_of_the_ledger():
    known = {claim["id"] for claim in rows("claims.csv")}
    for build in rows("builds.csv"):
        asked = build["claims"].split()
        assert asked, f"{build['name']}: no claim asks for it"
        assert not set(asked) - known, build["name"]
        assert len(asked) == len(set(asked)), build["name"]


def test_a_build_can_be_made_again_from_its_row():
    for build in rows("builds.csv"):
        whole = re.fullmatch(r"[0-9a-f]{40}", build["commit"])
        assert whole or build["system"] == "INGRES", build["name"]
        assert build["configuration"], build["name"]
        assert build["bits"] in {"16", "32", "64"}, build["name"]


def test_no_two_builds_are_the_same():
    meant = Counter(
        (row["system"], row["commit"], row["configuration"], row["bits"])
        for row in rows("builds.csv")
    )
    assert max(meant.values()) == 1, meant.most_common(1)
    names = Counter(row["name"] for row in rows("builds.csv"))
    assert max(names.values()) == 1, names.most_common(1)
