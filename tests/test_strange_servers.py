"""Strange servers: each works or is refused in one paragraph, and none is harmed or changed."""

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql
from servers import SMALL, running, tell, until, url_of
from strangers import Relay, pooled, socket_of, untouched

from pgrerun import parameters
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import (
    Cluster,
    binaries,
    borrowed,
    entrance,
    installed,
    open_server,
    private,
)
from pgrerun.report_card import catalogs

CHAPTERS = Path(parameters.__file__).parent / "chapters"
TEMPLATE = CHAPTERS.parent / "site" / "template"
_MADE = re.compile(
    r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)|DROP TABLE IF EXISTS (\w+)"
)


def names_of_ours() -> list[str]:
    """Every table that a chapter's SQL makes or drops by name."""
    texts = [path.read_text() for root in (CHAPTERS, TEMPLATE) for path in root.rglob("*.sql")]
    found = {name for text in texts for pair in _MADE.findall(text) for name in pair if name}
    return sorted(found | {"accounts", "pgbench_accounts", "pgbench_history"})


@pytest.fixture(scope="module")
def owner():
    """A server with tables of its own, by all of our names, and sessions that are somebody's."""
    with Cluster(settings=SMALL | {"wal_level": "logical", "autovacuum": "off"}) as server:
        tell(
            server,
            "SET search_path = public",
            *(f'CREATE TABLE "{name}" AS SELECT 1 AS theirs' for name in names_of_ours()),
            *("CREATE DATABASE published", "CREATE DATABASE decoded"),
            *("CREATE ROLE guest LOGIN", "GRANT CREATE ON DATABASE postgres TO guest"),
        )
        yield server


def test_no_name_of_ours_means_a_table_of_theirs(owner):
    """By sessions of ours and of tools: dropped, made, filled and left, and theirs is theirs."""
    names = names_of_ours()
    assert {"item", "jobs", "accounts"} <= set(names) and len(names) > 40
    words = "".join(
        f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" (ours int);'
        f' INSERT INTO "{name}" VALUES (2); TRUNCATE "{name}";\n'
        for name in names
    )
    with untouched(owner), open_server(url_of(owner)) as guest, guest.connect() as connection:
        connection.execute(words)
        assert guest.tool("psql", "-Xqc", words).returncode == 0
        assert pgbench.run(guest, words, transactions=1).transactions == 1
        guest.tool("pgbench", "-i", "-q")


# -- poolers --


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_is_refused_before_anything_is_set(owner, mode):
    with untouched(owner), pooled(owner, mode) as url:
        with pytest.raises(ServerError, match="connection pooler.*nothing was set.*server itself"):
            open_server(url)
        # another's session afterwards: the one that ours was, as the pool has no other
        with psycopg.connect(url, autocommit=True) as theirs:
            for setting in ("search_path", "statement_timeout", "synchronous_commit"):
                shown = theirs.execute(
                    "SELECT source FROM pg_settings WHERE name = %s", [setting]
                ).fetchone()
                assert shown == ("default",)


def test_a_session_that_is_older_than_its_connection_is_a_poolers(owner, monkeypatch):
    with psycopg.connect(url_of(owner), autocommit=True) as old:
        time.sleep(0.05)
        assert not entrance.look(old, time.monotonic() - 10).obstacles
        monkeypatch.setattr(entrance, "SLACK", 0.0)
        [said] = entrance.look(old, time.monotonic()).obstacles
    assert "older than the connection" in said


@pytest.mark.parametrize("words", ["DROP TABLE IF EXISTS item", "CREATE TABLE item (i int)"])
def test_a_connection_that_drops_our_settings_gets_no_statement_of_ours(owner, words):
    """The URL leads past every other check: the process that answers is the server's own."""
    with (
        untouched(owner),
        Relay(owner, options=False) as relay,
        pytest.raises(ServerError, match="settings didn't arrive.*Nothing of ours ran"),
        open_server(relay.url) as guest,
        guest.connect() as connection,
    ):
        connection.execute(words)


def test_one_that_begins_to_drop_them_gets_none_either(owner):
    with untouched(owner), Relay(owner) as relay, open_server(relay.url) as guest:
        tell(guest, "CREATE TABLE item (i int)")
        relay.options = False
        with pytest.raises(ServerError, match="settings didn't arrive"):
            guest.connect()
        with pytest.raises(ServerError, match="settings didn't arrive"):
            guest.tool("psql", "-c", "DROP TABLE item")
        relay.options = True


