"""Where records of runs lie: folders, patterns, archives, and what DuckDB reads from elsewhere.

`find` gives one folder after the other that holds the record of a chapter; `gather` reads them.
What lies in an archive or elsewhere comes into a private folder first. Nothing there has a name
that an archive gives, so that no name leads anywhere; links and what else is no regular file are
refused; and sizes have limits, in an archive as unpacked.
"""

import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from glob import iglob
from pathlib import Path, PurePosixPath
from typing import IO, Self
from urllib.parse import urlsplit

import duckdb

from pgrerun import credentials
from pgrerun.errors import ParameterError, RecordError
from pgrerun.record.reader import MAX_FILE, MAX_FILES, visible
from pgrerun.record.schema import ENVIRONMENT, VERDICTS

MAX_UNPACKED = 16 * 2**30
"""Bytes of a tar file, which is unpacked from its beginning; a run with its pages has six million.
"""

MAX_KEPT = 4 * 2**30
"""Bytes that are copied out of an archive; a run has a million without its pages."""

MAX_MEMBERS = 1_000_000
MAX_DIRECTORY = 128 * 2**20
"""Bytes of an archive's table of contents, which is read as a whole."""

MAX_NAME = 2**16
"""Bytes of a name in an archive, and of what else stands before a file."""

MAX_DOWNLOAD = 2**30
MAX_LEVELS = 12
"""Folders in folders below a source."""

PARTS = (ENVIRONMENT, VERDICTS)
"""What each record has, beside a table of each experiment."""

_TABLE = re.compile(r"[a-z][a-z0-9_]{0,62}\.parquet")

_ARCHIVE = re.compile(r"\.(zip|tar|tar\.gz|tgz|tar\.bz2|tar\.xz)$", re.IGNORECASE)
_ADDRESS = re.compile(r"^([a-z][a-z0-9]+)://", re.IGNORECASE)
_LISTED = ("s3", "gs", "gcs", "r2", "file")  # DuckDB can list what lies there
_BY_NAME = ("http", "https")
_AT_ONCE = 32  # records that are asked for together


@dataclass(frozen=True)
class Found:
    """The folder of a chapter's record, and the words that tell the reader where it lies.

    What is `ours` is a copy in the private folder, to be removed when it was read.
    """

    words: str
    folder: Path
    ours: bool = False


@dataclass(frozen=True)
class Refused:
    """What can't be a record, or can't be reached, and why."""

    words: str
    reason: str


def check(source: str) -> None:
    """ParameterError, before anything is read, for a source that can't be one."""
    if scheme := _scheme(source):
        if urlsplit(source).username or credentials.carries_one(source):
            raise ParameterError(
                "An address must not carry a password, since records and pages would show it. Give"
                " DuckDB a secret instead (CREATE PERSISTENT SECRET), which it uses by itself."
            )
        if scheme not in (*_LISTED, *_BY_NAME):
            raise ParameterError(
                f"{source!r:.120} begins with {scheme}://; what DuckDB reads here begins with"
                f" {', '.join(f'{known}://' for known in (*_LISTED, *_BY_NAME))}."
            )
        if scheme in _BY_NAME and not _ARCHIVE.search(urlsplit(source).path):
            raise ParameterError(
                f"{source!r:.120} names no archive, and what lies below an address of the web"
                " can't be listed. Name a .zip or a .tar.gz there, or a bucket by s3://."
            )
    elif next(_places(source), None) is None:
        raise ParameterError(
            f"There is nothing at {source!r:.120}. Name a folder with run records, a pattern such"
            " as 'runs/*', an archive, or an address such as s3://bucket/runs."
        )


def find(sources: Sequence[str], scratch: Path) -> Iterator[Found | Refused]:
    """Every record below the sources, in their order, and what was refused on the way to them.

    `scratch` is a private folder, for copies of what can't be read where it lies.
    """
    for source in sources:
        if _scheme(source):
            yield from _elsewhere(source, scratch)
        else:
            for place in _places(source):
                yield from _below(place, scratch, MAX_LEVELS)


def _scheme(source: str) -> str:
    found = _ADDRESS.match(source)
    return found[1].lower() if found else ""


def _places(source: str) -> Iterator[Path]:
    if not os.path.lexists(source) and re.search(r"[*?\[]", source):
        yield from map(Path, sorted(iglob(source, recursive=True)))
    elif os.path.exists(source):
        yield Path(source)


# ---- folders


