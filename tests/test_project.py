"""The files around the code: they are valid, agree with each other, and name what exists."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))


def test_citation_and_package_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    # what its schema demands
    assert all(citation[key] for key in ("cff-version", "message", "title", "authors"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert (ROOT / "LICENSE").read_text().startswith(f"{PROJECT['license']} License")


def test_there_are_tests_on_pull_requests_and_a_scheduled_rerun():
    triggers = {
        path.stem: set(yaml.safe_load(path.read_text())[True]) for path in WORKFLOWS
    }  # YAML reads the key "on" as true
    assert "pull_request" in triggers["tests"] and "schedule" in triggers["rerun"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_pinned_limited_and_least_privileged(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"])
        assert "timeout-minutes" in job or job["needs"]
        for step in job["steps"]:
            assert "run" in step or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), step


# The schema comes with the package, and nothing is fetched.
LINTERS = {
    "schema": [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
    ],
    "zizmor": [
        Path(sys.executable).with_name("zizmor"),
        "--offline",
        "--no-config",
        "--no-progress",
    ],
}


@pytest.mark.parametrize("linter", LINTERS)
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_linter_finds_nothing_in_a_workflow(path, linter):
    found = subprocess.run([*LINTERS[linter], path], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]


@pytest.mark.parametrize("path", [*WORKFLOWS, *PAGES], ids=lambda path: path.name)
def test_every_target_of_make_that_is_named_exists(path):
    named = set(re.findall(r"(?:^|[`$]\s?|run: |    )make ([a-z]+)", path.read_text(), re.M))
    assert named <= TARGETS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_file_that_is_named_exists(path):
    named = re.findall(r"`((?:pgrerun|tests|data|book|notebooks|\.ci)/[\w./]*)`", path.read_text())
    theirs = "NAME|CHAPTER|^data/runs/mine$"  # the reader's
    assert [one for one in named if not re.search(theirs, one) and not (ROOT / one).exists()] == []
