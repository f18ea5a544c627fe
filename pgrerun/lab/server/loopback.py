"""A throwaway cluster as one reaches it over TCP, while it listens there (`Cluster.listening`)."""

from __future__ import annotations

import secrets
from pathlib import Path

import psycopg
from psycopg import sql

from pgrerun.errors import ServerError
from pgrerun.lab.server.client import Server

ADDRESS = "127.0.0.1"


class Loopback(Server):
    """The other face of a cluster of ours: its connections and tools come over TCP, `port` at
    127.0.0.1.

    It has a password, made of 256 random bits when it is, which is kept as Borrowed keeps
    somebody's: it is in no name, connection string or error, and no frame of a traceback holds it.
    """

    owned = True

    def __init__(self, cluster: Server, port: int):
        super().__init__()
        self._cluster, self.port = cluster, port
        self.secret = secrets.token_urlsafe(32)
        self.programs, self._account = cluster.programs, cluster._account
        self.version, self.version_text = cluster.version, cluster.version_text
        self.schema, self.scratch = cluster.schema, cluster.scratch
        self.name = f"{cluster.name}, over TCP"

    def admission(self, connection: psycopg.Connection) -> sql.Composed:
        """The statement that makes the password valid.

        It holds a SCRAM verifier: neither the server nor its log sees the password.
        """
        verifier = connection.pgconn.encrypt_password(
            self.secret.encode(), b"postgres", b"scram-sha-256"
        )
        return sql.SQL("ALTER ROLE postgres PASSWORD {}").format(verifier.decode())

    def close(self) -> None:
        self._close_connections()

    def pids(self) -> dict[int, str]:
        """As `Cluster.pids`."""
        return self._cluster.pids()

    def ensure_alive(self) -> None:
        self._cluster.ensure_alive()

    def environment(self) -> dict[str, str]:
        return super().environment() | {"HOME": str(self.scratch)}

    def connection_parameters(self) -> dict[str, str]:
        return self._cluster.connection_parameters() | {"host": ADDRESS, "port": str(self.port)}

    def _password(self) -> str:
        return self.secret

    def _await_death(self, said: str) -> None:
        self._cluster._await_death(said)

    def _lost(self, what: str, said: str) -> ServerError:
        return self._cluster._lost(what, said)

    def _executable(self, name: str) -> Path:
        return self._cluster._executable(name)

    def missing(self, capability: str) -> str | None:
        return self._cluster.missing(capability)
