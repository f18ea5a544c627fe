"""A connection without a library: what is sent, what is counted, and answers that won't do."""

import pytest

from pgrerun.errors import ServerError
from pgrerun.lab.instruments import wire
from pgrerun.lab.server import open_server


@pytest.fixture(scope="module")
def line(cluster):
    with wire.Line(cluster) as line:
        yield line


def test_a_command_takes_a_message_there_and_one_back(line):
    assert line.route == wire.UNIX
    spent = line.run("SELECT 1", 20)
    assert spent.messages == 2
    assert spent.server is not None and spent.processor is not None
    assert line.run("SELECT 1", 20, request=wire.pipelined, together=10).messages == 2 / 10


def test_a_backend_that_cannot_be_watched_is_not_counted(borrowed_url, monkeypatch):
    with open_server(borrowed_url) as server:
        monkeypatch.setattr(server, "can", lambda capability: capability != "processes")
        with wire.Line(server) as line:
            spent = line.run("SELECT 1", 3)
    assert spent.messages == 2 and spent.server is None and spent.processor is None


@pytest.mark.parametrize(
    "command", ["SELECT 1 WHERE false", "VALUES (1), (2)", "SELECT 1 / 0", "no command"]
)
def test_an_answer_other_than_one_tuple_is_an_error_and_the_line_goes_on(line, command):
    with pytest.raises(ServerError, match="tuples"):
        line.run(command, 1)
    assert line.run("SELECT 1", 1).messages == 2


def test_a_server_that_hangs_up_is_told(cluster):
    with wire.Line(cluster) as line, pytest.raises(ServerError, match="closed the connection"):
        line.run("SELECT pg_terminate_backend(pg_backend_pid())", 1)
