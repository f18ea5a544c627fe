"""Directories, processes and an account that are ours alone.

A `PrivateDirectory` carries a marker naming its owner, and only what carries our
marker is ever removed.  Three things remove it: `close()`, the interpreter's exit,
and, when the owner died without a word (kill -9, SIGTERM, a crash), its guardian: a
shell that waits on a pipe from the owner and then runs `sweep()`.  Should the
guardian have died as well, the next run's `sweep()` finds what is left.
What PostgreSQL does in such a directory is told in `cluster.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self, TypedDict

import psutil

from pgrerun.errors import ServerError

PREFIX = "pgrerun-"
MARKER = "owner.json"
# Short enough for a Unix socket below them wherever the base directory lies.
SHORT_PLACES = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


# -- the account ------------------------------------------------------------------


class AsAccount(TypedDict, total=False):
    """Keywords for `subprocess` that say as whom; none of them: as ourselves."""

    user: int
    group: int
    extra_groups: list[str | int]


class Placed(AsAccount):
    """Keywords for `subprocess` that say as whom, where and with which environment."""

    env: dict[str, str]
    cwd: Path


@dataclass(frozen=True)
class Account:
    """The account that server and tools run as; PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    @property
    def popen(self) -> AsAccount:
        """Keywords for `subprocess` that drop to this account, extra groups included."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def account() -> Account | None:
    """The unprivileged account to drop to, or None when we aren't root.

    An existing account is taken, never created.  Not `postgres`: on a host that has
    a server of its own, that account may signal and read what isn't ours.
    """
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return Account(name, entry.pw_uid, entry.pw_gid)
    raise ServerError(
        "PostgreSQL doesn't run as root, and this host has neither an account `nobody` nor "
        "`daemon` to drop to. Run as an ordinary user, or add the line "
        "`nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin` to /etc/passwd."
    )


def drop(who: Account | None) -> AsAccount:
    """Keywords for `subprocess` to run as `who`; none when we aren't root."""
    return who.popen if who else {}


def as_account(who: Account | None, command: list[str]) -> tuple[list[str], AsAccount]:
    """A command, and keywords for `subprocess`, that ends up running as `who`.

    To change the user itself, `subprocess` forks, and a process as large as ours takes tens of
    milliseconds for that. setpriv, where there is one, changes it after a start that copies
    nothing.
    """
    prefix = setpriv(who)
    return ([*prefix, *command], {}) if prefix else (command, drop(who))


@cache
def setpriv(who: Account | None) -> tuple[str, ...]:
    """What goes before a command to run it as `who`.

    Empty where that can't be had (busybox has a setpriv without users).
    """
    program = shutil.which("setpriv")
    if who is None or program is None:
        return ()
    prefix = (program, f"--reuid={who.uid}", f"--regid={who.gid}", "--clear-groups", "--")
    works = subprocess.run([*prefix, "true"], capture_output=True, cwd="/").returncode == 0
    return prefix if works else ()


def base_directory() -> Path:
    """Where clusters live: PGRERUN_TMPDIR, else /var/tmp (/tmp may be memory)."""
    return Path(os.environ.get("PGRERUN_TMPDIR") or "/var/tmp").absolute()


# -- who owns a directory ---------------------------------------------------------


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def process_stat(pid: int) -> list[str]:
    """The kernel's line on a process from field 3 of proc_pid_stat(5), its state, on.

    OSError if there is none.

    The name (field 2) may hold spaces and brackets.
    """
    return read_proc(f"{pid}/stat").rpartition(")")[2].split()


def read_proc(name: str) -> str:
    """A file of the kernel's about processes, whole; OSError if there is none.

    All of a tree's are read around each measurement: so without Python's layers, which take three
    times as long as the kernel.
    """
    file = os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = iter(lambda: os.read(file, 1 << 16), b"")
        return b"".join(parts).decode(errors="surrogateescape")
    finally:
        os.close(file)