def _below(place: Path, scratch: Path, levels: int) -> Iterator[Found | Refused]:
    words = visible(str(place))
    if place.is_file():
        if place.name == ENVIRONMENT:
            yield Found(visible(str(place.parent)), place.parent)
        elif _ARCHIVE.search(place.name):
            yield from _in_archive(place, words, scratch)
        return
    try:
        inside = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError as error:
        yield Refused(words, error.strerror or str(error))
        return
    if any(entry.name == ENVIRONMENT for entry in inside):
        yield Found(words, place)
        return
    for entry in inside:
        # what is hidden, or still being written, is no finished record
        passed = entry.name.startswith(".") or re.search(r"\.(partial|aside-\w+)$", entry.name)
        archive = entry.is_file(follow_symlinks=False) and _ARCHIVE.search(entry.name)
        if passed or not (entry.is_dir(follow_symlinks=False) or archive):
            continue
        if not levels:
            yield Refused(visible(entry.path), "it lies too deep below what was named")
        else:
            yield from _below(Path(entry.path), scratch, levels - 1)


# ---- archives


class _Unpacking:
    """What an archive has of records: a folder for each, and what is wrong with some."""

    def __init__(self, scratch: Path):
        self._scratch = scratch
        self.folders: dict[str, Path] = {}
        self.faults: dict[str, str] = {}
        self._members = self._passed = self._kept = 0

    def pass_by(self, size: int) -> None:
        """Count a member; ValueError where the archive is too large."""
        self._members += 1
        self._passed += size
        if self._members > MAX_MEMBERS or self._passed > MAX_UNPACKED:
            raise ValueError(
                f"it has more than {MAX_MEMBERS} files, or {MAX_UNPACKED} bytes when it is unpacked"
            )

    def take(self, name: str, regular: bool, opened: Callable[[], IO[bytes] | None]) -> None:
        """Copy a member that is a part of a record; what is no regular file spoils its record."""
        path = PurePosixPath(name)
        where = str(path.parent)
        if not regular:
            self.faults.setdefault(where, f"{visible(path.name)[:100]} is no regular file")
        if not _part(name):
            return
        if where not in self.folders:
            self.folders[where] = Path(tempfile.mkdtemp(dir=self._scratch))
        target = self.folders[where] / path.name
        if target.exists():
            self.faults.setdefault(where, f"{path.name} is there twice")
        elif not regular:
            target.touch()
        else:
            self._copy(where, target, opened)

    def _copy(self, where: str, target: Path, opened: Callable[[], IO[bytes] | None]) -> None:
        file = opened()
        data = file.read(MAX_FILE + 1) if file else b""
        self._kept += len(data)
        if self._kept > MAX_KEPT:
            raise ValueError(f"the records in it have more than {MAX_KEPT} bytes")
        if len(data) > MAX_FILE:
            self.faults.setdefault(where, f"{target.name} has more than {MAX_FILE} bytes")
            data = b""
        target.write_bytes(data)


def _in_archive(path: Path, words: str, scratch: Path) -> Iterator[Found | Refused]:
    """The records in an archive. Of one that is damaged, or too large, none is given."""
    unpacking = _Unpacking(scratch)
    try:
        unpack = _unzip if zipfile.is_zipfile(path) else _untar
        unpack(path, unpacking)
    except BaseException as error:
        for folder in unpacking.folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, _DAMAGE):
            raise
        yield Refused(words, f"the archive can't be read: {_one_line(error)}")
        return
    records = {n: one for n, one in unpacking.folders.items() if (one / ENVIRONMENT).exists()}
    if not records:
        yield Refused(words, "there is no record in it")
    for name, folder in records.items():
        place = f"{words}, {visible(name)[:200]}"
        fault = unpacking.faults.get(name)
        yield Refused(place, fault) if fault else Found(place, folder, ours=True)


_DAMAGE = (
    *(OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile),
    *(tarfile.TarError, zlib.error, lzma.LZMAError, MemoryError, struct.error),
)


def _one_line(error: BaseException) -> str:
    return visible(" ".join(str(error).split()))[:300] or type(error).__name__


def _unzip(path: Path, unpacking: _Unpacking) -> None:
    if _directory_size(path) > MAX_DIRECTORY:
        raise ValueError(f"its table of contents has more than {MAX_DIRECTORY} bytes")
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # of what is packed, only what is read is unpacked
            unpacking.pass_by(0)
            kind = stat.S_IFMT(member.external_attr >> 16)
            regular = kind in (0, stat.S_IFREG) and not member.is_dir()
            if regular or kind not in (0, stat.S_IFDIR) or _part(member.filename):
                unpacking.take(member.filename, regular, partial(archive.open, member))


def _part(name: str) -> bool:
    last = PurePosixPath(name).name
    return last in PARTS or _TABLE.fullmatch(last) is not None


