"""Strange servers to borrow: poolers and relays between a guest and a throwaway cluster."""

import contextlib
import re
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from servers import until

from pgrerun.lab.server import Cluster, private

POOLER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin")
_STARTUP = 196608  # the number of the protocol's version 3.0, which begins a session


def dump(server: Cluster) -> str:
    """Everything in the cluster, byte for byte, but for a word that pg_dump draws by lot."""
    text = server.tool("pg_dumpall").stdout
    return re.sub(r"^\\(un)?restrict \w+$", "", text, flags=re.MULTILINE)


_BESIDE = """
SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
       (SELECT count(*) FROM pg_replication_slots),
       (SELECT string_agg(concat_ws('=', sourcefile, name, setting), ' ' ORDER BY sourcefile, seqno)
        FROM pg_file_settings), -- one that is written and not yet read is in neither of the others
       (SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
        WHERE source NOT IN ('default', 'override', 'client'))
"""


@contextlib.contextmanager
def untouched(server: Cluster) -> Iterator[None]:
    """A block after which the server holds what it held, no lock of ours and no setting."""
    before = dump(server), server.fetch(_BESIDE)
    yield
    assert (dump(server), server.fetch(_BESIDE)) == before and before[1][0] == 0


@contextlib.contextmanager
def pooled(server: Cluster, mode: str, user: str = "postgres") -> Iterator[str]:
    """The URL of a pgbouncer before the cluster; a test that asks for it is skipped without one."""
    if POOLER is None:
        pytest.skip("pgbouncer is not installed")
    with private.PrivateDirectory(private.base_directory(), private.account()) as home:
        folder = home.folder("pooler")
        host = server.connection_parameters()["host"]
        (folder / "users").write_text(f'"{user}" ""\n')
        (folder / "pooler.ini").write_text(
            f"[databases]\n* = host={host}\n[pgbouncer]\nunix_socket_dir = {folder}\n"
            "listen_addr =\nlisten_port = 6432\nauth_type = trust\n"
            f"auth_file = {folder}/users\npool_mode = {mode}\n"
            "ignore_startup_parameters = extra_float_digits,options\n"
        )
        command, how = private.as_account(private.account(), [POOLER, "-q", f"{folder}/pooler.ini"])
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL, **how)
        url = f"postgresql://{user}@/postgres?host={quote(str(folder), safe='')}&port=6432"
        try:
            until(lambda: _answers(url), lambda: process.poll() is None)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _answers(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


def socket_of(server: Cluster) -> str:
    where = server.connection_parameters()
    return f"{where['host']}/.s.PGSQL.{where['port']}"


class Relay:
    """A TCP port of this machine that leads to a cluster's socket.

    With `options` False it drops that startup parameter without a word, as poolers do.
    """

    def __init__(self, server: Cluster, options: bool = True):
        self.target, self.options = socket_of(server), options
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self._listening.getsockname()[1]}/postgres"
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *exception: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._relay, args=[near], daemon=True).start()

    def _relay(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError, struct.error):
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far.connect(self.target)
            far.sendall(self._started(near))
            backwards = threading.Thread(target=_pump, args=[far, near], daemon=True)
            backwards.start()
            _pump(near, far)
            backwards.join(5)

    def _started(self, near: socket.socket) -> bytes:
        """The first packet, refusing encryption: a session's beginning, or a cancellation."""
        while True:
            length, code = struct.unpack("!II", near.recv(8, socket.MSG_WAITALL))
            rest = near.recv(length - 8, socket.MSG_WAITALL)
            if code in (80877103, 80877104):  # asks for TLS, for GSSAPI
                near.sendall(b"N")
                continue
            if code >> 16 == _STARTUP >> 16 and not self.options:
                words = rest.rstrip(b"\0").split(b"\0")
                pairs = zip(words[::2], words[1::2], strict=True)
                rest = b"".join(k + b"\0" + v + b"\0" for k, v in pairs if k != b"options") + b"\0"
            return struct.pack("!II", len(rest) + 8, code) + rest


def _pump(here: socket.socket, there: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := here.recv(1 << 16):
            there.sendall(piece)
        there.shutdown(socket.SHUT_WR)
