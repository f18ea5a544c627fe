"""A cluster of ours that listens on TCP: to whoever knows the password, for the length of a block,
and not a moment longer.
"""

import os
import socket
import traceback

import psutil
import psycopg
import pytest
from servers import SMALL, as_root

from pgrerun.errors import ServerError
from pgrerun.lab.server import Cluster
from pgrerun.lab.server import cluster as room
from pgrerun.lab.server.loopback import ADDRESS


@pytest.fixture(scope="module")
def own():
    with Cluster(settings=SMALL) as server:
        yield server


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0


def ports_of(server: Cluster) -> list[tuple[str, int]]:
    postmaster = psutil.Process(next(iter(server.pids())))
    return [tuple(line.laddr) for line in postmaster.net_connections(kind="inet")]


def refused(port: int, **how: str) -> str:
    """What the server says to a connection that it doesn't let in."""
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(
            host=ADDRESS,
            port=port,
            dbname="postgres",
            **{"user": "postgres", "passfile": os.devnull} | how,
        )
    return str(caught.value)


def assert_closed(server: Cluster, port: int) -> None:
    """Nothing listens, no password is left, and the cluster is what it was."""
    assert not listens(port) and not ports_of(server)
    found = (
        "SELECT current_setting('listen_addresses'), current_setting('port'),"
        " right(current_setting('hba_file'), 12), count(rolpassword) FROM pg_authid"
    )
    assert server.fetch(found) == ("", "5432", "/pg_hba.conf", 0)


def test_only_the_password_opens_the_port_and_only_in_the_block(own):
    with own.listening() as face:
        assert ports_of(own) == [(ADDRESS, face.port)]
        where = "SELECT host(inet_server_addr()), inet_server_port()"
        assert face.fetch(where) == (ADDRESS, face.port) and own.fetch(where) == (None, None)
        assert face.tool("psql", "-Atc", "SELECT inet_server_port()").stdout == f"{face.port}\n"
        assert "no password supplied" in refused(face.port)
        assert "password authentication failed" in refused(face.port, password="postgres")
        assert "no pg_hba.conf entry" in refused(face.port, user="root")
        # the same server: its backends come and go, and one that was refused may still be ending
        assert next(iter(face.pids())) == next(iter(own.pids()))
    assert_closed(own, face.port)


@as_root
def test_another_account_of_this_machine_is_refused(own):
    with own.listening() as face:
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(1)
            os.setuid(1)
            doors = 0
            for host, port in (
                (ADDRESS, face.port),
                (own.connection_parameters()["host"], face.port),
            ):
                try:
                    psycopg.connect(
                        host=host,
                        port=port,
                        user="postgres",
                        dbname="postgres",
                        passfile=os.devnull,
                    )
                except psycopg.OperationalError as error:
                    doors += "no password supplied" in str(error) or "Permission denied" in str(
                        error
                    )
            os._exit(doors)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert_closed(own, face.port)


def test_an_error_in_the_block_closes_the_port_and_shows_no_password(own):
    with (
        pytest.raises(ZeroDivisionError) as caught,
        own.listening() as face,
        face.connect() as connection,
    ):
        told = (face, face.name, face.connection_parameters(), face.environment(), connection)
        shown = " ".join(map(repr, told))
        assert face.secret not in shown
        _ = 1 / 0
    assert_closed(own, face.port)
    shown = "".join(
        traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    )
    assert "own = <Cluster" in shown and face.secret not in shown and face.secret not in own.log()
    with pytest.raises(ServerError) as late:
        face.connect()
    shown = "".join(
        traceback.TracebackException.from_exception(late.value, capture_locals=True).format()
    )
    assert "refused" in shown and face.secret not in shown


def test_after_a_crash_in_the_block_no_start_listens_again(base):
    with Cluster(settings=SMALL) as server:
        with server.listening() as face:
            server.crash()
        assert not listens(face.port) and not server.pids()
        server.start()
        assert not listens(face.port) and not ports_of(server)
        assert server.settings["listen_addresses"] == "" and "hba_file" not in server.settings


def test_a_port_that_is_taken_meanwhile_is_tried_again_or_told(own, monkeypatch):
    with socket.socket() as squatter:
        squatter.bind((ADDRESS, 0))
        squatter.listen()
        taken, found = squatter.getsockname()[1], []
        free = room.free_port

        def first_taken() -> int:
            found.append(free() if found else taken)
            return found[-1]

        monkeypatch.setattr(room, "free_port", first_taken)
        with own.listening() as face:
            assert face.port == found[1] != taken
        monkeypatch.setattr(room, "free_port", lambda: taken)
        with pytest.raises(ServerError, match="could listen on no port"), own.listening():
            pytest.fail("somebody else has the port")
    assert_closed(own, taken)