def _directory_size(path: Path) -> int:
    """Bytes of a ZIP file's table of contents, as its end tells; a later check holds it to that."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2**16 - 22))
        tail = file.read()
        end = tail.rfind(b"PK\x05\x06")
        (found,) = struct.unpack_from("<L", tail, end + 12)
        if found == 2**32 - 1 and (locator := tail.rfind(b"PK\x06\x07", 0, end)) >= 0:
            (place,) = struct.unpack_from("<Q", tail, locator + 8)
            file.seek(min(place, size))
            (found,) = struct.unpack_from("<Q", file.read(56), 40)
    return int(found)


class _Member(tarfile.TarInfo):
    """A member of a tar file, which reads names of any length and then keeps them in memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) < tarfile.BLOCKSIZE:  # which tarfile takes for the end, mark or no mark
            raise ValueError("it ends in the middle")
        found = super().frombuf(buf, encoding, errors)
        if found.type in _BEFORE_A_FILE and found.size > MAX_NAME:
            raise ValueError(f"something in it has a name of more than {MAX_NAME} bytes")
        return found


_BEFORE_A_FILE = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)


def _untar(path: Path, unpacking: _Unpacking) -> None:
    with tarfile.open(path, "r|*", tarinfo=_Member) as archive:
        for member in archive:
            unpacking.pass_by(member.size)
            if not member.isdir() or _part(member.name):
                opened = partial(archive.extractfile, member)
                unpacking.take(member.name, member.isreg(), opened)
            archive.members.clear()  # type: ignore[attr-defined]  # it would keep all of them


# ---- elsewhere


def _elsewhere(source: str, scratch: Path) -> Iterator[Found | Refused]:
    """The records that DuckDB finds at an address."""
    words = visible(source)
    try:
        with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
            if _scheme(source) != "file":
                _load(connection)
            if _ARCHIVE.search(urlsplit(source).path):
                archive = scratch / "archive"
                _download(connection, source, archive)
                yield from _in_archive(archive, words, scratch)
                archive.unlink()
            else:
                yield from _listed(connection, source, scratch)
    except duckdb.Error as error:
        yield Refused(words, f"DuckDB can't read it: {_one_line(error)}")
    except (OSError, ValueError) as error:
        yield Refused(words, _one_line(error))


def _load(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute("INSTALL httpfs")  # which asks nobody where it is here already
        connection.execute("LOAD httpfs")
    except duckdb.Error as error:
        raise RecordError(
            "DuckDB reads what isn't on this machine by its extension httpfs, which is not"
            f" here and can't be fetched ({_one_line(error)}). Connect to the network once, or"
            " copy the records into a folder and name that."
        ) from None


def _download(connection: duckdb.DuckDBPyConnection, address: str, target: Path) -> None:
    [(size,)] = connection.execute("SELECT size FROM read_blob($1)", [address]).fetchall()
    if size is not None and size > MAX_DOWNLOAD:
        raise ValueError(f"it has more than {MAX_DOWNLOAD} bytes")
    [(content,)] = connection.execute("SELECT content FROM read_blob($1)", [address]).fetchall()
    target.write_bytes(content)


def _listed(
    connection: duckdb.DuckDBPyConnection, source: str, scratch: Path
) -> Iterator[Found | Refused]:
    pattern = source if _part(source) else f"{source.rstrip('/')}/**"
    listing = connection.execute("SELECT filename, size FROM read_blob($1)", [pattern]).fetchall()
    sizes: dict[str, dict[str, int]] = {}  # by folder and file
    for name, size in listing:
        if _part(name):
            place, _, part = name.rpartition("/")
            sizes.setdefault(place, {})[part] = size
    places = sorted(place for place, parts in sizes.items() if ENVIRONMENT in parts)
    if not places:
        yield Refused(visible(source), "there is no record below it")
    for first in range(0, len(places), _AT_ONCE):
        some = places[first : first + _AT_ONCE]
        faults = {place: _fault(sizes[place]) for place in some}
        wanted = [f"{place}/{part}" for place in some if not faults[place] for part in sizes[place]]
        query = "SELECT filename, content FROM read_blob($1)"
        contents = dict(connection.execute(query, [wanted]).fetchall()) if wanted else {}
        for place in some:
            if faults[place]:
                yield Refused(visible(place), faults[place])
                continue
            folder = Path(tempfile.mkdtemp(dir=scratch))
            for part in sizes[place]:
                if f"{place}/{part}" in contents:
                    (folder / part).write_bytes(contents[f"{place}/{part}"])
            yield Found(visible(place), folder, ours=True)


def _fault(sizes: Mapping[str, int]) -> str:
    """Why files of these sizes aren't fetched; "" if they are."""
    if len(sizes) > MAX_FILES:
        return f"it has {len(sizes)} files, where {MAX_FILES} are allowed"
    large = [part for part, size in sizes.items() if size > MAX_FILE]
    return f"{large[0]} has more than {MAX_FILE} bytes" if large else ""
