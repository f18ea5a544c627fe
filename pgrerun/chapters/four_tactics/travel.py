"""How a command gets to the engine and its answer back: messages, task switches and time, by socket, over TCP, many at a time, and without a client.

All counts are the kernel's or of calls that are made here one by one; no library stands between.
"""

import os
import re
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.system import COMMANDS, load
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.experiment import Arm, Block
from pgrerun.relations import Parts
from pgrerun.relations.duck import in_memory
from pgrerun.server import Cluster, Server

UNIX, LOOPBACK, NETWORK = "Unix socket", "TCP loopback", "TCP network"
ALONE, DUCKDB = "single-user backend", "DuckDB, in process"
UNITS = {"messages": "per command", "client": "switches per command", "server": "switches per command", "time": "us per command", "processor": "us per command"}
TOGETHER = 50
_SHORT = COMMANDS["short"]


def pipelined(line: str) -> str:
    """The arm that sends many commands at a time."""
    return f"{line}, pipelined"


def ways(chapter: Chapter, commands: int = 150) -> None:
    """A short command by every way there is: messages, switches of client and server, and microseconds, for each command; of a
    connection also how many of these a processor worked, on either side.

    A message is a call of the kernel that hands over commands to the engine or answers from it. On somebody's
    server there are the way of its URL, and DuckDB. CannotMeasure without Linux's process table.
    """
    if not Path("/proc/thread-self/io").exists():
        raise CannotMeasure("process table", "Task switches are counted in Linux's process table, which isn't here.")
    with ExitStack() as held:
        arms = [arm for server in _servers(chapter, held) for arm in _lines(server, commands, held)]
        if not chapter.borrowed:
            alone = held.enter_context(Cluster(chapter.programs))
            load(chapter, alone)
            alone.stop()
            arms.append(Arm(ALONE, partial(_alone, alone, commands)))
        duck = held.enter_context(in_memory())
        duck.execute(f"CREATE TABLE parts AS {Parts(chapter.parameters.tuples).select()}")
        duck.execute("CREATE UNIQUE INDEX parts_pnum ON parts (pnum)")
        arms.append(Arm(DUCKDB, partial(_in_process, duck, commands)))
        chapter.compare("ways", arms, UNITS)


def _servers(chapter: Chapter, held: ExitStack) -> list[Server]:
    """The server under test, and its face over TCP if it is ours to have one."""
    load(chapter, chapter.server)
    return [chapter.server] if chapter.borrowed else [chapter.server, held.enter_context(chapter.cluster().listening())]


# ---- by a connection


def _lines(server: Server, commands: int, held: ExitStack) -> list[Arm]:
    """A command at a time, and but for the second face of one server many at a time."""
    line = held.enter_context(_Line(server))
    one = Arm(line.name, partial(line.travel, _query, 1, commands))
    return [one] if line.name == LOOPBACK and server.owned else [one, Arm(pipelined(line.name), partial(line.travel, _pipeline, TOGETHER, commands))]


def _packed(kind: bytes, body: bytes) -> bytes:
    """A message of the protocol (PostgreSQL documentation, section 54.7): its kind, its length, its body."""
    return kind + struct.pack("!I", len(body) + 4) + body


def _query(command: str, times: int) -> bytes:
    """The command by the simple protocol."""
    return _packed(b"Q", command.encode() + b"\0") * times


def _pipeline(command: str, times: int) -> bytes:
    """The command so many times, with one request for an answer to all: parse, bind, execute each; sync."""
    each = _packed(b"P", b"\0" + command.encode() + b"\0\0\0") + _packed(b"B", b"\0\0" + bytes(6)) + _packed(b"E", b"\0" + bytes(4))
    return each * times + _packed(b"S", b"")


