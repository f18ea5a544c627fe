"""A throwaway PostgreSQL cluster of our own: start, restart with settings, crash, destroy.

It lives in a `PrivateDirectory` (private.py), listens on a Unix socket in there only (`listening`
tells of the one exception), and is gone when the run is.  Connections and tools come from `Server`
(client.py), the programs from binaries.py.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import psutil
import psycopg

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import private, processes, releases
from pgrerun.lab.server.binaries import Programs, bundled
from pgrerun.lab.server.client import APPLICATION, Server, role, without_libpq
from pgrerun.lab.server.loopback import ADDRESS, Loopback
from pgrerun.lab.server.private import PrivateDirectory, account, advice, end_with_us
from pgrerun.lab.server.queries import value
from pgrerun.lab.server.shared_memory import return_shared_memory

# Everything else is PostgreSQL's own default; each line says why it isn't left alone. A release
# that doesn't know one goes without.
DEFAULTS: dict[str, tuple[str, str]] = {
    "listen_addresses": ("", "no TCP: nobody else can reach the cluster, no port can clash"),
    "unix_socket_permissions": ("0700", "trust authentication ends at our own account"),
    "autovacuum": (
        "off",
        "a worker that wakes inside a block changes its I/O; experiments vacuum by name",
    ),
    "checkpoint_timeout": (
        "30min",
        "a timed checkpoint must not fall into a block that began with one",
    ),
    "log_checkpoints": ("on", "a checkpoint inside a block can be told afterwards"),
    "restart_after_crash": ("off", "a crash ends the run instead of being repaired unseen"),
    "log_line_prefix": ("%m [%p] ", "the log is read by people"),
    "TimeZone": ("UTC", "timestamps don't depend on the host"),
    "log_timezone": ("UTC", "timestamps don't depend on the host"),
}
SOCKET_PATH_MAX = 107  # sizeof(sockaddr_un.sun_path) - 1, unix(7)
SOCKET = ".s.PGSQL."
PORT = 5432  # only names the socket: no TCP
# Signals of pg_ctl's shutdown modes, PostgreSQL documentation, section 18.5.
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
PATIENCE = 300  # seconds for a start with recovery, or a stop with its checkpoint
ROOMY = 1 << 30  # bytes free, above which a cluster keeps a copy of its new files

# What initdb made, by programs and options, before a server was started on it: in the home of one
# open cluster, and gone with that.
_templates: dict[tuple[Path, tuple[str, ...]], Path] = {}


class OtherDisk(Protocol):
    """What servers are started on instead of the machine's own disk (`lab.disk.Slowed`)."""

    def environment(self, directory: Path) -> Mapping[str, str]:
        """Environment variables of a process whose files below `directory` are to be on it."""


