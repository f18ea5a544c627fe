"""A guest on somebody's server leaves it as found, and says no password aloud."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import traceback
from types import SimpleNamespace

import psycopg
import pytest
from servers import SMALL, admit, running, tell, until, url_of
from strangers import untouched

from pgrerun.errors import CannotMeasure, ParameterError, ServerError
from pgrerun.lab.server import Borrowed, Cluster, borrowed, open_server

SECRET = "s3cr3t-w0rd%of/ours"


@pytest.fixture(scope="module")
def owner():
    """Somebody's server: users, databases and relations of its own, passwords for `guest`."""
    with Cluster(settings=SMALL) as server:
        tell(
            server,
            f"CREATE ROLE guest LOGIN PASSWORD '{SECRET}'",
            "CREATE ROLE visitor LOGIN",
            "CREATE DATABASE closed",
            "CREATE DATABASE guests OWNER guest",
            "CREATE TABLE accounts AS SELECT generate_series(1, 10) aid",
            "CREATE FUNCTION accounts() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        )
        admit(
            server,
            "local all guest scram-sha-256",
            "local all rejected reject",
            "local all all trust",
        )
        yield server


@pytest.fixture
def url(owner):
    return url_of(owner)


@pytest.fixture
def admin(owner):
    with owner.connect() as connection:
        yield connection


def schemas(connection):
    found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname = 'pgrerun'")
    return [name for (name,) in found]


# -- as found --


@pytest.mark.parametrize("ending", ["close", "exception", "open transaction", "running tool"])
def test_the_server_is_left_as_found(owner, url, admin, ending):
    ended = pytest.raises(ZeroDivisionError) if ending == "exception" else contextlib.nullcontext()
    with (
        untouched(owner),
        ended,
        contextlib.ExitStack() as beside,
        open_server(url) as guest,
    ):
        assert isinstance(guest, Borrowed) and not guest.owned and guest.schema == "pgrerun"
        tell(
            guest,
            "CREATE TABLE accounts AS SELECT generate_series(1, 99) aid",
            "CREATE INDEX ON accounts (aid)",
            "CREATE VIEW few AS SELECT * FROM accounts LIMIT 5",
            "CREATE FUNCTION f(accounts) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "SET work_mem = '1MB'",
        )
        assert guest.tool("psql", "-Atc", "SELECT count(*) FROM accounts").stdout == "99\n"
        guest.tool("pgbench", "-i", "-q")
        if ending == "exception":
            raise ZeroDivisionError
        if ending == "open transaction":
            guest.connect(autocommit=False).execute("LOCK TABLE accounts")
        if ending == "running tool":
            locked = "BEGIN; LOCK TABLE accounts; SELECT pg_sleep(60)"
            beside.enter_context(running(guest, "psql", "-c", locked))
            begun = "SELECT 1 FROM pg_stat_activity WHERE query ~ '^BEGIN; LOCK'"
            until(lambda: admin.execute(begun).fetchone())
    guest.close()


def test_a_schema_of_our_name_that_isnt_ours_stays(url, admin):
    admin.execute("CREATE SCHEMA pgrerun; CREATE TABLE pgrerun.precious AS SELECT 42 x")
    try:
        for comment in ("", "COMMENT ON SCHEMA pgrerun IS 'pgrerun: made by hand'"):
            admin.execute(comment or "SELECT 1")
            with pytest.raises(ServerError, match="no run of ours made .*owner postgres.*RENAME"):
                open_server(url)
            assert admin.execute("SELECT x FROM pgrerun.precious").fetchone() == (42,)
    finally:
        admin.execute("DROP SCHEMA pgrerun CASCADE")


CHILD = """
import sys, time
from pgrerun.lab.server import open_server
guest = open_server(sys.argv[1])
with guest.connect() as connection: connection.execute("CREATE TABLE t (i int)")
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_killed(url, admin, number):
    """Ctrl-C and SIGTERM tidy up; after kill -9 the next run knows its own and replaces it."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with child.stdout:
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(
            ServerError, match=r"Another run is using .*session \d+ of user postgres"
        ):
            open_server(url)
        assert schemas(admin) == ["pgrerun"], "the live run's schema isn't touched"
        child.send_signal(number)
        assert child.wait(120) == -number
    if number != signal.SIGKILL:
        assert schemas(admin) == []
        return
    assert schemas(admin) == ["pgrerun"]
    held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"
    # its session ends when the server notices
    until(lambda: not admin.execute(held).fetchone())
    with open_server(url) as guest:
        assert guest.fetch("SELECT to_regclass('t')") == (None,)
    assert schemas(admin) == []


def test_the_lost_session_doesnt_keep_the_schema_alive(url, admin):
    with open_server(url):
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    assert schemas(admin) == []


# -- passwords --


def libpq_way(way, owner, tmp_path, monkeypatch):
    """A URL for `guest`, the password given by one of libpq's own ways."""
    host = owner.connection_parameters()["host"]
    lines = ["[theirs]", f"host={host}", "user=guest", "dbname=guests", f"password={SECRET}"]
    held = {"PGPASSFILE": f"*:*:guests:guest:{SECRET}\n", "PGSERVICEFILE": "\n".join(lines)}
    value = SECRET
    if way in held:
        value = tmp_path / way
        value.write_text(held[way])
        value.chmod(0o600)
    monkeypatch.setenv(way, str(value))
    return "service=theirs" if way == "PGSERVICEFILE" else url_of(owner, "guest", "guests")


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_a_password_comes_by_libpqs_own_ways_and_is_said_nowhere(owner, tmp_path, monkeypatch, way):
    with open_server(libpq_way(way, owner, tmp_path, monkeypatch)) as guest:
        assert guest.tool("psql", "-Atc", "SELECT current_user").stdout == "guest\n"
        # Later sessions don't depend on what becomes of the environment.
        monkeypatch.delenv("PGPASSWORD", raising=False)
        monkeypatch.setenv("PGSERVICEFILE", "/nonexistent")
        monkeypatch.setenv("PGDATABASE", "elsewhere")
        assert guest.fetch("SELECT current_user, current_database()") == ("guest", "guests")
        with pytest.raises(ServerError) as caught:
            guest.tool("psql", "-c", f"SELECT nonsense -- {SECRET}")
        shown = (guest, guest.connection_parameters(), guest.environment())
        said = [guest.name, *map(repr, shown)]
        assert not [text for text in (*said, str(caught.value)) if SECRET in text]
        assert "guests" in guest.address and "guest" not in guest.name


# -- no entry --


@pytest.mark.parametrize(
    "user, database, said",
    [
        ("guest", "guests", "password authentication failed.*PGPASSFILE"),
        ("rejected", "postgres", "pg_hba.conf.*ask who runs it"),
        ("noone", "postgres", 'role "noone" does not exist.*existing user'),
        ("postgres", "missing", 'database "missing" does not exist.*createdb'),
        ("visitor", "closed", "may not create a schema.*GRANT CREATE ON DATABASE closed TO visi"),
    ],
)
def test_no_entry_says_why_and_what_to_do(owner, monkeypatch, user, database, said):
    monkeypatch.setenv("PGPASSWORD", "wr0ng-s3cr3t")
    with pytest.raises(ServerError, match=f"(?s){said}") as caught:
        open_server(url_of(owner, user, database))
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "wr0ng-s3cr3t" not in "".join(told.format())
    assert caught.value.__context__ is None, "psycopg's frames hold the password"


def test_a_server_that_never_answers(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX) as silent:
        place = os.path.relpath(tmp_path / ".s.PGSQL.5432")
        silent.bind(str(tmp_path / ".s.PGSQL.5432") if len(str(tmp_path)) < 90 else place)
        silent.listen()
        monkeypatch.setattr(borrowed, "CONNECT_TIMEOUT", 3600)  # nobody waits so long
        with pytest.raises(ServerError, match="(?s)timeout.*Nothing answers there"):
            open_server(f"host={tmp_path} user=postgres dbname=postgres connect_timeout=2")


def test_too_old_a_server_is_refused(url, admin, monkeypatch):
    monkeypatch.setattr(borrowed, "OLDEST", (99, 0))
    with pytest.raises(ServerError, match="too old: .*99.0 or later"):
        open_server(url)
    assert schemas(admin) == []


def test_a_server_that_takes_no_writes(url):
    with pytest.raises(ServerError, match="takes no writes"):
        open_server(f"{url}&options=-c%20default_transaction_read_only%3Don")


def test_a_server_that_dies_meanwhile(base):
    with Cluster() as server:
        with pytest.raises(ZeroDivisionError) as first, open_server(url_of(server)):
            server.stop("immediate")
            raise ZeroDivisionError
        assert "couldn't be dropped" in first.value.__notes__[0]
        server.start()
        guest = open_server(url_of(server))
        server.stop("immediate")
        for use in (guest.connect, lambda: guest.tool("psql", "-c", "SELECT 1")):
            with pytest.raises(
                ServerError, match="(?s)failed on PostgreSQL 18.*Nothing answers there"
            ):
                use()
        with pytest.raises(ServerError, match="couldn't be dropped.*The next run there drops it"):
            guest.close()
        server.start()
        open_server(url_of(server)).close()
    assert list(base.iterdir()) == []


# -- capabilities --


def test_capabilities_of_a_superuser_next_door(url, admin):
    able = {"superuser": True, "checkpoint": True, "files": True, "processes": True}
    able |= {"restart": False, "jit": False}
    with open_server(url) as guest:
        assert {name: guest.can(name) for name in able} == able
        with pytest.raises(CannotMeasure, match="don't restart somebody else's server"):
            guest.require("restart")
        with pytest.raises(CannotMeasure, match="pageinspect in this database, and we create none"):
            guest.extension("pageinspect")
        admin.execute("CREATE EXTENSION pageinspect")
        assert guest.extension("pageinspect") == "public"
        admin.execute("DROP EXTENSION pageinspect")


def test_capabilities_of_an_ordinary_guest(owner, admin, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with open_server(url_of(owner, "guest", "guests")) as guest:
        assert not any(guest.can(name) for name in ("superuser", "checkpoint", "files"))
        admin.execute("GRANT pg_checkpoint TO guest")
        assert guest.can("checkpoint")
        admin.execute("REVOKE pg_checkpoint FROM guest")


def test_another_hosts_path_isnt_taken_for_the_servers(url):
    there = SimpleNamespace(backend_pid=os.getpid(), host="db.example.org", hostaddr="192.0.2.1")
    with open_server(url) as guest, pytest.raises(OSError):
        guest.local_backend(SimpleNamespace(info=there))


def test_its_full_disk_is_its_owners_to_mend(url):
    theirs = "The disk of PostgreSQL .* is full: could not extend file. Make room there"
    full = psycopg.errors.DiskFull("could not extend file.\nHINT: none")
    ours = OSError(errno.ENOSPC, "No space left on device")  # beside it
    with open_server(url) as guest:
        for error, said in ((full, theirs), (ours, "The disk is full.*PGRERUN_TMPDIR")):
            with pytest.raises(ServerError, match=said):
                guest.raise_if_disk_full(error)
        guest.raise_if_disk_full(OSError(errno.ENOENT, "No such file"))


# -- how a guest may hold itself back --


@pytest.mark.parametrize(
    ("options", "settings", "name", "value"),
    [
        ("", {"statement_timeout": 4321}, "statement_timeout", "4321ms"),
        ("&options=-c%20work_mem%3D7MB", {}, "work_mem", "7MB"),  # the user's own
    ],
)
def test_settings_reach_connections_and_tools(url, options, settings, name, value):
    with Borrowed(f"{url}{options}", settings=settings) as guest:
        shown = guest.fetch(f"SELECT current_setting('{name}'), current_schema()")
        assert shown == (value, "pgrerun")
        assert guest.tool("psql", "-Atc", f"SHOW {name}").stdout == f"{value}\n"
        with pytest.raises(CannotMeasure, match="not ours"), guest.reloaded(commit_delay=123):
            pass


def test_what_a_guest_abstains_from_is_set_aside_even_for_a_superuser(url):
    with Borrowed(url, abstains=("checkpoint",)) as guest:
        assert guest.can("superuser") and not guest.can("checkpoint")
        with pytest.raises(CannotMeasure, match="felt by everybody"):
            guest.require("checkpoint")


def test_a_place_is_told_without_a_connection():
    with pytest.raises(ParameterError, match="PGPASSFILE"):
        borrowed.place("postgresql://me:secret@db.example/bench")
    told = borrowed.place("postgresql://me@db.example:6432/bench")
    assert told == "db.example:6432, database bench, user me"
    for odd in ("postgresql:///a\nb\x1b[2J", "service='a\nb\x1b[2J'"):
        assert borrowed.place(odd).endswith(r"a\nb\x1b[2J")