class _Line:
    """A connection that is spoken to without a library, once one has made it: so each call that carries something is counted.

    `name` says where it leads. CannotMeasure if it is encrypted.
    """

    def __init__(self, server: Server):
        self._server = server

    def __enter__(self) -> "_Line":
        self._connection = self._server.connect()
        self._require_plain()
        info = self._connection.info
        self.name = UNIX if info.host.startswith("/") else LOOPBACK if info.hostaddr in ("127.0.0.1", "::1") else NETWORK
        self._backend = Path(f"/proc/{info.backend_pid}") if self._server.can("processes") else None
        self._socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        # With a limit, Python polls before it receives, as libpq does. A plain recv on a Unix socket is
        # woken once more for nothing, when the other side has read what was sent (Linux, unix_write_space).
        self._socket.settimeout(60)
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()
        self._connection.close()

    def _require_plain(self) -> None:
        encrypted = self._connection.pgconn.ssl_in_use
        if not encrypted and self._server.version >= 120000:
            [encrypted] = self._connection.execute("SELECT coalesce(bool_or(encrypted), false) FROM pg_stat_gssapi WHERE pid = pg_backend_pid()").fetchone()
        if encrypted:
            raise CannotMeasure("unencrypted connection", f"The connection to {self._server.name} is encrypted, so its messages are made where they can't be counted.")

    def travel(self, request: Callable[[str, int], bytes], together: int, commands: int, block: Block) -> dict[str, float]:
        """So many commands, some at a time."""
        sent, messages, rounds = request(_SHORT, together), 0, commands // together
        here, there = _switches("/proc/thread-self/status"), self._used()
        worked, started = time.thread_time(), time.perf_counter()
        for _ in range(rounds):
            messages += self._send(sent) + self._receive(together)
        seconds, worked, done = time.perf_counter() - started, time.thread_time() - worked, rounds * together
        here = _switches("/proc/thread-self/status") - here
        spent = {"messages": messages / done, "client": here / done, "time": 1e6 * seconds / done}
        if there:
            switches, processor = (after - before for after, before in zip(self._used(), there))
            spent |= {"server": switches / done, "processor": 1e6 * (worked + processor) / done}
        return spent

    def _used(self) -> tuple[int, float] | None:
        """Switches and seconds on a processor of the backend until now; None if it can't be watched."""
        if not self._backend:
            return None
        # proc(5): schedstat has nanoseconds, where stat has ticks; a sleeping process's account is closed
        return _switches(self._backend / "status"), int((self._backend / "schedstat").read_text().split()[0]) / 1e9

    def _send(self, request: bytes) -> int:
        """The number of calls that it took."""
        calls = 0
        while request:
            request, calls = request[self._socket.send(request) :], calls + 1
        return calls

    def _receive(self, answers: int) -> int:
        """The number of calls until the server is ready for more. ServerError unless so many tuples came."""
        calls, held, kinds = 0, b"", b""
        while not kinds.endswith(b"Z"):
            arrived = self._socket.recv(1 << 16)
            if not arrived:
                raise ServerError(f"{self._server.name} closed the connection.")
            held, calls = held + arrived, calls + 1
            while len(held) >= 5 and len(held) > (size := struct.unpack("!I", held[1:5])[0]):
                kinds, held = kinds + held[:1], held[size + 1 :]
        if kinds.count(b"D") != answers or b"E" in kinds:
            raise ServerError(f"{self._server.name} didn't answer a command that looks up one tuple with one tuple.")
        return calls


def _switches(status: str | Path) -> int:
    """Task switches until now, by the kernel's account: voluntary ones, and those where who was woken takes the processor at once."""
    return sum(_counts("ctxt_switches", Path(status).read_text()))


def _counts(name: str, text: str) -> list[int]:
    """The counts in the kernel's words whose name ends like this."""
    return [int(found) for found in re.findall(rf"{name}:\s*(\d+)", text)]


# ---- without a connection

# What the kernel has counted of this very process until now, and the time.
_LOOK = "SELECT extract(epoch FROM clock_timestamp()) AS at, pg_read_file('/proc/self/io', 0, 10000) AS io, pg_read_file('/proc/self/status', 0, 10000) AS status"


