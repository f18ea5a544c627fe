"""What the site shows of a reader's own run before there is one: a report card, and a run."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from pgrerun import report_card
from pgrerun.record import printed, runs
from pgrerun.record.verdicts import Judgement
from pgrerun.report_card.sections import SECTIONS
from pgrerun.site import samples

KEPT = printed.DATA.parent / "samples"
PATHS = re.compile(r"(?<![\w.])/(?:tmp|home|root|work|usr|var|opt|mnt)\b")


@pytest.fixture(scope="module")
def run():
    return samples.load(KEPT / "run.json")


@pytest.mark.parametrize("file", sorted(KEPT.iterdir()), ids=lambda file: file.name)
def test_a_sample_is_text_that_names_no_machine_and_no_place(file):
    assert PATHS.findall(file.read_text("utf-8")) == [] and file.suffix in (".json", ".jsonl")


def test_the_sample_card_tells_of_every_section_that_it_is_one():
    page = BeautifulSoup(report_card.sample(KEPT / "report-card.jsonl", "Ours."), "html.parser")
    said = page.select_one("blockquote").get_text()
    assert "This is a sample, not your server. Ours." in said
    assert re.search(r"\d{4}, \d\d:\d\d UTC", said) and "load average" in said
    assert re.fullmatch(r"PostgreSQL \d+\.\d+", page.select_one(".lead").get_text())
    told = {one["id"]: one.get_text() for one in page.select("section")}
    assert [one.name for one in SECTIONS if "Set aside." in told[one.name]] == []


def test_the_sample_run_has_its_verdicts_beside_the_published_ones(run):
    page = BeautifulSoup(samples.your_run(run, lambda claim: f"#{claim}"), "html.parser")
    judged = {j.claim.id: j for one in run.verdicts if (j := Judgement.from_dict(one))}
    named = {row.td.get_text() for row in page.select("tbody tr")} & set(judged)
    tested = {name for name, j in judged.items() if str(j.verdict) != "not tested here"}
    assert tested <= named and tested
    titles = [one.get_text() for one in page.select("caption")]
    assert (
        "Verdicts that are the same" in titles and "that both runs have tested" in page.get_text()
    )
    spec = json.loads(page.select_one("figure .vl-spec").string)
    shown = json.dumps(spec["datasets"])
    assert '"this run"' in shown and '"published run"' in shown
    assert run.environment["server"]["version"] in page.p.get_text()


def test_a_record_that_is_kept_as_text_is_the_same_when_it_is_read(tmp_path):
    file = tmp_path / "run.json"
    samples.keep("published", "uuid_keys", file)
    record, again = runs.load("published", "uuid_keys"), samples.load(file)
    assert again.verdicts == record.verdicts and again.environment == record.environment
    whole, kept = (one.tables["uuid_keys"]["insert"] for one in (record, again))
    assert kept["index_pages"].tolist() == whole["index_pages"].tolist()
    assert kept["alpha"].tolist() == whole["alpha"].tolist()
