"""Directories and an account that are ours alone, and processes that end when we do.

A `PrivateDirectory` is marked by a file that its owner keeps locked. `close()` removes it, and so
does the interpreter's exit. When the owner dies without a word (kill -9, a crash), the kernel ends
its servers and tools with it (`end_with_us`), and the next run's `sweep()`, which knows dead
owners by their free locks, removes the directory.
What PostgreSQL does in such a directory is told in `cluster.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Self

from pgrerun.errors import ServerError
from pgrerun.lab.server.processes import end_processes
from pgrerun.lab.server.shared_memory import return_shared_memory

PREFIX = "pgrerun-"
MARKER = "owner.lock"
# Short enough for a Unix socket below them wherever the base directory lies.
SHORT_PLACES = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


def base_directory() -> Path:
    """Where clusters live: PGRERUN_TMPDIR, else /var/tmp (/tmp may be memory)."""
    return Path(os.environ.get("PGRERUN_TMPDIR") or "/var/tmp").absolute()


# -- as whom, and until when -----------------------------------------------------------


# The account that server and tools run as; PostgreSQL refuses to run as root.
Account = pwd.struct_passwd


def account() -> Account | None:
    """The unprivileged account to drop to, or None when we aren't root.

    An existing account is taken, never created.  Not `postgres`: on a host that has
    a server of its own, that account may signal and read what isn't ours.
    """
    if os.geteuid() != 0:
        if nameless := unnamed_account():
            raise ServerError(nameless)
        return None
    for name in ("nobody", "daemon"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return entry
    raise ServerError(
        "PostgreSQL doesn't run as root, and this host has neither an account `nobody` nor "
        "`daemon` to drop to. Run as an ordinary user, or add the line "
        "`nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin` to /etc/passwd."
    )


def unnamed_account() -> str | None:
    """Why this account can make no server, as programs that ask for its name get none."""
    with contextlib.suppress(KeyError):
        pwd.getpwuid(os.geteuid())
        return None
    return (
        f"PostgreSQL's initdb asks for the name of the account that it runs as, and user id"
        f" {os.geteuid()} has none: it isn't in /etc/passwd. Add the line"
        f" `reader:x:{os.geteuid()}:{os.getegid()}::/tmp:/bin/sh` there, or run as an account that"
        " it has (in a container as root, which drops to `nobody`), or on a server of yours by"
        " --server."
    )


def drop(who: Account | None) -> dict[str, Any]:
    """Keywords for `subprocess` to run as `who`, extra groups included; none as ourselves."""
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}


def end_with_us(who: Account | None) -> dict[str, Any]:
    """Keywords for `subprocess` to run as `who`, and to get SIGQUIT when whoever starts it dies.

    That is bound to the starting thread: `start` has one that lasts.
    """
    placed = drop(who)
    if sys.platform == "linux":
        libc, us = ctypes.CDLL(None), os.getpid()

        def in_child() -> None:  # after the account was changed, which would undo it
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a job in the background has it ignored
            libc.prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG, linux/prctl.h
            if os.getppid() != us:  # dead already
                os._exit(1)

        placed["preexec_fn"] = in_child
    return placed


def start(command: list[str], log: int, placed: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a server whose words go into `log`, out of reach of Ctrl-C.

    From a thread that ends with this process, and not with a notebook's cell or a thread pool.
    """
    started = _starter(os.getpid()).submit(
        lambda: subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            **placed,
        )
    )
    return started.result()


@cache
def _starter(pid: int) -> ThreadPoolExecutor:  # a forked child has none of its parent's threads
    return ThreadPoolExecutor(1)


def as_account(who: Account | None, command: list[str]) -> tuple[list[str], dict[str, Any]]:
    """A command, and keywords for `subprocess`, that runs as `who` and ends with the thread that
    starts it.

    To do that itself, `subprocess` forks, and a process as large as ours takes tens of milliseconds
    for that. setpriv, where there is one, does it after a start that copies nothing.
    """
    prefix = setpriv(who)
    return ([*prefix, *command], {}) if prefix else (command, end_with_us(who))