def _alone(cluster: Cluster, commands: int, block: Block) -> dict[str, float]:
    """Commands from a file, answers into a file, by a backend that nobody talks to. It is asked itself what it used: no other process disturbs it."""
    lines = [*[_SHORT] * 20, _LOOK, _LOOK, *[_SHORT] * commands, _LOOK]
    text = _single_user(cluster, "".join(f"{line}\n" for line in lines))
    if text.count('qoh = "') != 20 + commands:
        raise ServerError("A single-user backend didn't answer each command.")
    at = [float(found) for found in re.findall(r'at = "([\d.]+)"', text)]
    calls = [sum(pair) for pair in zip(_counts("syscr", text), _counts("syscw", text))]
    voluntary, forced = _counts(r"\nvoluntary_ctxt_switches", text), _counts("nonvoluntary_ctxt_switches", text)
    switches = voluntary[2] - voluntary[1] + forced[2] - forced[1]
    # from the first look to the second there were no commands: what looking takes itself
    spent, used = (last - middle - (middle - first) for first, middle, last in (at, calls))
    return {"messages": used / commands, "client": 0, "server": switches / commands, "time": 1e6 * spent / commands}


def _single_user(cluster: Cluster, text: str) -> str:
    """What a single-user backend on a stopped cluster's files prints; each line of `text` is a command. ServerError if one fails."""
    with tempfile.TemporaryFile("w+") as commands, tempfile.TemporaryFile("w+") as answers:
        commands.write(text)
        commands.seek(0)
        done = cluster.single_user(stdin=commands, stdout=answers, stderr=subprocess.PIPE)
        answers.seek(0)
        found = answers.read()
    if done.returncode or (failed := re.search("ERROR: .*", done.stderr)):
        raise ServerError(f"A single-user backend failed: {(failed[0] if not done.returncode else done.stderr.strip())[-500:]}")
    return found


def _in_process(duck, commands: int, block: Block) -> dict[str, float]:
    """The same by a library in this process, with the calls of files and pipes that this thread makes meanwhile."""
    switches, first = _switches("/proc/thread-self/status"), _calls()
    before = _calls()
    started = time.perf_counter()
    for _ in range(commands):
        duck.execute(_SHORT).fetchall()
    seconds = time.perf_counter() - started
    calls = _calls() - before - (before - first)  # without those of looking
    switches = _switches("/proc/thread-self/status") - switches
    return {"messages": calls / commands, "client": switches / commands, "server": 0, "time": 1e6 * seconds / commands}


def _calls() -> int:
    return sum(_counts("sysc[rw]", Path("/proc/thread-self/io").read_text()))


# ---- what came of it


def found(chapter: Chapter) -> dict[str, dict[str, statistics.Interval]]:
    """By way: messages and, where both sides can be watched, switches of both sides for each command. Empty if nothing was measured."""
    return by_way(chapter, chapter.run.observations("ways"))


def by_way(chapter: Chapter, observations: pd.DataFrame) -> dict[str, dict[str, statistics.Interval]]:
    """The same of any run's observations."""
    if observations.empty:
        return {}
    messages, client, server = (wide(observations, name) for name in ("messages", "client", "server"))
    ways = {way: {"messages": statistics.median(messages[way], seed=chapter.parameters.seed)} for way in observations["arm"].unique()}
    for way in ways.keys() & set(server):
        ways[way]["switches"] = statistics.median(client[way] + server[way], seed=chapter.parameters.seed)
    return ways


def line(chapter: Chapter) -> str | None:
    """The way of the server under test, a command at a time; None if it wasn't measured."""
    return next((way for way in (UNIX, LOOPBACK, NETWORK) if way in found(chapter)), None)


def working(chapter: Chapter) -> statistics.Interval | None:
    """Of a command's time by that way, the share that a processor works on either side; None where the server's process can't be watched."""
    way, worked = line(chapter), chapter.table("ways", "processor")
    if way not in worked:
        return None
    return statistics.ratio(worked[way], chapter.table("ways", "time")[way], seed=chapter.parameters.seed)


def time_over(chapter: Chapter, above: str, below: str) -> statistics.Interval | None:
    """Time of a command by one way over that by another; None if either wasn't there."""
    return chapter.ratio("ways", "time", above, below) if {above, below} <= set(chapter.table("ways", "time")) else None