def test_another_server_behind_the_same_address_gets_no_statement(owner, cluster):
    with (
        untouched(owner),
        untouched(cluster),
        Relay(cluster) as relay,
        open_server(relay.url) as guest,
    ):
        target, relay.target = relay.target, socket_of(owner)
        with pytest.raises(ServerError, match="isn't the same server"):
            guest.connect()
        relay.target = target


# -- replication --


@contextlib.contextmanager
def meanwhile(url: str, made: Iterable[str], undone: Iterable[str]):
    """A block between statements of somebody's; yields a session of theirs."""
    with psycopg.connect(url, autocommit=True) as admin:
        for statement in made:
            admin.execute(statement)
        try:
            yield admin
        finally:
            for statement in undone:
                admin.execute(statement)


PUBLISHED = (["CREATE PUBLICATION everything FOR ALL TABLES"], ["DROP PUBLICATION everything"])


def test_a_database_that_is_published_is_refused(owner):
    url = url_of(owner, database="published")
    one = ["CREATE TABLE t (i int)", "CREATE PUBLICATION one FOR TABLE t"]
    with meanwhile(url, one, ["DROP TABLE t", "DROP PUBLICATION one"]):
        open_server(url).close()
    refused = r"publishes all its tables \(everything\).*another database"
    with meanwhile(url, *PUBLISHED), untouched(owner), pytest.raises(ServerError, match=refused):
        open_server(url)


def test_a_database_whose_changes_are_decoded_is_refused(owner):
    url = url_of(owner, database="decoded")
    slot, gone = (
        "SELECT pg_create_logical_replication_slot('slot', '{}')",
        "SELECT pg_drop_replication_slot('slot')",
    )
    with meanwhile(url, [slot.format("pgoutput")], [gone]):
        address, seen = borrowed.look(url)
        assert "slot" in seen.remarks["replication slots"] and not seen.obstacles
        assert "database decoded" in address
    refused = pytest.raises(ServerError, match=r"decodes.*\(replication slot slot\)")
    with meanwhile(url, [slot.format("test_decoding")], [gone]), refused:
        open_server(url)


@contextlib.contextmanager
def without_its_standby(server: Cluster):
    """A block in which commits wait for a standby that isn't there; yields a session that can."""
    made = ["SET synchronous_commit = local"]
    made += ["ALTER SYSTEM SET synchronous_standby_names = 'gone'", "SELECT pg_reload_conf()"]
    undone = ["ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"]
    with meanwhile(url_of(server), made, undone) as admin:
        shown = "SHOW synchronous_standby_names"
        until(lambda: admin.execute(shown).fetchone() == ("gone",))
        yield admin


def test_a_standby_that_doesnt_answer_is_told_and_nothing_waits(owner, monkeypatch):
    monkeypatch.setattr(borrowed, "PATIENCE", 1)
    with untouched(owner), without_its_standby(owner):
        with pytest.raises(ServerError, match=r"wait for a standby \(gone\).*none answers"):
            open_server(url_of(owner))
        local = f"{url_of(owner)}&options=-csynchronous_commit%3Dlocal"
        with open_server(local) as guest:
            tell(guest, "CREATE TABLE t (i int)")


def test_a_standby_that_leaves_meanwhile_doesnt_keep_the_schema(owner):
    with (
        untouched(owner),
        open_server(url_of(owner)) as guest,
        without_its_standby(owner) as admin,
        running(guest, "psql", "-c", "CREATE TABLE t (i int)"),
    ):
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        until(lambda: admin.execute(waits).fetchone())
        guest.close()


# -- others on the server --


def test_others_may_make_and_drop_what_they_want_meanwhile(owner):
    ended, drop = threading.Event(), "DROP TABLE IF EXISTS public.coming"

    def work() -> None:
        with meanwhile(url_of(owner), ["SET client_min_messages = error"], [drop]) as theirs:
            while not ended.is_set():
                theirs.execute(drop)
                theirs.execute("CREATE TABLE public.coming (id int PRIMARY KEY, t text)")

    with ThreadPoolExecutor(1) as beside:
        worker = beside.submit(work)
        try:
            for _ in range(12):
                with open_server(url_of(owner)) as guest:
                    tell(guest, "CREATE TABLE coming (id int PRIMARY KEY, t text)")
        finally:
            ended.set()
    worker.result()