def started_at(pid: int) -> str | None:
    """When process `pid` started, in the kernel's own units; None if there is none."""
    try:
        # Field 22 of proc_pid_stat(5), in clock ticks since boot: unlike a wall-clock
        # time it doesn't move when the clock is set.
        fields = process_stat(pid)
        return None if fields[0] in "ZX" else fields[19]  # a zombie owns nothing any more
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    try:
        return str(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


class PrivateDirectory:
    """A new directory `pgrerun-XXXXXXXX` below `base`, removed by `close()`.

    A context manager that closes itself. Unlike tempfile's, it is removed also if this process is
    killed, by its guardian or by the next run. `who` may enter it (and only enter: subdirectories
    are made for it by `folder`). Raises ServerError when it can't be made there.
    """

    def __init__(self, base: Path, who: Account | None = None):
        self._owner = os.getpid()
        self._who = who
        _guard(base)  # first: what it is to guard against can happen at once
        _watch_signals()
        self._marked = False
        with contextlib.ExitStack() as making:
            making.enter_context(while_making(base))
            try:
                self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
            except OSError as error:
                raise ServerError(_no_room(base, error)) from None
            _open.add(self)
            self._finish(base, making)

    def _finish(self, base: Path, making: contextlib.ExitStack) -> None:
        """Mark the new directory, after which it needs no other protection, and open it."""
        who = self._who
        try:
            self._claim()
            making.close()
            if who:
                self.path.chmod(0o711)
                self._require_enterable(who)
        except OSError as error:
            self.close()
            raise ServerError(_no_room(base, error)) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _claim(self) -> None:
        """Put the marker there complete and locked: a sweep sees all of it or nothing."""
        draft = self.path / (MARKER + ".new")
        # The lock outlives no process that holds it, so it tells dead from alive even
        # where process ids can't be compared: another container on the same disk.
        self._lock = os.open(draft, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        pid = os.getpid()
        owner = {"pid": pid, "started": started_at(pid), "boot": boot_id()}
        os.write(self._lock, json.dumps(owner).encode())
        draft.rename(self.path / MARKER)
        self._marked = True

    def _require_enterable(self, who: Account) -> None:
        probe = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(self.path)]
        if subprocess.run(probe, cwd="/", **drop(who)).returncode:
            raise ServerError(
                f"Run as root, the server drops to the account `{who.name}`, which can't enter "
                f"{self.path.parent}. Name a directory that it can enter in PGRERUN_TMPDIR."
            )

    def folder(self, name: str) -> Path:
        """A new folder in here that belongs to the account, closed to all others."""
        folder = self.path / name
        folder.mkdir(mode=0o700)
        if self._who:
            os.chown(folder, self._who.uid, self._who.gid)
        return folder

    def close(self) -> None:
        """Remove the directory. Safe to repeat; a forked child's call does nothing."""
        if os.getpid() != self._owner or self not in _open:
            return
        if self.path.exists():
            if self._marked:
                require_ours(self.path)
            _remove(self.path)
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._lock)
        _open.discard(self)


_open: set[PrivateDirectory] = set()


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
            os.fchown(file, who.uid, who.gid)


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
            if found.st_uid != who.uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
                os.chown(entry, who.uid, who.gid, follow_symlinks=False)


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


# -- processes and shared memory ---------------------------------------------------


def children(pid: int, settled: bool = True) -> list[int]:
    """Ids of the processes that one has started and not yet reaped, oldest first.

    As the kernel lists them, thread by thread. psutil would read the whole process table,
    which costs more than many a measurement.

    settled: whether to read until two readings are equal, which only who compares them itself may
        leave out.
    """
    if not os.path.exists(
        f"/proc/{pid}/task/{pid}/children"
    ):  # not Linux, a kernel that doesn't list them, or none
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
        return []
    if not settled:
        return listed_children(pid)
    # a child that ends while the kernel walks its list may hide the next one: only two equal
    # readings count
    readings = (listed_children(pid) for _ in range(20))
    latest = next(readings)
    for reading in readings:
        if reading == latest:
            break
        latest = reading
    return latest


def listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, read_proc(f"{pid}/task/{task}/children").split())
    return found