class Cluster(Server):
    """A new cluster with superuser `postgres`, UTF8, C locale, running when made.

    `programs`: which PostgreSQL (default: the bundled one). `settings`: configuration
    beyond `DEFAULTS`, e.g. {"shared_buffers": "128kB"}. `initdb`: further initdb options,
    e.g. ("--no-data-checksums",). `disk`: another than the machine's, for each start from now on;
    it can be set later. ServerError if it can't be made or started; then
    nothing is left behind. CannotMeasure for settings that the release doesn't know, here and
    in `restart`.
    """

    owned = True
    schema = "public"

    def __init__(
        self,
        programs: Programs | None = None,
        settings: Mapping[str, str | int] | None = None,
        *,
        initdb: Sequence[str] = (),
        disk: OtherDisk | None = None,
    ):
        super().__init__()
        private.sweep()
        self.disk = disk
        self.programs = programs or bundled()
        self._account = account()
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._altered: dict[str, str] = {}  # beside the settings, where ALTER SYSTEM is missing
        self._unaltered: dict[str, str] = {}  # what they were, where a reload leaves them altered
        self._stopped_by_us = True
        self._was_ready = False  # since its last start
        self._port = PORT
        self._directories: list[PrivateDirectory] = []
        self._require_known(settings)
        self.settings: dict[str, str] = {
            name: value
            for name, (value, _) in DEFAULTS.items()
            if releases.knows(self.programs.number, name)
        } | releases.old_defaults(self.programs.number, self.programs.version)
        self.settings.update(_as_text(settings))
        self.name = f"our own PostgreSQL {self.programs.version} from {self.programs.source}"
        try:
            self._home = self._private(private.base_directory())
            self.data_directory = self._home.path / "data"
            self.scratch = self._home.folder("scratch")
            self._socket = self._socket_folder()
            self._make_files(initdb)
            self.start()
            self._complete()
        except BaseException:
            self.close()
            raise

    # -- making and removing --

    def _require_known(self, settings: Mapping[str, str | int] | None) -> None:
        version = self.programs.number
        releases.require_settings(version, releases.configured(version, _as_text(settings)))

    def _complete(self) -> None:
        """Add what an old release lacks and our statements are written with (`releases.ADDED`)."""
        if added := releases.added(self.version):
            with self.connect() as connection:
                for statement in added:
                    connection.execute(statement)

    def _private(self, base: Path) -> PrivateDirectory:
        directory = PrivateDirectory(base, self._account)
        self._directories.append(directory)
        return directory

    def _socket_folder(self) -> Path:
        """A folder whose socket's path is short enough, in the cluster's home or elsewhere."""
        for place in (None, *private.SHORT_PLACES):
            with contextlib.suppress(ServerError):  # it may not be writable
                home = self._private(place) if place else self._home
                path = os.fsencode(home.path / "s" / f"{SOCKET}65535")
                if len(path) <= SOCKET_PATH_MAX and b"," not in path:  # libpq splits at commas
                    return home.folder("s")
        raise ServerError(
            f"No directory is short enough for a Unix socket ({SOCKET_PATH_MAX} bytes): none of "
            f"{', '.join(map(str, private.SHORT_PLACES))} is writable. Make /tmp writable, "
            "or name a short directory in PGRERUN_TMPDIR."
        )

    def _make_files(self, options: Sequence[str]) -> None:
        """Fill the data directory by initdb, or from another open cluster's copy of what that made.

        A copy takes a quarter of initdb's time, and chapters have half a dozen clusters.
        """
        self._home.folder("data")
        wanted = (self.programs.bindir, tuple(options))
        template = _templates.get(wanted)
        if template and template.exists():
            self.copy_files("-Rp", f"{template}/.", str(self.data_directory))
            return
        self._initdb(options)
        if shutil.disk_usage(self._home.path).free > ROOMY:
            template = self._home.folder("template")
            try:
                self.copy_files("-Rp", f"{self.data_directory}/.", str(template))
                _templates[wanted] = template
            except ServerError:
                shutil.rmtree(template, ignore_errors=True)

    def _initdb(self, options: Sequence[str]) -> None:
        number = self.programs.least_number
        command = [
            str(self._executable("initdb")),
            "--pgdata",
            str(self.data_directory),
            # -N: the long option was --nosync until 10. A crash of the host ends the run anyway.
            *(["-N"] if releases.has(number, "initdb that needn't wait for the disk") else []),
            # -n: what a failing initdb leaves says which shared memory is to be returned.
            "-n",
            "--username",
            "postgres",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            *options,
        ]
        self._run("initdb", command)

    def _run(self, what: str, command: Sequence[str], **environment: str) -> None:
        """Run a program that acts on the files of no running server. ServerError if it fails."""
        place = self._server_process()
        place["env"] |= environment
        done = subprocess.run(command, capture_output=True, text=True, **place)
        if done.returncode:
            raise self._failed(what, done.stderr or done.stdout)

    def _server_process(self, disk: OtherDisk | None = None) -> dict[str, Any]:
        """Keywords for a process that acts on the data directory, on the machine's own disk or on
        another.
        """
        environment = without_libpq(dict(os.environ)) | {"LC_ALL": "C"} | self._own_places()
        environment |= disk.environment(self.data_directory) if disk else {}
        return {"env": environment, "cwd": self.scratch, **end_with_us(self._account)}

    def _own_places(self) -> dict[str, str]:
        """Environment: the user's HOME and TMPDIR may be closed to the server's account.

        No .psqlrc and no .pgpass is read then, and valgrind finds room for its pipes.
        """
        return {"HOME": str(self.scratch), "TMPDIR": str(self.scratch)}

    def _failed(self, what: str, said: str) -> ServerError:
        shown = said.strip()
        if len(shown) > 2000:  # the sentence in front of a log says what happened
            shown = f"{shown[:500]} ... {shown[-1500:]}"
        text = f"{what} of {self.name} failed in {self._home.path.parent}: {shown}"
        # A short write isn't ENOSPC, and a full disk may leave no room for the log to say so.
        signs = ("No space left on device", "Check free disk space")
        if "shared memory" in said and signs[0] in said:
            return ServerError(
                "The machine's shared memory (/dev/shm) is full or too small; a container gets more"
                f" by docker run --shm-size. {text}"
            )
        if any(sign in said for sign in signs) or shutil.disk_usage(self._home.path).free < 1 << 20:
            text = f"The disk is full. {advice(self._home.path.parent)} {text}"
        return ServerError(text)

    def close(self) -> None:
        """Stop the server at once and remove everything of this cluster."""
        if os.getpid() != self._creator:
            return
        self._close_connections()
        if self._running():
            self._end(signal.SIGQUIT, patience=10)
        for directory in reversed(self._directories):
            directory.close()
        self._stopped_by_us = True

    # -- running --

    def start(self) -> None:
        """Start the server and wait until it takes connections. ServerError with its log.

        One that has crashed recovers: to start it again is to know of that, unlike `restart`.
        """
        self._require_here()
        if self._running():
            return
        self._write_settings()
        log = os.open(self._home.path / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            command = [str(self._executable("postgres")), *self._files()]
            self._postmaster = private.start(command, log, self._server_process(self.disk))
        finally:
            os.close(log)
        self._stopped_by_us = self._was_ready = False
        try:
            self._await_ready()
        except BaseException:
            self._end(signal.SIGQUIT, patience=10)
            raise
        self._was_ready = True

    def _files(self) -> list[str]:
        """The server's arguments that say where its files are."""
        return ["-D", str(self.data_directory), "-c", f"config_file={self._configuration}"]

    def _running(self) -> bool:
        return self._postmaster is not None and self._postmaster.poll() is None

    def _process(self) -> subprocess.Popen[bytes]:
        """The postmaster, running or ended."""
        assert self._postmaster is not None  # a cluster is started when it is made
        return self._postmaster

    def _require_here(self) -> None:
        if not self.data_directory.exists():
            raise ServerError(f"{self.name} has been closed and removed. Make a new Cluster.")

    def _write_settings(self) -> None:
        ours = self._for_disk() | self.settings | self._altered
        ours = releases.configured(self.programs.number, ours)
        ours |= releases.socket_folder(self.programs.least_number, str(self._socket))
        ours["port"] = str(self._port)
        initdbs = _quoted(str(self.data_directory / "postgresql.conf"))
        lines = [f"include {initdbs}\n"]
        lines += [f"{name} = {_quoted(value)}\n" for name, value in ours.items()]
        self._configuration.write_text("".join(lines))
        self._configuration.chmod(0o644)

    def _alter(
        self, connection: psycopg.Connection, settings: Mapping[str, str | int | None]
    ) -> None:
        if releases.has_late(connection, "ALTER SYSTEM"):
            super()._alter(connection, settings)
            return
        stays = not releases.has(self.version, "settings that are gone from a file are reset")
        for name, wanted in settings.items():
            if stays and name not in self._unaltered:
                self._unaltered[name] = value(connection, str, f"SHOW {name}")
            self._altered.pop(name, None)
            before = {name: self._unaltered[name]} if stays else {}
            self._altered |= _as_text({name: wanted}) if wanted is not None else before
        self._write_settings()

    def _for_disk(self) -> dict[str, str]:
        """Another disk sees the calls of the server's own processes, not what the kernel does for
        them. CannotMeasure where the settings ask for that.
        """
        if self.disk is None:
            return {}
        if self.settings.get("io_method") == "io_uring":
            raise CannotMeasure(
                "io_method = sync", "what is asked for by io_uring never passes another disk"
            )
        return self.programs.synchronous_io

    @property
    def _configuration(self) -> Path:
        """Our settings, and the inclusion of initdb's.

        Not in the data directory, which the server's account may write to: run as root, we
        would follow a link that it put there.
        """
        return self._home.path / "postgresql.conf"

    def _await_ready(self) -> None:
        """Wait until a session can be opened; also notes the version."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process().poll() is not None:
                raise self._failed("The start", self._log_tail())
            if (self._socket / f"{SOCKET}{self._port}").exists():
                with contextlib.suppress(psycopg.OperationalError), self._open(True) as connection:
                    self.version = connection.info.server_version
                    self.version_text = connection.info.parameter_status("server_version") or ""
                    return
            time.sleep(0.01)
        raise self._failed("The start", f"no connection after {PATIENCE} s. {self._log_tail()}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: "smart", "fast" (with a checkpoint) or "immediate".

        ServerError if it has died on its own.
        """
        if self._was_ready and not self._stopped_by_us:
            self.ensure_alive()
        self._stopped_by_us = True
        if self._running():
            self._end(STOP_SIGNALS[mode], patience=PATIENCE)

    def _end(self, signal_number: int, patience: float) -> None:
        self._process().send_signal(signal_number)
        try:
            self._process().wait(patience)
        except subprocess.TimeoutExpired:
            processes.end_processes(self._home.path)
            self._process().wait()

    def restart(self, settings: Mapping[str, str | int] | None = None) -> None:
        """Stop (with a checkpoint) and start with `settings` merged into `self.settings`.

        If the server refuses them, ServerError tells why and the old settings stand. ServerError
        as well if the server has died on its own, CannotMeasure for settings that the release
        doesn't know.
        """
        self._require_known(settings)
        before = dict(self.settings)
        self.stop()
        self.settings.update(_as_text(settings))
        try:
            self.start()
        except ServerError:
            self.settings = before
            raise

    @contextlib.contextmanager
    def restarted(self, settings: Mapping[str, str | int]) -> Iterator[None]:
        """Restart with `settings` for the length of a block, and then as it was before: cheaper
        than another cluster.
        """
        before = dict(self.settings)
        self.restart(settings)
        try:
            yield
        finally:
            self.settings = before
            if self._running():  # one that died is not to be mended behind its owner's back
                self.restart()

    @contextlib.contextmanager
    def listening(self) -> Iterator[Loopback]:
        """Listen on TCP as well for the length of a block, and yield the cluster as one reaches it
        that way.

        The exception to "Unix socket only": what a message over TCP costs can't be measured without
        TCP. So it is kept as narrow as can be. The server listens on the loopback address, at a
        port that the kernel chooses; it lets `postgres` in by a random password and nobody else in
        at all. Server starts frame the block: after it, however it ends, no port listens, and the
        password is gone unless the server died. If this process is killed in the block, the
        kernel ends the server as ever. CannotMeasure before PostgreSQL 10, ServerError if no port
        can be had.
        """
        # no older password check is safe enough for a port
        releases.require(self.programs.number, "password check by SCRAM")
        self._require_here()
        before = dict(self.settings)
        try:
            self._open_port()
            with Loopback(self, self._port) as face:
                with self.connect() as connection:
                    connection.execute(face.admission(connection))
                yield face
        finally:
            self.settings, self._port = before, PORT
            if self._running():  # one that died is not to be mended behind its owner's back
                self.restart()
                with self.connect() as connection:
                    connection.execute("ALTER ROLE postgres PASSWORD NULL")

    def _open_port(self, attempts: int = 5) -> None:
        """Restart with a port.

        Between its choice and the start somebody else may take it, hence the attempts.
        """
        doors = self._home.path / "loopback_hba.conf"
        doors.write_text(f"local all all trust\nhost all postgres {ADDRESS}/32 scram-sha-256\n")
        doors.chmod(0o644)
        refusals: list[str] = []
        while len(refusals) < attempts:
            self._port = free_port()
            try:
                self.restart({"listen_addresses": ADDRESS, "hba_file": str(doors)})
                return
            except ServerError as error:
                refusals.append(str(error))
            if "in use" not in refusals[-1]:
                break
        self._port = PORT
        self.start()
        raise ServerError(
            f"{self.name} could listen on no port of {ADDRESS}; it goes on without. Ports tried:"
            f" {len(refusals)}. {refusals[-1]}"
        )

    def crash(self) -> None:
        """SIGKILL every process of this cluster, by id; `start()` then recovers."""
        self._require_here()
        # The postmaster first, or it would log and mourn its children. All are looked at before:
        # once it is dead they leave, and psutil kills no other process that gets the id of one.
        doomed = []
        for pid in self.pids():
            with contextlib.suppress(psutil.NoSuchProcess):
                doomed.append(psutil.Process(pid))
        self._stopped_by_us = True
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process().wait()
        processes.await_end(doomed, patience=10)
        processes.end_processes(self._home.path)  # one forked in between

    def offline(self, program: str, *options: str, **environment: str) -> None:
        """Run one of the server's programs (pg_resetwal, pg_checksums) on the stopped cluster's
        files. ServerError if it fails, CannotMeasure if the release came without it.
        """
        if not self.programs.has(program):
            raise CannotMeasure(
                program,
                f"it needs {program}, and {self.programs.source} came without it; the bundled"
                " release or a package of the platform brings it",
            )
        if self._running():
            raise ServerError(
                f"{program} works on the files of a stopped server. Call stop() first."
            )
        # which doesn't know -D before 9.3
        where = [] if program == "pg_resetxlog" else ["-D"]
        command = [str(self._executable(program)), *options, *where, str(self.data_directory)]
        self._run(program, command, **environment)

    def upgrade_from(self, old: Cluster) -> None:
        """Bring another cluster's databases here, by pg_upgrade of this release, into a cluster
        that has none. Both are stopped for it, and this one is started again.

        ServerError if it fails, CannotMeasure if this release came without it.
        """
        self.stop()
        old.stop()
        folder = str(self._socket)

        def reached(cluster: Cluster) -> str:  # pg_upgrade doesn't read our configuration
            settings = {"listen_addresses": "", "unix_socket_permissions": "0700"}
            settings |= releases.socket_folder(cluster.programs.least_number, folder)
            return " ".join(f"-c {name}='{value}'" for name, value in settings.items())

        self.offline(
            "pg_upgrade",
            *("-d", str(old.data_directory), "-b", str(old._executable("postgres").parent)),
            *("-B", str(self._executable("postgres").parent), "--user=postgres"),
            *("-o", reached(old), "-O", reached(self)),
            PGHOST=folder,
        )
        self.start()

    def copy_files(self, *words: str) -> None:
        """Run the system's cp, with these words, as the server's account, which may replace what
        lies in its folders by links to others' files. ServerError if it fails.
        """
        program = shutil.which("cp", path=os.defpath) or "cp"  # PATH may have folders of others
        self._run("Copying files", [program, *words])

    def single_user(
        self,
        *options: str,
        program: Path | None = None,
        under: Sequence[str] = (),
        input: str | None = None,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: int | None = None,
        capture_output: bool = False,
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a single-user backend on the stopped cluster's files.

        A line of its input is a command, and its exit status tells nothing of errors in one;
        it is negative if a signal ended the backend. `program` runs instead of the cluster's own
        postgres, `under` is a command that runs it. The others are those of `subprocess.run`.
        """
        command = [
            *under,
            str(program or self._executable("postgres")),
            "--single",
            *options,
            *self._files(),
            "postgres",
        ]
        try:
            return subprocess.run(
                command,
                input=input,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                capture_output=capture_output,
                timeout=timeout,
                text=True,
                **self._server_process(self.disk),
            )
        finally:  # a backend that crashed returned none
            return_shared_memory(self.data_directory)

    def evict(self) -> None:
        """Drop the stopped cluster's files from the operating system's cache."""
        if self._running():
            raise ServerError(
                "evict() needs a stopped server: what it caches itself would stay. Call stop()"
                " first."
            )
        for folder, _, names in os.walk(self.data_directory):
            for name in names:
                private.forget(os.path.join(folder, name))

    def cold_restart(self) -> None:
        """Stop, drop our files from the operating system's cache, start."""
        self.stop()
        self.evict()
        self.start()

    # -- looking at it --

    def pids(self) -> dict[int, str]:
        """Process id -> role of every process, postmaster first.

        Roles are pg_stat_activity's backend types ("client backend", "checkpointer", ...);
        "ended" is one that the postmaster has yet to reap, so that what it used is in no
        other process's account. Empty when the server isn't running.
        """
        if not self._running():
            return {}
        postmaster = self._process().pid
        roles = {postmaster: "postmaster"}
        for pid in processes.children(postmaster):
            try:
                roles[pid] = role(" ".join(psutil.Process(pid).cmdline()))
            except psutil.ZombieProcess:
                roles[pid] = "ended"
            except psutil.Error:
                continue
        return roles

    def pin(self, cpus: set[int]) -> None:
        """Keep all processes of the server on `cpus`; later backends inherit it."""
        for pid in self.pids():
            try:
                os.sched_setaffinity(pid, cpus)
            except ProcessLookupError:
                continue
            except OSError as error:
                usable = sorted(os.sched_getaffinity(0))
                raise ServerError(
                    f"The server can't be pinned to CPUs {sorted(cpus)} ({error.strerror}); usable:"
                    f" {usable}."
                ) from None

    def log(self) -> str:
        """What the server has logged so far, over all its starts; "" if somebody has removed it."""
        with contextlib.suppress(OSError):
            return (self._home.path / "log").read_text(errors="replace")
        return ""

    def _log_tail(self) -> str:
        return "\n".join(self.log().splitlines()[-12:])

    # -- what the base asks for --

    def connection_parameters(self) -> dict[str, str]:
        return {
            "host": str(self._socket),
            "port": str(self._port),
            "user": "postgres",
            "dbname": "postgres",
            "options": f"-c search_path={self.schema}",
        } | (
            {"application_name": APPLICATION}
            if releases.has(self.programs.number, "application_name")
            else {}
        )

    def environment(self) -> dict[str, str]:
        return super().environment() | self._own_places()

    def ensure_alive(self) -> None:
        """Raise ServerError, with the end of its log, if the server isn't running."""
        self._require_here()
        if self._running():
            return
        if self._stopped_by_us:
            raise ServerError(f"{self.name} is stopped. Call start() first.")
        status = self._process().returncode
        how = (
            f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        )
        raise self._failed("The run", f"the server {how}. Its last words:\n{self._log_tail()}")

    def _await_death(self, said: str) -> None:
        # After a crash a server takes its other backends down before it ends itself.
        signs = (
            "closed the connection",
            "Connection refused",
            "shutting down",
            "crash of another",
            "backend died",
            "terminating connection",
        )
        if any(sign in said for sign in signs):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process().wait(2)

    def raise_if_crashed(self, said: str) -> None:
        if self._stopped_by_us:
            return
        self._await_death(said)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process().wait(0.5)  # what failed may have been faster than the end itself
        self.ensure_alive()

    def _lost(self, what: str, said: str) -> ServerError:
        self._await_death(said)
        try:
            self.ensure_alive()
        except ServerError as error:
            return error
        return self._failed(what, f"{said.strip()}\nThe server's last words:\n{self._log_tail()}")

    def _executable(self, name: str) -> Path:
        return private.reachable(self.programs.path(name), self._account)

    def missing(self, capability: str) -> str | None:
        kind, _, name = capability.partition(":")
        if kind == "contrib":
            if reason := releases.without_contrib(self.programs.number, name):
                return reason
            if name in self.programs.contrib:
                return None
            return f"{self.programs.source} doesn't bring the extension {name}."
        if capability == "jit":
            if self.programs.jit:
                return None
            return f"{self.programs.source} is built without LLVM JIT; Debian's packages have it."
        if capability in ("restart", "superuser", "checkpoint", "files", "processes"):
            return None
        raise ValueError(f"unknown capability {capability!r}")


def free_port() -> int:
    """A port of the loopback address that the kernel chose among those that nobody listens on just
    now.
    """
    with socket.create_server((ADDRESS, 0)) as probe:
        return int(probe.getsockname()[1])


def _as_text(settings: Mapping[str, str | int] | None) -> dict[str, str]:
    words = {"True": "on", "False": "off"}
    return {name: words.get(str(value), str(value)) for name, value in (settings or {}).items()}


def _quoted(value: str) -> str:
    """`value` as postgresql.conf wants it: documentation, section 19.1.2."""
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"
