"""A single-user backend: its answers, and errors that its exit status doesn't tell."""

import os

import pytest

from pgrerun.errors import ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import single_user


def test_each_line_is_a_command_and_what_it_does_stays(stopped):
    single_user.run(stopped, ["CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (4), (5)"])
    asked = ["SELECT sum(n) AS total FROM kept", "SELECT 7 AS other"]
    with statement_log.record() as account:
        text = single_user.run(stopped, asked)
    assert account.statements() == [(one, 1) for one in asked]
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


def test_a_copy_has_its_own_pages(stopped, tmp_path, monkeypatch):
    (tmp_path / "cp").write_text("#!/bin/sh\nexit 1\n")  # another one in the caller's path
    (tmp_path / "cp").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    single_user.run(stopped, ["CREATE TABLE copied AS SELECT 1 AS one"])
    with single_user.copied(stopped) as own:
        assert own.data_directory != stopped.data_directory
        files = [path for path in own.data_directory.rglob("*") if path.is_file()]
        shared = {path.parent for path in files if path.stat().st_nlink > 1}
        assert shared == {own.data_directory / "base" / name for name in single_user.TEMPLATES}
        asked = own.single_user(input="SHOW data_checksums\n", capture_output=True)
        assert 'data_checksums = "on"' in asked.stdout
        owner = stopped.data_directory.stat().st_uid
        assert {path.stat().st_uid for path in own.data_directory.rglob("*")} == {owner}
        (own.data_directory / "PG_VERSION").unlink()
    assert 'one = "1"' in single_user.run(stopped, ["SELECT one FROM copied"])
    assert not own.data_directory.exists()
