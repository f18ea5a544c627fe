"""A single-user backend: its answers, and errors that its exit status doesn't tell."""

import pytest

from pgrerun.errors import ServerError
from pgrerun.lab.instruments import single_user
from pgrerun.lab.server import Cluster


@pytest.fixture(scope="module")
def stopped():
    with Cluster() as cluster:
        cluster.stop()
        yield cluster


def test_each_line_is_a_command_and_what_it_does_stays(stopped):
    text = single_user.run(
        stopped, ["CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (4), (5)"]
    )
    assert "ERROR" not in text
    text = single_user.run(stopped, ["SELECT sum(n) AS total FROM kept", "SELECT 7 AS other"])
    assert text.index('total = "9"') < text.index('other = "7"')


def test_a_command_that_fails_is_told_in_the_servers_words(stopped):
    with pytest.raises(ServerError, match='relation "nowhere" does not exist'):
        single_user.run(stopped, ["SELECT 1", "SELECT * FROM nowhere"])


def test_a_backend_that_does_not_start_is_told(stopped):
    settings = stopped.data_directory / "postgresql.auto.conf"
    kept = settings.read_text()
    settings.write_text(kept + "no_such_setting = 1\n")
    try:
        with pytest.raises(ServerError, match="no_such_setting"):
            single_user.run(stopped, ["SELECT 1"])
    finally:
        settings.write_text(kept)
