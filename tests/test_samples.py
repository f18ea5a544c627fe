"""What the site shows of a reader's own run before there is one: a report card, and a run."""

import re

import pytest

from pgrerun.record import printed, runs
from pgrerun.site import samples

KEPT = printed.DATA.parent / "samples"
PATHS = re.compile(r"(?<![\w.])/(?:tmp|home|root|work|usr|var|opt|mnt)\b")


@pytest.mark.parametrize("file", sorted(KEPT.iterdir()), ids=lambda file: file.name)
def test_a_sample_is_text_that_names_no_machine_and_no_place(file):
    assert PATHS.findall(file.read_text("utf-8")) == [] and file.suffix in (".json", ".jsonl")


def test_a_record_that_is_kept_as_text_is_the_same_when_it_is_read(tmp_path):
    file = tmp_path / "run.json"
    samples.keep("published", "uuid_keys", file)
    record, again = runs.load("published", "uuid_keys"), samples.load(file)
    assert again.verdicts == record.verdicts and again.environment == record.environment
    whole, kept = (one.tables["uuid_keys"]["insert"] for one in (record, again))
    assert kept["index_pages"].tolist() == whole["index_pages"].tolist()
    assert kept["alpha"].tolist() == whole["alpha"].tolist()
