"""The table of builds that claims ask for: `data/builds.csv`."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("build", rows("builds.csv"), ids=lambda build: build["name"])
def test_a_build_decides_claims_of_the_ledger_and_can_be_made_again_from_its_row(build):
    asked = build["claims"].split()
    assert asked and len(asked) == len(set(asked))
    assert set(asked) <= {claim["id"] for claim in rows("claims.csv")}
    whole = re.fullmatch(r"[0-9a-f]{40}", build["commit"])
    assert build["configuration"] and (whole or build["system"] == "INGRES")
    assert build["bits"] in {"16", "32", "64"}


def test_no_two_builds_are_the_same():
    for identity in (("system", "commit", "configuration", "bits"), ("name",)):
        found = Counter(tuple(row[column] for column in identity) for row in rows("builds.csv"))
        assert max(found.values()) == 1, found.most_common(1)