# What others build on a table `t`, a function `f` and a type `kind` of ours.
BUILT = {
    "VIEW public.v AS SELECT * FROM pgrerun.t": "view",
    "TABLE public.child (id int REFERENCES pgrerun.t)": "child",
    "TABLE public.part PARTITION OF pgrerun.parted FOR VALUES IN (1)": "part",
    "TABLE public.heir () INHERITS (pgrerun.t)": "heir",
    "TABLE public.typed (k pgrerun.kind)": "typed",
    "TABLE public.computed (n int DEFAULT pgrerun.f())": "computed",
    "FUNCTION public.g(pgrerun.t) RETURNS int LANGUAGE sql AS 'SELECT 1'": "function public.g",
    "EXTENSION pageinspect SCHEMA pgrerun": "extension pageinspect",
    "TABLE pgrerun.precious (i int)": "precious",
}


def test_nothing_of_others_is_dropped_along(owner):
    guest = open_server(url_of(owner))
    tell(
        guest,
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE parted (i int) PARTITION BY LIST (i)",
        "CREATE TYPE kind AS ENUM ('a')",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "GRANT ALL ON SCHEMA pgrerun TO guest",
    )
    leave = guest.close
    for made, told in BUILT.items():
        role = "SET ROLE guest" if "precious" in made else "RESET ROLE"
        kind, name = made.split()[:2]
        # what is dropped is still there
        drop = f"DROP {kind} {name.partition('(')[0]}"
        refused = pytest.raises(ServerError, match=f"of others.*{told}.*so it stays")
        with meanwhile(url_of(owner), [role, f"CREATE {made}"], [drop]), refused:
            leave()
        leave = partial(open_server, url_of(owner))  # the next run would drop it
    open_server(url_of(owner)).close()


@pytest.fixture(scope="module")
def small():
    """A server with twelve connections, nine of them for ordinary roles."""
    with Cluster(settings=SMALL | {"max_connections": 12}) as server:
        grant = "GRANT CREATE ON DATABASE postgres TO guest"
        tell(server, "CREATE ROLE guest LOGIN", "CREATE ROLE app LOGIN", grant)
        yield server


def test_the_application_can_always_connect(small):
    """A guest that takes all that it may leaves others three; an ordinary role can count that."""
    with contextlib.ExitStack() as app:
        connect = lambda: app.enter_context(psycopg.connect(url_of(small, "app")))
        for _ in range(3):
            connect()
        with open_server(url_of(small, "guest")) as guest:
            with contextlib.suppress(CannotMeasure), contextlib.ExitStack() as ours:
                for _ in range(20):
                    ours.enter_context(guest.connect())
                pytest.fail("no end to it")
            with pytest.raises(CannotMeasure, match="20 more .*stay so for others"):
                pgbench.run(guest, "SELECT 1;", clients=20, transactions=1)
            done = pgbench.run(guest, "SELECT 1;", clients=guest.room, transactions=1)
            assert done.transactions
            for _ in range(entrance.LEAVE):
                connect()
        for _ in range(2):
            connect()
        with pytest.raises(ServerError, match=r"Connections that are free .*: \d"):
            open_server(url_of(small, "guest"))


@pytest.mark.parametrize("limit", ["ROLE guest", "DATABASE postgres"])
def test_limits_of_a_role_and_of_a_database_count(small, limit):
    made, undone = (f"ALTER {limit} CONNECTION LIMIT {number}" for number in (2, -1))
    refused = pytest.raises(ServerError, match="Connections that are free .*: [01]")
    with meanwhile(url_of(small), [made], [undone]), refused:
        open_server(url_of(small, "guest"))


# -- encryption --


def with_tls():
    """Installed programs that can encrypt; skips without any."""
    probe = {**os.environ, "PGSSLMODE": "require", "PGHOST": "/nonexistent", "LC_ALL": "C"}
    for programs in installed():
        command = [programs.path("psql"), "-c", ""]
        if b"not compiled in" not in subprocess.run(command, env=probe, capture_output=True).stderr:
            return programs
    return pytest.skip("no installed PostgreSQL has TLS")


