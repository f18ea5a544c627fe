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
CHECK_JSONSCHEMA = (sys.executable, "-m", "check_jsonschema")
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))


def test_citation_and_package_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(
        citation
    )  # what its schema demands
    assert citation["cff-version"] == "1.2.0" and citation["authors"]
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


def schema_says(path: Path) -> subprocess.CompletedProcess:
    """The schema comes with the package: nothing is fetched."""
    return subprocess.run(
        [*CHECK_JSONSCHEMA, "--builtin-schema", "vendor.github-workflows", path],
        capture_output=True,
        text=True,
    )


def zizmor_says(path: Path) -> subprocess.CompletedProcess:
    command = [
        Path(sys.executable).with_name("zizmor"),
        "--offline",
        "--no-config",
        "--no-progress",
        "--color",
        "never",
        path,
    ]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("linter", [schema_says, zizmor_says], ids=["schema", "zizmor"])
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_linter_finds_nothing_in_a_workflow(path, linter):
    found = linter(path)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    "path",
    [
        *WORKFLOWS,
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "book").glob("*.md")),
    ],
    ids=lambda path: path.name,
)
def test_every_target_of_make_that_is_named_exists(path):
    named = set(re.findall(r"(?:^|[`$]\s?|run: |    )make ([a-z]+)", path.read_text(), re.M))
    assert named <= TARGETS


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))],
    ids=lambda path: path.name,
)
def test_every_file_that_is_named_exists(path):
    named = re.findall(r"`((?:pgrerun|tests|data|book|notebooks|\.ci)/[\w./]*)`", path.read_text())
    mine = {"data/runs/mine"}  # the reader's
    missing = [
        name
        for name in named
        if name not in mine and not re.search("NAME|CHAPTER", name) and not (ROOT / name).exists()
    ]
    assert not missing