# a program that valgrind runs has the name of the tool; Spark's executors are Java's
_PROGRAM = re.compile(
    r"(postgres|initdb|psql|pgbench|pg_\w+|valgrind(\.bin)?|callgrind-\w+|memcheck-\w+|vgdb|java)$"
)


def processes(directory: Path) -> list[psutil.Process]:
    """PostgreSQL's processes, server and tools, and Spark's, that work in `directory`.

    A server's processes all stand in their data directory, also those whose postmaster
    is dead, and tools in `scratch`. Neither holds for anybody else's: the directory is
    ours. A person's shell may stand there as well, so the program's name counts too.
    """
    found = []
    inside = f"{directory.resolve()}/"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if _PROGRAM.match(process.name()) and process.cwd().startswith(inside):
                found.append(process)
    return found


def end_processes(directory: Path) -> None:
    """End the server processes in `directory`: immediate shutdown, then SIGKILL.

    SIGQUIT first, because a postmaster that ends itself also returns its shared memory. Java takes
    it for a question, and has nothing to return.
    """
    found = processes(directory)
    ids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.Error):
            if process.name() == "java":
                process.kill()
            elif process.ppid() not in ids:
                process.send_signal(signal.SIGQUIT)
    alive = await_end(found, patience=8)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    await_end(alive, patience=5)