@pytest.fixture(scope="module")
def offered():
    """A server that offers TLS over TCP, its URL and password."""
    with Cluster(with_tls(), settings=SMALL) as server:
        folder, who = server.data_directory, private.account()
        key = ["-nodes", "-keyout", folder / "server.key", "-out", folder / "server.crt"]
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *key, *subject, "-days", "9"]
        subprocess.run(command, check=True, capture_output=True)
        for path in (folder / "server.key", folder / "server.crt"):
            path.chmod(0o600)
            if who:
                os.chown(path, who.pw_uid, who.pw_gid)
        server.restart({"ssl": "on"})
        with server.listening() as face:
            yield server, f"postgresql://postgres@127.0.0.1:{face.port}/postgres", face.secret


@pytest.fixture
def offering(offered, monkeypatch):
    server, url, secret = offered
    monkeypatch.setenv("PGPASSWORD", secret)
    return server, url


ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.mark.parametrize(
    ("mode", "told", "shown"),
    [("", "encrypted by TLS", "t"), ("?sslmode=disable", "in clear", "f")],
)
def test_what_is_offered_encrypted_is_so_on_every_session_unless_the_reader_wants_none(
    offering, mode, told, shown
):
    server, url = offering
    with untouched(server), open_server(f"{url}{mode}") as guest:
        assert guest.seen.remarks["sessions"] == told
        assert guest.tool("psql", "-Atc", ENCRYPTED).stdout == f"{shown}\n"
        assert guest.fetch(ENCRYPTED) == (shown == "t",)
        assert pgbench.run(guest, f"{ENCRYPTED};", transactions=1).transactions == 1


def test_tools_that_cant_encrypt_are_set_aside_and_not_used_in_clear(offering, monkeypatch):
    server, url = offering
    monkeypatch.setattr(binaries, "installed", list)
    monkeypatch.setattr(binaries, "clients_on_path", list)
    with open_server(url) as guest, guest.connect():
        reason = guest.missing("pgbench")
        if reason is None:
            pytest.skip("the programs that pip brings can encrypt here")
        assert "encrypted by TLS" in reason and "-p programs=FOLDER" in reason
        with pytest.raises(CannotMeasure, match="pgbench can't be used"):
            pgbench.run(guest, "SELECT 1;", transactions=1)
    with open_server(url, server.programs) as guest:
        assert guest.can("pgbench")


# -- said beforehand --


@pytest.mark.parametrize(
    "words", [["doctor", "--server", "URL"], ["report-card", "URL", "--dry-run"]]
)
def test_what_would_be_refused_is_told_beforehand_without_a_change(owner, call, words):
    url = url_of(owner, database="published")
    with meanwhile(url, *PUBLISHED), untouched(owner):
        status, out, err = call(*(url if word == "URL" else word for word in words))
    assert status == 1 and "publishes all its tables" in err and "Traceback" not in err
    assert "round trip" in out and "they stay on this machine" in out


# -- settings, names and bytes --

ODD = {
    "statement_timeout": "100",
    "lock_timeout": "1",
    "idle_in_transaction_session_timeout": "100",
    "search_path": "public, pg_catalog",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "client_min_messages": "debug5",
    "client_encoding": "LATIN1",
    "quote_all_identifiers": "on",
    "row_security": "off",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "extra_float_digits": "-15",
    "transaction_timeout": "100",
    "exit_on_error": "on",
    "lc_numeric": "C",
    "enable_seqscan": "off",
    "work_mem": "64",
    "temp_tablespaces": "",
    "plan_cache_mode": "force_generic_plan",
}
TOLD = (
    "SELECT '2026-03-04'::date, '26 h'::interval, '\\x61'::bytea, 'pg_class'::regclass::text,"
    " 'é'::text, current_setting('transaction_isolation'), (1::float8 / 3)::text"
)


