"""Builds that somebody compiled: registered by a name, listed, taken by it, forgotten."""

import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from servers import script

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import builds, bundled, fetched, private
from pgrerun.lab.server.binaries import SERVER_PROGRAMS
from pgrerun.parameters import chapter_parameters


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "pgrerun" / "builds.json"


@pytest.fixture
def folder(tmp_path):
    """A folder whose bin/ has scripts that run the bundled release's programs."""
    programs = tmp_path / "compiled" / "bin"
    programs.mkdir(parents=True)
    for name in SERVER_PROGRAMS:
        program = private.reachable(bundled().path(name), private.account())
        script(programs / name, f'exec {program} "$@"')
    return programs.parent


@pytest.fixture
def table(tmp_path, monkeypatch):
    def made(*rows: str) -> None:
        file = tmp_path / f"builds{len(list(tmp_path.glob('builds*')))}.csv"
        head = "name,version,commit,configuration,bits,system,claims,about\n"
        file.write_text(head + "".join(f"{row}\n" for row in rows))
        monkeypatch.setattr(builds, "TABLE", file)

    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_build_is_added_listed_used_and_forgotten(call, folder, registry, table):
    table("mine,18.6,0123456789abcdef,-O2,64,PostgreSQL,hot-001 hot-002,as it was")
    script(folder / "bin" / "pg_config", "echo --with-things")
    before, unregistered = contents(folder), call("releases")
    assert "not registered" in unregistered[1] and "hot-001 hot-002" in unregistered[1]
    status, said, _ = call("releases", "add", "mine", folder)
    assert status == 0 and "-p programs=mine" in said
    build = builds.registered()["mine"]
    kept = (build.version, build.block_size, build.configuration, build.assertions)
    assert kept == (bundled().version, 8192, "--with-things", False)
    said = call("releases")[1]
    assert str(folder) in said and "not registered" not in said
    assert chapter_parameters("hot", {"programs": "mine"}).programs == "mine"
    assert fetched.chosen("mine").bindir == folder / "bin"
    assert call("releases", "remove", "mine")[0] == 0 and contents(folder) == before
    assert builds.registered() == {} and call("releases") == unregistered


def test_a_build_that_moved_is_told_in_one_paragraph(call, folder):
    builds.add("mine", folder)
    folder.rename(folder.with_name("elsewhere"))
    status, _, error = call("run", "hot", "-p", "programs=mine")
    assert status == 2 and f"{folder / 'bin'} is gone" in error and "Traceback" not in error
    assert "releases add mine FOLDER" in error and call("releases")[0] == 0
    builds.add("mine", folder.with_name("elsewhere"))
    assert fetched.chosen("mine").bindir.parent.name == "elsewhere"


def test_a_build_that_is_another_one_by_now_is_told(folder, tmp_path, registry):
    builds.add("mine", folder)
    for name in SERVER_PROGRAMS:
        # its version is asked for once, so another folder's stands in for it
        script(tmp_path / name, "echo 'postgres (PostgreSQL) 17.1'")
    stored = json.loads(registry.read_text())
    stored["mine"]["folder"] = str(tmp_path)
    registry.write_text(json.dumps(stored))
    with pytest.raises(ServerError, match=r"mine, .*holds PostgreSQL 17\.1.*releases add mine"):
        fetched.chosen("mine")


def test_what_does_not_run_is_not_registered(call, tmp_path, folder):
    status, _, error = call("releases", "add", "mine", tmp_path / "nowhere")
    assert status == 1 and "postgres, initdb and pg_ctl" in error
    script(folder / "bin" / "initdb", '[ "$1" = --version ] || { echo broken >&2; exit 1; }')
    status, _, error = call("releases", "add", "mine", folder)
    assert status == 1 and "broken" in error and "Traceback" not in error
    assert builds.registered() == {}


def test_a_build_that_cannot_be_started_is_left_aside_alone(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(builds, "LEFT", {})
    spoiled = Path(shutil.copytree(folder, tmp_path / "spoiled"))
    builds.add("whole", folder)
    builds.add("spoiled", spoiled)
    script(spoiled / "bin" / "initdb", '[ "$1" = --version ] || { echo broken >&2; exit 1; }')
    groups = [["whole"], ["whole", "spoiled"]]
    assert builds.complete(groups, fetched.build) == ["whole"]
    assert [*builds.LEFT] == ["spoiled"] and "broken" in builds.LEFT["spoiled"]
    with pytest.raises(CannotMeasure, match="spoiled can't be started"):
        builds.complete(groups[1:], fetched.build)


@pytest.mark.parametrize("name", ["9.3", "../x", "a b", "-x", ""])
def test_names_are_words_that_no_package_has(call, folder, table, name):
    assert call("releases", "add", "--", name, folder)[0] == 2 and builds.registered() == {}


def test_what_nobody_registered_is_told_and_so_is_a_registry_that_was_spoiled(
    call, table, registry
):
    table("before-hot,8.3devel,bbf4fdc2,,64,PostgreSQL,hot-001,the commit before")
    status, _, error = call("releases", "remove", "nobody")
    assert status == 2 and "no release 'nobody'" in error
    status, _, error = call("run", "hot", "-p", "programs=before-hot")
    assert status == 2 and "commit bbf4fdc2" in error and "add before-hot FOLDER" in error
    registry.parent.mkdir(parents=True, exist_ok=True)
    registry.write_text("{")
    status, _, error = call("releases")
    assert status == 1 and "Remove that file" in error


def test_another_system_is_registered_as_the_table_tells(folder, table, tmp_path):
    ingres = "other,6.3,1981,,16,INGRES,ston-001,another system"
    table(ingres, "old,7.4.30,fd7fdb,,64,PostgreSQL,lai-001,too old to be started")
    (tmp_path / "tree").mkdir()
    build = builds.add("other", tmp_path / "tree")
    assert (build.version, build.bits) == ("6.3", 16) and build.place == tmp_path / "tree"
    with pytest.raises(ServerError, match="no executable postgres"):
        _ = build.programs
    assert builds.add("old", tmp_path / "tree").version == "7.4.30"
    with pytest.raises(ServerError, match="no folder"):
        builds.add("other", tmp_path / "nowhere")


# ---- the table of builds that claims ask for

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
