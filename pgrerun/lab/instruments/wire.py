"""A connection that is spoken to without a library: what each command takes, call by call.

A message here is a call of the kernel that hands over commands to the server or answers from it.
"""

import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import process_table
from pgrerun.lab.server import Server
from pgrerun.lab.server.entrance import encryption
from pgrerun.lab.server.private import Closing

UNIX, LOOPBACK, NETWORK = "Unix socket", "TCP loopback", "TCP network"

Request = Callable[[str, int], bytes]
"""Bytes that ask for a command so many times."""


def simple(command: str, times: int) -> bytes:
    """The command so many times by the simple protocol, each answered by itself."""
    return _packed(b"Q", command.encode() + b"\0") * times


def pipelined(command: str, times: int) -> bytes:
    """The command so many times with one request for an answer to all.

    Parse, bind, execute each; sync.
    """
    each = (
        _packed(b"P", b"\0" + command.encode() + b"\0\0\0")
        + _packed(b"B", b"\0\0" + bytes(6))
        + _packed(b"E", b"\0" + bytes(4))
    )
    return each * times + _packed(b"S", b"")


def _packed(kind: bytes, body: bytes) -> bytes:
    """A message of the protocol (PostgreSQL documentation, 54.7): its kind, length, body."""
    return kind + struct.pack("!I", len(body) + 4) + body


@dataclass(frozen=True)
class Spent:
    """What one command took, on average.

    messages   calls of the client that sent or received something
    client     task switches of the client
    seconds    of wall clock
    server     task switches of the backend; None where it can't be watched
    processor  seconds on a processor, client and backend together; None likewise
    backend    those of the backend; None likewise
    """

    messages: float
    client: float
    seconds: float
    server: float | None = None
    processor: float | None = None
    backend: float | None = None


class Line(Closing):
    """A connection, made by the library and then spoken to by its socket; use it in a `with` block.

    `route` says where it leads: UNIX, LOOPBACK or NETWORK. CannotMeasure if it is encrypted, as its
    messages are then made where they can't be counted.
    """

    def __init__(self, server: Server):
        self._server = server
        self.connection = server.connect()
        if encryption(self.connection):
            raise CannotMeasure(
                "unencrypted connection",
                f"The connection to {server.name} is encrypted, so its messages are made"
                " where they can't be counted.",
            )
        info = self.connection.info
        if info.host.startswith("/"):
            self.route = UNIX
        else:
            self.route = LOOPBACK if info.hostaddr in ("127.0.0.1", "::1") else NETWORK
        self._backend = Path(f"/proc/{info.backend_pid}") if server.can("processes") else None
        self._socket = socket.socket(fileno=os.dup(self.connection.fileno()))
        # With a limit, Python polls before it receives, as libpq does. A plain recv on a Unix
        # socket is woken once more for nothing, when the other side has read what was sent (Linux,
        # unix_write_space).
        self._socket.settimeout(60)

    def close(self) -> None:
        self._socket.close()
        self.connection.close()

    def run(
        self,
        command: str,
        times: int,
        *,
        request: Request = simple,
        together: int = 1,
        tuples: int = 1,
    ) -> Spent:
        """Send a command `times` times, `together` at a time.

        ServerError if an answer doesn't have so many tuples.
        """
        sent, messages, rounds = request(command, together), 0, times // together
        done = rounds * together
        switches, before = process_table.count_switches(process_table.THREAD), self._used()
        worked, started = time.thread_time(), time.perf_counter()
        for _ in range(rounds):
            messages += self._send(sent) + self._receive(together * tuples)
        seconds, worked = time.perf_counter() - started, time.thread_time() - worked
        switches = process_table.count_switches(process_table.THREAD) - switches
        spent = Spent(messages / done, switches / done, seconds / done)
        after = self._used()
        if before is None or after is None:
            return spent
        return replace(
            spent,
            server=(after[0] - before[0]) / done,
            processor=(worked + (after[1] - before[1])) / done,
            backend=(after[1] - before[1]) / done,
        )

    def _used(self) -> tuple[int, float] | None:
        """Switches and seconds on a processor of the backend; None if it can't be watched."""
        if self._backend is None:
            return None
        return process_table.count_switches(self._backend), process_table.processor_seconds(
            self._backend
        )

    def _send(self, request: bytes) -> int:
        """The number of calls that it took."""
        calls = 0
        while request:
            request, calls = request[self._socket.send(request) :], calls + 1
        return calls

    def _receive(self, tuples: int) -> int:
        """The number of calls until the server is ready for more."""
        calls, held, kinds = 0, b"", b""
        while not kinds.endswith(b"Z"):
            arrived = self._socket.recv(1 << 16)
            if not arrived:
                raise ServerError(f"{self._server.address} closed the connection.")
            held, calls = held + arrived, calls + 1
            while len(held) >= 5 and len(held) > (size := struct.unpack("!I", held[1:5])[0]):
                kinds, held = kinds + held[:1], held[size + 1 :]
        if kinds.count(b"D") != tuples or b"E" in kinds:
            raise ServerError(
                f"{self._server.address} answered with {kinds.count(b'D')} tuples, where a command"
                f" should have {tuples}."
            )
        return calls