def test_settings_of_a_role_and_a_database_dont_reach_a_session(owner):
    made = ['CREATE DATABASE "od d""ly" OWNER guest']
    made += [
        f"ALTER ROLE guest SET {name} = {value if ',' in value else repr(value)}"
        for name, value in ODD.items()
    ]
    with meanwhile(url_of(owner), made, ["ALTER ROLE guest RESET ALL"]) as admin:
        plain = admin.execute(TOLD).fetchone()
        url = url_of(owner, "guest", "od%20d%22ly")
        with (
            untouched(owner),
            open_server(url) as guest,
            guest.connect(autocommit=False) as session,
        ):
            session.execute("CREATE TABLE item (i int)")
            assert session.execute(TOLD).fetchone() == plain
            session.execute("SELECT pg_sleep(0.2)")
            time.sleep(0.2)
            session.commit()
            told = "SELECT '2026-03-04'::date, 'é', 1::float8 / 4"
            assert guest.tool("psql", "-Atc", told).stdout == "2026-03-04|é|0.25\n"
            # what changes plans is the server's own, and told
            told = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
            assert guest.changed == told | {"work_mem": "64kB"}
            assert "work_mem = 64kB" in guest.seen.remarks["settings of this role or database"]


@pytest.mark.parametrize("names", [("Some Body", "Order"), ('J\u00f6rg "M\u00fcller"', "数据 库")])
def test_a_hint_quotes_the_names_that_need_it(owner, names):
    user, database = (sql.Identifier(name).as_string() for name in names)
    url = url_of(owner, *map(quote, names))
    tell(owner, f"CREATE ROLE {user} LOGIN", f"CREATE DATABASE {database}")
    with pytest.raises(ServerError) as caught:
        open_server(url)
    [hint] = re.findall(r"GRANT .*;", str(caught.value))
    tell(owner, hint)
    with open_server(url) as guest:
        assert guest.tool("psql", "-Atc", "SELECT current_user").stdout == f"{names[0]}\n"


def forbidden(owner: Cluster, command: str):
    """A block in which a trigger of theirs lets nobody use a command of the DDL."""
    made = [
        "CREATE FUNCTION public.forbid() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'nobody says % here', tg_tag; END $$",
        "CREATE EVENT TRIGGER forbid ON ddl_command_start"
        f" WHEN TAG IN ('{command}') EXECUTE FUNCTION public.forbid()",
    ]
    undone = ["DROP EVENT TRIGGER forbid", "DROP FUNCTION public.forbid()"]
    return meanwhile(url_of(owner), made, undone)


def test_what_a_trigger_of_theirs_forbids_isnt_done(owner):
    url = url_of(owner, "guest")
    with (
        untouched(owner),
        forbidden(owner, "CREATE SCHEMA"),
        pytest.raises(ServerError, match="nobody says CREATE SCHEMA here. .*another database"),
    ):
        open_server(url)
    with (
        untouched(owner),
        forbidden(owner, "CREATE TABLE"),
        open_server(url) as guest,
        guest.connect() as connection,
    ):
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("CREATE TABLE item (i int)")
        assert str(guest.refusal(caught.value)).endswith("refused: nobody says CREATE TABLE here.")
    with untouched(owner):
        with forbidden(owner, "DROP SCHEMA"):
            guest = open_server(url)
            with pytest.raises(
                ServerError, match=r"couldn't be dropped .* here\. The next run there"
            ):
                guest.close()
        open_server(url).close()  # which drops what stayed


@pytest.mark.parametrize(
    ("encoding", "read"), [("SQL_ASCII", "gr\\xf6\\xdfe"), ("LATIN1", "gr\u00f6\u00dfe")]
)
def test_any_bytes_are_text_whatever_the_encoding_of_a_database(owner, encoding, read):
    name = encoding.lower()
    tell(owner, f"CREATE DATABASE {name} ENCODING {encoding} TEMPLATE template0 LOCALE 'C'")
    url = url_of(owner, database=name)
    with psycopg.connect(url, autocommit=True, client_encoding="latin1") as admin:
        admin.execute('CREATE TABLE "größe" (i int PRIMARY KEY)'.encode("latin1"))
        admin.execute('INSERT INTO "größe" VALUES (1)'.encode("latin1"))
        admin.execute('UPDATE "größe" SET i = 2'.encode("latin1"))
        admin.execute("SELECT pg_stat_force_next_flush()")
    with untouched(owner):
        killed = open_server(url)
        with psycopg.connect(url, autocommit=True) as admin:
            held = "FROM pg_locks WHERE locktype = 'advisory'"
            admin.execute(f"SELECT pg_terminate_backend(pid) {held}")
            until(lambda: not admin.execute(f"SELECT 1 {held}").fetchone())
        with open_server(url) as guest, guest.connect() as connection:
            assert connection.execute("SELECT 'ä', current_user").fetchone() == ("ä", "postgres")
            found = catalogs.updates(guest, "public")
            assert found["table"].tolist() == [read]
        killed.close()


