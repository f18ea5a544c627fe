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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from pgrerun.errors import ServerError

PREFIX = "pgrerun-"
MARKER = "owner.json"
# Short enough for a Unix socket below them wherever the base directory lies.
SHORT_PLACES = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


# -- the account ------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """The account that server and tools run as; PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    @property
    def popen(self) -> dict:
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


def drop(who: Account | None) -> dict:
    """Keywords for `subprocess` to run as `who`; none when we aren't root."""
    return who.popen if who else {}


def as_account(who: Account | None, command: list[str]) -> tuple[list[str], dict]:
    """A command, and keywords for `subprocess`, that ends up running as `who`.

    To change the user itself, `subprocess` forks, and a process as large as ours takes tens of
    milliseconds for that. setpriv, where there is one, changes it after a start that copies nothing.
    """
    prefix = _setpriv(who)
    return ([*prefix, *command], {}) if prefix else (command, drop(who))


@cache
def _setpriv(who: Account | None) -> tuple[str, ...]:
    """What goes before a command to run it as `who`; empty where that can't be had (busybox has a setpriv without users)."""
    program = who and shutil.which("setpriv")
    if not program:
        return ()
    prefix = (program, f"--reuid={who.uid}", f"--regid={who.gid}", "--clear-groups", "--")
    works = subprocess.run([*prefix, "true"], capture_output=True, cwd="/").returncode == 0
    return prefix if works else ()


def base_directory() -> Path:
    """Where clusters live: PGRERUN_TMPDIR, else /var/tmp (/tmp may be memory)."""
    return Path(os.environ.get("PGRERUN_TMPDIR") or "/var/tmp").absolute()


# -- who owns a directory ---------------------------------------------------------


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def process_stat(pid: int) -> list[str]:
    """The kernel's line on a process from field 3 of proc_pid_stat(5), its state, on; OSError if there is none.

    The name (field 2) may hold spaces and brackets.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _started(pid: int) -> str | None:
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

    `who` may enter it (and only enter: subdirectories are made for it by `folder`).
    Raises ServerError when it can't be made there.
    """

    def __init__(self, base: Path, who: Account | None = None):
        self._owner = os.getpid()
        self._who = who
        _guard(base)  # first: what it is to guard against can happen at once
        _watch_signals()
        try:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        except OSError as error:
            raise ServerError(_no_room(base, error)) from None
        _open.add(self)
        self._marked = False
        try:
            self._claim()
            if who:
                self.path.chmod(0o711)
                self._require_enterable(who)
        except OSError as error:
            self.close()
            raise ServerError(_no_room(base, error)) from None
        except BaseException:
            self.close()
            raise
    def _claim(self) -> None:
        """Put the marker there complete and locked: a sweep sees all of it or nothing."""
        draft = self.path / (MARKER + ".new")
        # The lock outlives no process that holds it, so it tells dead from alive even
        # where process ids can't be compared: another container on the same disk.
        self._lock = os.open(draft, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        pid = os.getpid()
        owner = {"pid": pid, "started": _started(pid), "boot": _boot_id()}
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
    _remove_shared_memory(directory)
    # The marker goes last: whatever interrupts this leaves a directory that can be swept.
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name == MARKER):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ServerError(f"Can't remove all of {directory}: {error.strerror}.") from None


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


def children(pid: int) -> list[int]:
    """Ids of the processes that one has started and not yet reaped, oldest first.

    As the kernel lists them, thread by thread. psutil would read the whole process table,
    which costs more than many a measurement.
    """
    if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):  # not Linux, a kernel that doesn't list them, or none
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
        return []
    # a child that ends while the kernel walks its list may hide the next one: only two equal readings count
    readings = (_listed_children(pid) for _ in range(20))
    latest = next(readings)
    for reading in readings:
        if reading == latest:
            break
        latest = reading
    return latest


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


_PROGRAM = re.compile(r"(postgres|initdb|psql|pgbench|pg_\w+)$")