@cache
def setpriv(who: Account | None) -> tuple[str, ...]:
    """What goes before a command to run it as `who` and end it with us.

    By SIGTERM, as a job in the background has SIGQUIT ignored and a client has nothing to return.
    Empty where that can't be had (busybox has a setpriv without either).
    """
    program = shutil.which("setpriv")
    if program is None:
        return ()
    change = (f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups") if who else ()
    prefix = (program, *change, "--pdeathsig=TERM", "--")
    works = subprocess.run([*prefix, "true"], capture_output=True, cwd="/").returncode == 0
    return prefix if works else ()


# -- directories ---------------------------------------------------------------------


class Closing(ABC):
    """A context manager that closes itself."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing of ours behind. Safe to repeat."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except ServerError as failure:
            if error is None:
                raise
            error.add_note(str(failure))  # what went wrong first is what to read first


class PrivateDirectory(Closing):
    """A new directory `pgrerun-XXXXXXXX` below `base`, removed by `close()`.

    Unlike tempfile's, it is removed also if this process is killed, by the next run. `who` may
    enter it (and only enter: subdirectories are made for it by `folder`). Raises ServerError when
    it can't be made there.
    """

    def __init__(self, base: Path, who: Account | None = None):
        self._owner, self._who = os.getpid(), who
        try:
            self.path, self._lock = _make_locked(base)
        except OSError as error:
            raise ServerError(_no_room(base, error)) from None
        before_exit(self.close)
        if who:
            try:
                self.path.chmod(0o711)
                self._require_enterable(who)
            except BaseException:
                self.close()
                raise

    def _require_enterable(self, who: Account) -> None:
        probe = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(self.path)]
        if subprocess.run(probe, cwd="/", **drop(who)).returncode:
            raise ServerError(
                f"Run as root, the server drops to the account `{who.pw_name}`, which can't enter "
                f"{self.path.parent}. Name a directory that it can enter in PGRERUN_TMPDIR."
            )

    def folder(self, name: str) -> Path:
        """A new folder in here that belongs to the account, closed to all others."""
        folder = self.path / name
        folder.mkdir(mode=0o700)
        if self._who:
            os.chown(folder, self._who.pw_uid, self._who.pw_gid)
        return folder

    def close(self) -> None:
        """Remove the directory. Safe to repeat; a forked child's call does nothing."""
        if os.getpid() != self._owner or self._lock < 0:
            return
        if self.path.exists():
            require_ours(self.path)
            _remove(self.path)
        os.close(self._lock)
        self._lock = -1
        before_exit(self.close, forget=True)


def _make_locked(base: Path) -> tuple[Path, int]:
    """A new directory and its locked marker; another one where a sweep was quicker to lock it."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        try:
            lock = _lock(path, os.O_CREAT)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        if lock is not None:
            return path, lock


def _lock(directory: Path, creating: int = 0) -> int | None:
    """A directory's marker, locked; None if there is none, or another has locked it.

    The lock outlives no process that holds it, so it tells dead from alive even where process ids
    can't be compared: another container on the same disk.
    """
    marker = directory / MARKER
    with contextlib.suppress(BlockingIOError, FileNotFoundError), contextlib.ExitStack() as opening:
        lock = os.open(marker, creating | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        opening.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), marker.stat()):  # nobody has removed it meanwhile
            opening.pop_all()
            return lock
    return None


def require_ours(directory: Path) -> None:
    """Raise ServerError unless `directory` carries a marker that this user wrote."""
    marker = directory / MARKER
    try:
        ours = all(
            check(os.lstat(path).st_mode) and os.lstat(path).st_uid == os.geteuid()
            for path, check in ((directory, stat.S_ISDIR), (marker, stat.S_ISREG))
        )
    except OSError:
        ours = False
    if not ours or not directory.name.startswith(PREFIX):
        raise ServerError(
            f"{directory} wasn't made by this user's pgrerun ({MARKER} is missing or belongs to "
            "someone else), so it stays. Remove it yourself if you know what it is."
        )


def _remove(directory: Path) -> None:
    """Remove a directory that the caller knows to be ours, with the servers in it."""
    end_processes(directory)
    # of the server, and of single-user backends on copies of its files
    for pattern in ("data/postmaster.pid", "scratch/*/postmaster.pid"):
        for lock in directory.glob(pattern):
            return_shared_memory(lock.parent)
    for _ in range(3):  # somebody who was ended may have made another file meanwhile
        for entry in directory.iterdir():
            if entry.name == MARKER:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    if left := [entry.name for entry in directory.iterdir() if entry.name != MARKER]:
        raise ServerError(
            f"Can't remove all of {directory}: {', '.join(left)} could not be removed. The next"
            " run tries again."
        )
    # The marker goes last: whatever interrupts this leaves a directory that can be swept.
    (directory / MARKER).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        directory.rmdir()


def sweep(*further: Path) -> list[Path]:
    """Remove what killed runs of this user left behind; returns what was removed.

    Looks in `base_directory()`, in the places for sockets and in `further` ones. A directory goes
    if it carries this user's marker, or is empty and this user's, and nobody has locked it.
    """
    removed = []
    for place in dict.fromkeys((base_directory(), *SHORT_PLACES, *further)):
        for directory in sorted(place.glob(PREFIX + "?" * 8)):
            with contextlib.suppress(ServerError, OSError):
                if _sweep_one(directory):
                    removed.append(directory)
    return removed


def _sweep_one(directory: Path) -> bool:
    # An empty one is of an owner that was killed before it had made its marker, or after it had
    # removed that. It isn't locked: a marker made for that kept an owner from removing it.
    if directory.lstat().st_uid == os.geteuid() and not any(directory.iterdir()):
        directory.rmdir()
        return True
    require_ours(directory)
    lock = _lock(directory)
    if lock is None:
        return False
    try:
        _remove(directory)
    finally:
        os.close(lock)
    return True


def _no_room(base: Path, error: OSError) -> str:
    return f"Can't make a directory below {base}: {error.strerror or error}. {advice(base)}"


def advice(place: Path) -> str:
    """The sentence on room and where else to go that ends every message about disks."""
    try:
        free = shutil.disk_usage(place).free
        room = f"{free / 1e6:,.0f} MB are free there. "
    except OSError:
        room = ""
    return (
        f"{room}Name a directory on a local disk with at least 1 GB free "
        "in the environment variable PGRERUN_TMPDIR."
    )


# -- files where the account can write -------------------------------------------------


def create(path: Path, text: str, who: Account | None = None) -> None:
    """Make a file that doesn't exist yet, readable by all and belonging to the account.

    In a folder that the account can write to it might be replaced by a link at any moment, so
    everything is done to the open file.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with open(file, "w") as opened:
        opened.write(text)
        os.fchmod(file, 0o644)
        if who:
            os.fchown(file, who.pw_uid, who.pw_gid)


@contextlib.contextmanager
def passing(folder: Path, prefix: str) -> Iterator[Path]:
    """How the names of new files in a folder begin; what is called so at the end is removed."""
    stem = folder / f"{prefix}-{uuid.uuid4().hex[:12]}"
    try:
        yield stem
    finally:
        for path in folder.glob(f"{stem.name}*"):
            path.unlink(missing_ok=True)


def forget(path: str | Path) -> None:
    """Have the operating system's cache forget a file, once it is all on the disk.

    fsync first: dirty pages can't be dropped. Needs no privilege and touches nobody else's files,
    unlike /proc/sys/vm/drop_caches.
    """
    file = opened(path)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def opened(path: str | Path, flags: int = 0) -> int:
    """A descriptor for reading a regular file where the account may have put something else.

    A link is not followed, and a pipe is not waited for: OSError for both.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return file


def hand_over(folder: Path, who: Account) -> None:
    """Give the account what callers of ours have put into its folder, whatever their umask.

    Not what has a second name: that may be anybody's file, linked to from here.
    """
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found = entry.lstat()
            if found.st_uid != who.pw_uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
                os.chown(entry, who.pw_uid, who.pw_gid, follow_symlinks=False)


# -- programs in places that the account can't enter --------------------------------

_copies: dict[Path, PrivateDirectory] = {}


def reachable(program: Path, who: Account | None) -> Path:
    """`program`, or its copy in a private place if `who` can't run it where it is.

    A checkout below root's home, of mode 700, is the usual case. The whole installation is copied
    once per process, keeping its layout: programs find their shared files and libraries relative
    to themselves.
    """
    if who is None or not _failure(program, who):
        return program
    prefix = program.parents[1]
    if prefix not in _copies:
        _copies[prefix] = _copy(prefix, who)
    copy = _copies[prefix].path / program.relative_to(prefix.parents[1])
    if failure := _failure(copy, who):
        raise ServerError(
            f"The account `{who.pw_name}` can run neither {program} nor its copy below"
            f" {_copies[prefix].path.parent}: {failure} If that place is mounted noexec, name"
            " another directory in PGRERUN_TMPDIR; if a program is missing, install the release"
            " whole."
        )
    return copy


def forget_copy(prefix: Path) -> None:
    """Remove the copy of an installation, if there is one, before this process ends."""
    if copy := _copies.pop(prefix, None):
        copy.close()


@cache
def _failure(program: Path, who: Account) -> str:
    """What `program` says when `who` can't run it; empty if `who` can."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, cwd="/", **drop(who))
    except OSError as error:
        return f"{error.strerror}."
    if done.returncode == 0:
        return ""
    words = " ".join(done.stderr.decode(errors="replace").split())
    return words or f"it ends with status {done.returncode}."


def _copy(prefix: Path, who: Account) -> PrivateDirectory:
    package, needless = prefix.parent, shutil.ignore_patterns("*.a", "doc", "man")
    # auditwheel puts a wheel's libraries beside its package, as PACKAGE.libs.
    libraries = package.with_name(package.name + ".libs")
    parts = [*(prefix / name for name in ("bin", "lib", "lib64", "share")), libraries]
    copy = PrivateDirectory(base_directory(), who)
    try:
        for part in filter(Path.is_dir, parts):
            target = copy.path / part.relative_to(package.parent)
            shutil.copytree(part, target, symlinks=True, ignore=needless)
        for path in copy.path.rglob("*"):
            if path.name != MARKER and not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    except OSError as error:
        copy.close()
        if isinstance(error, shutil.Error):  # one line per file; the first says it all
            error = OSError(error.args[0][0][2])
        raise ServerError(_no_room(base_directory(), error)) from None
    except BaseException:
        copy.close()
        raise
    return copy


# -- the end of the process -----------------------------------------------------------

_last_acts: list[Callable[[], None]] = []


def before_exit(act: Callable[[], None], forget: bool = False) -> None:
    """Have `act` called before this process ends, the latest first; or `forget` it."""
    if forget:
        with contextlib.suppress(ValueError):
            _last_acts.remove(act)
    else:
        _last_acts.append(act)
        _watch_signals()


@atexit.register
def close_all() -> None:
    for act in _last_acts[::-1]:
        with contextlib.suppress(ServerError, OSError):
            act()


def _watch_signals() -> None:
    """Make SIGTERM and SIGHUP tidy up before they end the process, if nobody handles them."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _die_tidily)


def _die_tidily(number: int, frame: object) -> None:
    # Not SystemExit: a notebook's kernel would catch that and live on.
    signal.signal(number, signal.SIG_DFL)
    close_all()
    os.kill(os.getpid(), number)