def test_a_trigger_on_login_may_not_lead_elsewhere(owner):
    tell(owner, "CREATE DATABASE guarded")
    url = url_of(owner, database="guarded")
    made = [
        "CREATE FUNCTION public.lead() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM set_config('search_path', 'public', false); END $$",
        "CREATE EVENT TRIGGER lead ON login EXECUTE FUNCTION public.lead()",
    ]
    with meanwhile(url, made, ["DROP EVENT TRIGGER lead"]):
        _, seen = borrowed.look(url)
        assert "lead" in seen.remarks["event triggers"]
        with pytest.raises(ServerError, match="a trigger on login can"):
            open_server(url)


@pytest.mark.parametrize(
    "words", ["SELECT * FROM pg_authid", "SET statement_timeout = 20; SELECT pg_sleep(9)"]
)
def test_what_a_server_refuses_is_a_reason_to_set_aside(owner, words):
    with open_server(url_of(owner, "guest")) as guest, guest.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(words)
        reason = guest.refusal(caught.value)
        assert reason is not None and "refused: " in str(reason) and "guest" not in guest.name
        assert guest.refusal(ZeroDivisionError()) is None
        with pytest.raises(ServerError) as caught:
            pgbench.run(guest, "SELECT 1/0;", transactions=1)
        assert "division by zero" in str(guest.refusal(caught.value))


def test_files_are_seen_from_where_the_reader_stands(offering, monkeypatch, tmp_path):
    server, url = offering
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "root.crt").write_bytes(
        (server.data_directory / "server.crt").read_bytes()
    )
    monkeypatch.setenv("PGRERUN_STARTED_IN", str(tmp_path / "mine"))
    monkeypatch.chdir(tmp_path)  # as a kernel's folder is another
    where = psycopg.conninfo.conninfo_to_dict(url)
    service = where | {"sslmode": "verify-full", "sslrootcert": "root.crt"}
    lines = ["[bench]", *(f"{key}={value}" for key, value in service.items())]
    (tmp_path / "services").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    for spec in (f"{url}?sslmode=verify-full&sslrootcert=root.crt", "service=bench"):
        with open_server(spec) as guest:
            assert guest.tool("psql", "-Atc", ENCRYPTED).stdout == "t\n"
    assert Path.cwd() == tmp_path


def test_a_role_that_acts_as_another_leaves_nothing(owner):
    made = [
        "CREATE ROLE builder",
        "GRANT builder TO guest",
        "GRANT CREATE ON DATABASE postgres TO builder",
        "ALTER ROLE guest SET role = builder",
    ]
    held = "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted"
    with (
        meanwhile(url_of(owner), made, ["ALTER ROLE guest RESET ALL"]) as admin,
        untouched(owner),
        open_server(url_of(owner, "guest")) as guest,
    ):
        tell(guest, "CREATE TABLE item (i int)")
        with running(guest, "psql", "-c", "BEGIN; LOCK TABLE item; SELECT pg_sleep(60)"):
            until(lambda: admin.execute(f"{held} AND relation IS NOT NULL").fetchone())
            guest.close()


def test_of_several_hosts_the_first_that_answers_stays_the_one(owner):
    with Relay(owner) as relay:
        url = relay.url.replace("@", "@127.0.0.1:9,")
        with untouched(owner), open_server(url) as guest, guest.connect() as connection:
            assert "127.0.0.1:9" not in guest.address and connection.info.host == "127.0.0.1"
            assert guest.tool("psql", "-Atc", "SELECT 1").stdout == "1\n"


def test_what_everybody_would_feel_isnt_done_even_for_a_superuser(owner):
    tell(owner, "CREATE EXTENSION pg_buffercache SCHEMA public")
    with open_server(url_of(owner)) as guest:
        assert guest.can("superuser")
        with pytest.raises(CannotMeasure, match="empties the buffer pool"):
            guest.extension("pg_buffercache")


def test_an_account_that_passwd_lacks_is_told_what_to_do(monkeypatch):
    """As in a container that was started with `--user 12345`."""
    monkeypatch.setattr(private.os, "geteuid", lambda: 12345)
    with pytest.raises(ServerError, match="user id 12345 has none.*Add the line.*--server"):
        private.account()