def processes(directory: Path) -> list[psutil.Process]:
    """PostgreSQL's processes, server and tools, that work in `directory`.

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

    SIGQUIT first, because a postmaster that ends itself also returns its shared memory.
    """
    found = processes(directory)
    ids = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.Error):
            if process.ppid() not in ids:
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
    while running := [process for process in running if not _ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return running


def _ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def note_shared_memory(directory: Path, postmaster: int) -> None:
    """Write down the shared memory of a new server, for when it can't return it itself."""
    seen: dict[str, list[str]] = {"posix": [], "sysv": []}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{postmaster}/maps").read_text().splitlines():
            _, _, _, _, inode, *name = line.split(maxsplit=5)
            if name and name[0].startswith(_DYNAMIC):
                seen["posix"].append(name[0])
            elif name and name[0].startswith("/SYSV"):  # the inode is the segment's id
                seen["sysv"].append(inode)
    (directory / "shared_memory.json").write_text(json.dumps(seen))


_DYNAMIC = "/dev/shm/PostgreSQL."


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
    if magic != 0x9A503D32 or not used <= room:
        return [control]
    size = (len(content) - 16) // room
    handles = [struct.unpack_from("=I", content, 16 + size * item)[0] for item in range(used)]
    return [Path(f"{_DYNAMIC}{handle}") for handle in handles if handle] + [control]


def _remove_shared_memory(directory: Path) -> None:
    """Return what a killed server left in shared memory; a reboot has done so already."""
    try:
        seen = json.loads((directory / "shared_memory.json").read_text())
        boot = json.loads((directory / MARKER).read_text())["boot"]
    except (OSError, ValueError, KeyError):
        return
    if boot != _boot_id():
        return
    for control in seen["posix"]:
        for segment in _dynamic_segments(Path(control)):
            segment.unlink(missing_ok=True)
    try:
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except OSError:
        return
    unattached = {line.split()[1] for line in segments if line.split()[6] == "0"}
    for segment in unattached.intersection(seen["sysv"]):
        with contextlib.suppress(OSError):
            subprocess.run(["ipcrm", "-m", segment], capture_output=True)


# -- programs in places that the account can't enter --------------------------------

_copies: dict[Path, PrivateDirectory] = {}
_reachable: dict[Path, Path] = {}


def reachable(program: Path, who: Account | None) -> Path:
    """`program`, or its copy in a private place if `who` can't run it where it is.

    A checkout below a home directory of mode 700 is the usual case. The whole
    installation is copied once per process, keeping its layout: programs find their
    shared files and libraries relative to themselves.
    """
    if who is None:
        return program
    if program not in _reachable:
        if _runs(program, who):
            _reachable[program] = program
        else:
            top = _installation(program)
            copy = _copies[top] if top in _copies else _copies.setdefault(top, _copy(top, program, who))
            found = copy.path / program.relative_to(top)
            if not _runs(found, who):
                raise ServerError(
                    f"The account `{who.name}` can run neither {program} nor its copy below "
                    f"{copy.path.parent} (mounted noexec?). Name another directory in PGRERUN_TMPDIR."
                )
            _reachable[program] = found
    return _reachable[program]


def _runs(program: Path, who: Account) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, cwd="/", **drop(who)).returncode == 0
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
            shutil.copytree(part, target, symlinks=True, ignore=shutil.ignore_patterns("*.a", "doc", "man"))
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


def sweep() -> list[Path]:
    """Remove what killed runs of this user left behind; returns what was removed.

    Looks in `base_directory()` and in the places for sockets.  A directory goes only
    if its marker is this user's, nobody holds the marker's lock, and the process named
    there is gone (same boot, same start time).
    """
    removed, found = [], []
    for place in dict.fromkeys((base_directory(), *SHORT_PLACES)):
        with contextlib.suppress(OSError):
            found = sorted(place.glob(PREFIX + "?" * 8))
        for directory in found:
            with contextlib.suppress(ServerError, OSError):
                if _sweep_one(directory):
                    removed.append(directory)
    return removed


def _sweep_one(directory: Path) -> bool:
    if not (directory / MARKER).exists():
        # Killed between making the directory and marking it: then it's empty, or has
        # the draft of a marker. An hour is longer than any owner takes for that.
        if directory.stat().st_uid == os.geteuid() and time.time() - directory.stat().st_mtime > 3600:
            (directory / (MARKER + ".new")).unlink(missing_ok=True)
            directory.rmdir()
            return True
        return False
    require_ours(directory)
    lock = os.open(directory / MARKER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = json.loads(os.read(lock, 4096) or b"{}")
        alive = owner.get("boot") == _boot_id() and _started(owner["pid"]) == owner["started"]
        if alive:  # the lock was free all the same: a file system without locks
            return False
        _remove(directory)
        return True
    except (BlockingIOError, ValueError, KeyError):
        return False
    finally:
        os.close(lock)


_guardians: dict[Path, subprocess.Popen] = {}
# This room alone: the whole library takes seconds to import, and its owner may have
# been killed for the memory it took.
_SWEEPER = """
import sys, types
sys.modules["pgrerun"] = types.ModuleType("pgrerun")
sys.modules["pgrerun"].__path__ = sys.argv[1:]
from pgrerun.server.private import sweep
sweep()
"""


def _guard(base: Path) -> None:
    """Start the guardian of this process for directories below `base`, once.

    Not PR_SET_PDEATHSIG: that is bound to the thread that started the server, which in
    a notebook or a thread pool may end long before the process.
    """
    mine = [place for place, guardian in _guardians.items() if guardian.args[-1] == str(os.getpid())]
    if base in mine or (mine and base in SHORT_PLACES):  # a sweep looks there in any case
        return
    environment = os.environ | {"PGRERUN_TMPDIR": str(base)}
    package = str(Path(__file__).parents[1])
    _guardians[base] = subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; exec "$1" -c "$2" "$3"', "sh", sys.executable, _SWEEPER, package, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,  # Ctrl-C and a killed process group must not reach it
    )


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
def _close_all() -> None:
    for act in reversed(_last_acts[:]):
        act()
    for directory in list(_open):
        with contextlib.suppress(ServerError, OSError):
            directory.close()
    for guardian in _guardians.values():
        # A forked child has its parent's guardian on its list, and lets it be.
        if guardian.args[-1] == str(os.getpid()) and not _open:
            guardian.kill()
            guardian.wait()


def _watch_signals() -> None:
    """Make SIGTERM and SIGHUP tidy up before they end the process, if nobody handles them."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _die_tidily)


def _die_tidily(number: int, frame: object) -> None:
    # Not SystemExit: a notebook's kernel would catch that and live on.
    signal.signal(number, signal.SIG_DFL)
    _close_all()
    os.kill(os.getpid(), number)