def await_end(running: list[psutil.Process], patience: float) -> list[psutil.Process]:
    """Wait up to `patience` seconds for processes to end; returns those that didn't.

    A zombie has ended: in a container whose process 1 reaps none it stays one for ever.
    """
    deadline = time.monotonic() + patience
    while running := [process for process in running if not has_ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return running


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# -- shared memory -------------------------------------------------------------------

_DYNAMIC = "/dev/shm/PostgreSQL."
_HEADER = struct.Struct("=iixxxxxxxxxxxxxxxxI")  # PGShmemHeader: magic, creator, ..., dsm_control
_MAGIC, _DYNAMIC_MAGIC = 679834894, 0x9A503D32  # src/include/storage/pg_shmem.h, ipc/dsm.c


def return_shared_memory(data_directory: Path) -> None:
    """Return the shared memory that a killed server or single-user backend left.

    The lock file in the data directory names its System V segment, whose header names the
    control segment of its dynamic shared memory, which lists the others. Only what nobody is
    attached to any more goes, and only what belongs to the data directory's own account:
    that account can write the lock file, and must gain nothing by it.
    """
    try:
        owner = os.lstat(data_directory).st_uid
        lock = os.open(data_directory / "postmaster.pid", os.O_RDONLY | os.O_NOFOLLOW)
        with open(lock) as file:
            lines = file.read(4096).splitlines()
        creator, (key, segment) = abs(int(lines[0])), map(int, lines[6].split())
        listed = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except (OSError, ValueError, IndexError):
        return
    for line in listed:
        fields = [int(field) for field in line.split()]
        if fields[:2] != [key, segment] or fields[6] != 0 or fields[9] != owner:
            continue  # another one's, or still in use: key, id, attached processes, creator's uid
        header = _shared_header(segment)
        if header is None or header[:2] != (_MAGIC, creator):
            continue
        for part in _dynamic_segments(Path(f"{_DYNAMIC}{header[2]}")):
            with contextlib.suppress(OSError):
                if part.lstat().st_uid == owner:
                    part.unlink()
        _libc().shmctl(segment, 0, None)  # IPC_RMID


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_int
    libc.shmdt.argtypes = (ctypes.c_void_p,)
    libc.shmctl.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    return libc


def _shared_header(segment: int) -> tuple[int, int, int] | None:
    """Magic, creator's process id and dynamic control segment's handle of a server's segment."""
    address = _libc().shmat(segment, None, 0o10000)  # SHM_RDONLY
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        magic, creator, control = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    finally:
        _libc().shmdt(address)
    return magic, creator, control


def _dynamic_segments(control: Path) -> list[Path]:
    """The segments that a server's control segment lists, and that segment itself.

    `dsm_control_header` in PostgreSQL's src/backend/storage/ipc/dsm.c: magic, number of
    items, room for items; each item starts with its handle, whatever the release.
    """
    try:
        content = control.read_bytes()
        magic, used, room = struct.unpack_from("=3I", content)
    except (OSError, struct.error):
        return []
    if magic != _DYNAMIC_MAGIC or not used <= room:
        return []
    size = (len(content) - 16) // room
    handles = [struct.unpack_from("=I", content, 16 + size * item)[0] for item in range(used)]
    return [Path(f"{_DYNAMIC}{handle}") for handle in handles if handle] + [control]


# -- programs in places that the account can't enter --------------------------------

copies: dict[Path, PrivateDirectory] = {}
reachable_copies: dict[Path, Path] = {}


def reachable(program: Path, who: Account | None) -> Path:
    """`program`, or its copy in a private place if `who` can't run it where it is.

    A checkout below a home directory of mode 700 is the usual case. The whole
    installation is copied once per process, keeping its layout: programs find their
    shared files and libraries relative to themselves.
    """
    if who is None:
        return program
    if program not in reachable_copies:
        if _runs(program, who):
            reachable_copies[program] = program
        else:
            top = _installation(program)
            copy = (
                copies[top] if top in copies else copies.setdefault(top, _copy(top, program, who))
            )
            found = copy.path / program.relative_to(top)
            if not _runs(found, who):
                raise ServerError(
                    f"The account `{who.name}` can run neither {program} nor its copy below"
                    f" {copy.path.parent} (mounted noexec?). Name another directory in"
                    " PGRERUN_TMPDIR."
                )
            reachable_copies[program] = found
    return reachable_copies[program]


def forget_copy(top: Path) -> None:
    """Remove the copy of an installation, if there is one, before this process ends."""
    if copy := copies.pop(top, None):
        copy.close()
    for program in [program for program in reachable_copies if program.is_relative_to(top)]:
        del reachable_copies[program]


def _runs(program: Path, who: Account) -> bool:
    try:
        return (
            subprocess.run(
                [program, "--version"], capture_output=True, cwd="/", **drop(who)
            ).returncode
            == 0
        )
    except OSError:
        return False


def _installation(program: Path) -> Path:
    """The directory that holds `program`'s installation and the libraries beside it."""
    prefix = program.parent.parent
    # auditwheel puts a wheel's libraries beside its package, as PACKAGE.libs.
    wheel = prefix.parent.with_name(prefix.parent.name + ".libs")
    return wheel.parent if wheel.is_dir() else prefix


def _copy(top: Path, program: Path, who: Account) -> PrivateDirectory:
    prefix = program.parent.parent
    parts = [prefix / name for name in ("bin", "lib", "lib64", "share")]
    parts.append(top / (prefix.parent.name + ".libs"))
    copy = PrivateDirectory(base_directory(), who)
    try:
        for part in filter(Path.is_dir, parts):
            target = copy.path / part.relative_to(top)
            shutil.copytree(
                part, target, symlinks=True, ignore=shutil.ignore_patterns("*.a", "doc", "man")
            )
        for folder, folders, names in os.walk(copy.path):
            for name in folders + names:
                path = Path(folder, name)
                if name != MARKER and not path.is_symlink():
                    path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    except (OSError, shutil.Error) as error:
        copy.close()
        if isinstance(error, shutil.Error):  # one line per file; the first says it all
            error = OSError(error.args[0][0][2])
        raise ServerError(_no_room(base_directory(), error)) from None
    except BaseException:
        copy.close()
        raise
    return copy


# -- leftovers --------------------------------------------------------------------


@contextlib.contextmanager
def while_making(base: Path) -> Iterator[None]:
    """While a directory below `base` is made and not marked yet, no sweep takes it away.

    The lock is gone with whoever is killed meanwhile. Where `base` can't be locked, so that a sweep
    can't either, it waits for an hour.
    """
    try:
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        for _ in range(50):  # a sweep that looks right now has done so in a moment
            try:
                fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                break
            else:
                break
        yield
    finally:
        os.close(folder)


def _remove_unmarked(directory: Path) -> bool:
    """Remove a directory without a marker if nobody can be about to mark it.

    Its owner was killed between making and marking it, so it is empty or has the draft of a
    marker; anything else isn't ours. An hour is longer than any owner takes.
    """
    if directory.stat().st_uid != os.geteuid():
        return False
    base = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if time.time() - directory.stat().st_mtime <= 3600:
            fcntl.flock(base, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError while any is being made
        if (directory / MARKER).exists():  # it was, just now
            return False
        (directory / (MARKER + ".new")).unlink(missing_ok=True)
        directory.rmdir()
        return True
    finally:
        os.close(base)


def sweep(*further: Path) -> list[Path]:
    """Remove what killed runs of this user left behind; returns what was removed.

    Looks in `base_directory()`, in the places for sockets and in `further` ones.  A directory
    goes only if its marker is this user's, nobody holds the marker's lock, and the process
    named there is gone (same boot, same start time).
    """
    removed, found = [], []
    for place in dict.fromkeys((base_directory(), *SHORT_PLACES, *further)):
        with contextlib.suppress(OSError):
            found = sorted(place.glob(PREFIX + "?" * 8))
        for directory in found:
            with contextlib.suppress(ServerError, OSError):
                if _sweep_one(directory):
                    removed.append(directory)
    return removed


def _sweep_one(directory: Path) -> bool:
    if not (directory / MARKER).exists():
        return _remove_unmarked(directory)
    require_ours(directory)
    lock = os.open(directory / MARKER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = json.loads(os.read(lock, 4096) or b"{}")
        alive = owner.get("boot") == boot_id() and started_at(owner["pid"]) == owner["started"]
        if alive:  # the lock was free all the same: a file system without locks
            return False
        _remove(directory)
        return True
    except (BlockingIOError, ValueError, KeyError):
        return False
    finally:
        os.close(lock)


@dataclass(frozen=True)
class _Guardian:
    """A shell that waits for our end, and the process that it was started by."""

    process: subprocess.Popen[bytes]
    ward: int


_guardians: dict[Path, _Guardian] = {}
# This room alone: the whole library takes seconds to import, and its owner may have
# been killed for the memory it took.
_SWEEPER = """
import sys, types
sys.modules["pgrerun"] = types.ModuleType("pgrerun")
sys.modules["pgrerun"].__path__ = sys.argv[1:]
from pgrerun.lab.server.private import sweep
sweep()
"""


def _guard(base: Path) -> None:
    """Start the guardian of this process for directories below `base`, once.

    Not PR_SET_PDEATHSIG: that is bound to the thread that started the server, which in
    a notebook or a thread pool may end long before the process.
    """
    mine = [place for place, guardian in _guardians.items() if guardian.ward == os.getpid()]
    if base in mine or (mine and base in SHORT_PLACES):  # a sweep looks there in any case
        return
    environment = os.environ | {"PGRERUN_TMPDIR": str(base)}
    package = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            'read -r _; exec "$1" -c "$2" "$3"',
            "sh",
            sys.executable,
            _SWEEPER,
            package,
            str(os.getpid()),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,  # Ctrl-C and a killed process group must not reach it
    )
    _guardians[base] = _Guardian(process, os.getpid())


# -- the end of the process -----------------------------------------------------------

_last_acts: list[Callable[[], None]] = []


def before_exit(act: Callable[[], None], forget: bool = False) -> None:
    """Have `act`, which must not raise, called before this process ends; or `forget` it."""
    if forget:
        with contextlib.suppress(ValueError):
            _last_acts.remove(act)
    else:
        _last_acts.append(act)
        _watch_signals()


@atexit.register
def close_all() -> None:
    for act in reversed(_last_acts[:]):
        act()
    for directory in list(_open):
        with contextlib.suppress(ServerError, OSError):
            directory.close()
    for guardian in _guardians.values():
        # A forked child has its parent's guardian on its list, and lets it be.
        if guardian.ward == os.getpid() and not _open:
            guardian.process.kill()
            guardian.process.wait()


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
