"""The report card: what it reads, what it measures as a guest, how its sections end, and that the
server is left as found.
"""

import base64
import contextlib
import hashlib
import re
import signal
import time
from types import SimpleNamespace

import psutil
import psycopg
import pytest
from bs4 import BeautifulSoup
from servers import SMALL, admit, tell, until, url_of

from pgrerun import report_card
from pgrerun.chapters.scalability.experiments import idle
from pgrerun.errors import CannotMeasure, ParameterError, RerunError, ServerError
from pgrerun.lab.server import Borrowed, Cluster, binaries
from pgrerun.lab.testbed import experiment
from pgrerun.page.narrate import Sentence
from pgrerun.record.database import NotMeasured
from pgrerun.record.evidence import NoRows
from pgrerun.record.statistics import TooFew
from pgrerun.report_card import page, sections, visit
from pgrerun.report_card.limits import TimeIsUp, Watchdog
from pgrerun.report_card.sections import Section

SECRET = "s3cr3t-0f-the-0wner"
THEIRS = (
    # eight updates that stay on their page, and eight that change what is indexed
    "CREATE TABLE roomy (id int PRIMARY KEY, n int) WITH (fillfactor = 50)",
    "CREATE TABLE counted (id int PRIMARY KEY, n int)",
    "CREATE INDEX counted_n ON counted (n)",
    "INSERT INTO roomy SELECT g, 0 FROM generate_series(1, 8) g",
    "INSERT INTO counted SELECT g, 0 FROM generate_series(1, 8) g",
    "UPDATE roomy SET n = n + 1",
    "UPDATE counted SET n = n + 1",
    # a page that has no room: nothing is indexed, and the new tuple has to go elsewhere
    "CREATE TABLE full_pages (filler text)",
    "ALTER TABLE full_pages ALTER filler SET STORAGE PLAIN",
    "INSERT INTO full_pages SELECT repeat('x', 7000) FROM generate_series(1, 4)",
    "UPDATE full_pages SET filler = repeat('y', 7000)",
    # the same index, read with and without a visibility map
    "CREATE TABLE seen (id int PRIMARY KEY)",
    "CREATE TABLE unseen (id int PRIMARY KEY) WITH (autovacuum_enabled = off)",
    "INSERT INTO seen SELECT generate_series(1, 2000)",
    "INSERT INTO unseen SELECT generate_series(1, 2000)",
    "VACUUM ANALYZE seen",
    (
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM seen WHERE id"
        " <= 100; SELECT count(*) FROM unseen WHERE id <= 100"
    ),
    "ALTER TABLE seen ALTER id SET STATISTICS 77",
    "SELECT pg_stat_force_next_flush()",
)


@pytest.fixture(scope="module")
def owner():
    """Somebody's server with relations of its own, and a role with a password that may make
    schemas.
    """
    with Cluster(settings=SMALL | {"autovacuum": "off"}) as server:
        tell(
            server,
            f"CREATE ROLE guest LOGIN PASSWORD '{SECRET}'",
            "GRANT CREATE ON DATABASE postgres TO guest",
            "CREATE ROLE visitor LOGIN",
            "CREATE SCHEMA theirs; CREATE SCHEMA empty; SET search_path = theirs",
            *THEIRS,
        )
        admit(server, "local all guest scram-sha-256", "local all all trust")
        yield server


@pytest.fixture
def guest(owner):
    with Borrowed(url_of(owner), abstains=report_card.ABSTAINS) as server:
        yield server


def everything(owner: Cluster) -> list:
    """What a guest could have changed for good."""
    queries = (
        "SELECT nspname, nspacl::text FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'",
        (
            "SELECT n.nspname, relname, relkind, relfilenode, reloptions::text, reltuples FROM"
            " pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname !~ '^pg_'"
        ),
        (
            "SELECT attrelid::regclass, attname, attstattarget, attoptions::text FROM pg_attribute"
            " JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'theirs'::regnamespace"
        ),
        (
            "SELECT name, setting FROM pg_settings WHERE source <> 'session' AND name !~"
            " '^(application_name|transaction_)'"
        ),
        "SELECT sourcefile, name, setting FROM pg_file_settings",
        "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting",
        "SELECT oid FROM pg_extension UNION ALL SELECT oid FROM pg_proc",
        (
            "SELECT relname, last_vacuum, last_analyze, n_tup_upd, seq_scan FROM"
            " pg_stat_user_tables WHERE schemaname = 'theirs'"
        ),
    )
    with owner.connect() as connection:
        return [sorted(map(repr, connection.execute(query).fetchall())) for query in queries]


# ---- what the server has counted


HOT = ("Of 20 updates of 3 tables", "40 %", "`counted`'s, 8 of its 8.", "33.3 % found no room")
INDEX_ONLY = ("200 entries of these indexes, and fetched 100 rows", "`unseen`, of which 0 % are")


@pytest.mark.parametrize(
    ("section", "words"), [(sections.hot_share, HOT), (sections.index_only, INDEX_ONLY)]
)
def test_the_sentences_name_what_keeps_a_server_from_the_better_way(guest, section, words):
    told = _told(section, guest)
    assert [one for one in words if one not in told] == []
    with pytest.raises(CannotMeasure, match="empty"):
        _told(section, guest, "empty")


def _told(section, server, schema="theirs"):
    seen = visit.Visit("scalability", server, schema)
    seen.watchdog = Watchdog(60)
    with seen.watchdog.watching():
        return " ".join(piece for piece in section(seen) if isinstance(piece, str))


@pytest.fixture(autouse=True)
def no_alarm_is_left():
    yield
    assert (
        signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    )


# ---- time limits


def test_a_tool_is_ended_when_time_is_up(guest):
    with pytest.raises(TimeIsUp), Watchdog(0.5).watching():
        guest.tool("pgbench", "-n", "-T", 36000, "-f", "-", input="SELECT 1;\n")
    left = psutil.wait_procs(
        [p for p in psutil.Process().children() if "pgbench" in p.name()], timeout=120
    )[1]
    assert not left


def test_measuring_ends_before_the_section_does_so_that_it_can_tell(monkeypatch):
    quick = Watchdog(600)
    with quick.watching(), quick.measuring():
        pass
    assert not quick.ended
    monkeypatch.setattr(Watchdog, "measurable", 0.5)  # seconds; all the rest is for telling
    watchdog, told = Watchdog(600), []
    with watchdog.watching():
        with watchdog.measuring():
            time.sleep(36000)
        told.append("what was finished")
    assert watchdog.ended and told


def test_the_limit_is_told_as_such_whatever_a_library_makes_of_it():
    def swallowed():
        try:
            time.sleep(36000)
        except TimeIsUp:
            raise SystemError("AST constructor recursion depth mismatch") from None

    with pytest.raises(TimeIsUp), Watchdog(0.5).watching():
        swallowed()
    with pytest.raises(SystemError), Watchdog(600).watching():
        raise SystemError("which nobody's time has to do with")


def test_telling_has_a_limit_as_well():
    watchdog = Watchdog(0.5)
    with pytest.raises(TimeIsUp), watchdog.watching():
        with watchdog.measuring():
            time.sleep(36000)
        time.sleep(36000)


def test_only_complete_blocks_count_when_an_experiment_was_ended(guest):
    calls = []

    def measure(block, variant):
        calls.append(block)
        if len(calls) == 6:  # the second variant of the third block
            raise TimeIsUp
        return {"time": float(len(calls))}

    @experiment(units={"time": "s"})
    def halves(bed):
        yield from bed.compare(measure, {"variant": ["one", "other"]}, warmup=0)

    seen = visit.Visit("tp1", guest, "public")
    with pytest.raises(TimeIsUp):
        seen.measure(halves)
    with seen.database() as found:
        assert found.query("SELECT DISTINCT block FROM halves ORDER BY 1")["block"].tolist() == [
            0,
            1,
        ]
        ratio = seen.value(found, "halves.time[variant='one'] / halves.time[variant='other']")
        assert ratio.n == 2
    with pytest.raises(CannotMeasure, match="more minutes"):
        seen.require("none")
    with pytest.raises(CannotMeasure, match="not ours"):
        seen.bed.cluster()
    guest.connect().close()  # it is still the opener's


# ---- the whole card


def small_section(experiment, share=1.0):
    name = experiment.__name__.replace("_", " ")
    return Section(name, "scalability", "nothing", share, experiment, False)


def finished(visit):
    """Finds something."""
    return [Sentence("Something was found.")]


def endless(visit):
    """Never ends."""
    tell(visit.server, "SELECT pg_sleep(36000)")


HANGING = """
SELECT count(*) FROM pg_stat_activity
WHERE state = 'active' AND query LIKE '%pg_sleep(36000)%' AND pid <> pg_backend_pid()
"""


def forbidden(visit):
    """Does what it may not."""
    tell(visit.server, "SELECT * FROM pg_authid")


# Of time that the others, which end by themselves, have in plenty: a card may be made beside much.
PLENTY = 60  # minutes
SHARES = {endless: 0.002}


@pytest.fixture
def only(monkeypatch):
    """Have the card made of these sections alone."""

    def choose(*experiments):
        found = [small_section(one, SHARES.get(one, 1.0)) for one in experiments]
        monkeypatch.setattr(sections, "SECTIONS", found)
        monkeypatch.setattr(report_card, "SECTIONS", found)

    return choose


def test_a_section_that_hangs_or_is_refused_loses_nothing_of_the_others(
    owner, tmp_path, only, monkeypatch
):
    """Nor does what is kept of the card, from which it is drawn again; what hung is cancelled."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    before, kept = everything(owner), tmp_path / "card.jsonl"
    only(finished, endless, forbidden, sections.hot_share)
    out = report_card.write(url_of(owner, "guest"), "theirs", PLENTY, tmp_path / "card.html", kept)
    until(lambda: owner.fetch(HANGING) == (0,))
    assert everything(owner) == before and {*tmp_path.iterdir()} == {out, kept}
    pages = out.read_text(), report_card.sample(kept, "")
    assert len({text.count("<section") for text in pages}) == 1
    for text in pages:
        assert text.count("Something was found.") == 2  # in the summary and in its section
        assert "was over before" in text and "permission denied" in text
        assert "Of 20 updates of 3 tables" in text


def test_what_needs_none_of_postgresqls_programs_is_told_without_them(
    owner, tmp_path, only, monkeypatch
):
    """Without the wheel no card was made at all, though most of it only asks the server."""

    def lacking():
        raise ServerError("There is no wheel.")

    def loading(visit):
        """Puts a load on."""
        visit.server.require("pgbench")

    monkeypatch.setattr(binaries, "bundled", lacking)
    for name in ("installed", "clients_on_path"):
        monkeypatch.setattr(binaries, name, list)
    only(finished, loading)
    text = report_card.write(url_of(owner), "theirs", PLENTY, tmp_path / "a.html").read_text()
    assert "Something was found." in text and "pip install -r requirements.txt" in text


@pytest.mark.parametrize(
    "error",
    [NotMeasured("scans", "The run"), NoRows("none of these"), TooFew("a: five are needed")],
)
def test_a_section_that_got_too_few_rows_says_so(error):
    def short(visit):
        """Asks for what it has not."""
        raise error

    outcome = report_card.Outcome(small_section(short), 60)
    report_card.run_section(outcome, SimpleNamespace(), 60)
    assert "too few numbers" in outcome.reason and not outcome.pieces


@pytest.mark.parametrize(
    ("number", "error", "said"),
    [
        (signal.SIGINT, RerunError, "What was finished is in /"),
        (signal.SIGTERM, RerunError, "What was finished is in /"),
        (signal.SIGHUP, RerunError, "What was finished is in /"),
        (None, ValueError, "ambiguous"),  # a bug
    ],
)
def test_the_page_is_written_whatever_ends_the_card(
    owner, tmp_path, only, base, number, error, said
):
    def ended(visit):
        """Is ended, in the middle of something that swallows it."""
        with contextlib.suppress(KeyboardInterrupt):
            if number:
                signal.raise_signal(number)
        raise ValueError("The truth value of a Series is ambiguous.")

    before, out = everything(owner), tmp_path / "card.html"
    only(finished, ended, finished)
    with pytest.raises(error, match=said):
        report_card.write(url_of(owner), "theirs", PLENTY, out)
    assert not list(base.iterdir())  # the record that the sections share is private
    assert "Something was found." in out.read_text() and "It was not reached." in out.read_text()
    assert everything(owner) == before


def test_the_server_dies_meanwhile(tmp_path, only, base):
    with Cluster(settings=SMALL) as server:

        def killing(visit):
            """Takes the server away."""
            server.crash()
            visit.server.connect()

        only(finished, killing, finished)
        kept = tmp_path / "card.jsonl"
        socket = server.connection_parameters()["host"]
        with pytest.raises(RerunError, match="couldn't be dropped"):
            report_card.write(url_of(server), "public", PLENTY, tmp_path / "card.html", kept)
    assert "Nothing answers there" in kept.read_text() and socket not in kept.read_text()
    text = (tmp_path / "card.html").read_text()
    assert "Something was found." in text and "Nothing answers there" in text


def test_a_whole_card_of_an_ordinary_user(owner, tmp_path, monkeypatch):
    """Every section, small; the page stands alone, tells no password, and the server is as it was
    found.
    """
    small = {
        "optimizer": {"points": 5, "tuples": 10_000, "pairs": 5},
        "tp1": {"scale": 1, "counted": 5, "pairs": 5},
        "scalability": {"scale": 1, "profile": "laptop", "most_clients": 16, "commit_clients": 8}
        | {"seconds": 0.05, "idle_seconds": 5, "pairs": 5},
    }
    monkeypatch.setattr(visit, "PARAMETERS", small)
    monkeypatch.setattr(idle, "SETTLE", 0.2)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    before = everything(owner)
    kept = tmp_path / "card.jsonl"
    out = report_card.write(url_of(owner, "guest"), "theirs", 60, tmp_path / "card.html", kept)
    text = out.read_text()
    assert everything(owner) == before and SECRET not in text
    _is_drawn_again(text, kept, tmp_path)
    for section in sections.SECTIONS:
        body = re.search(rf'<section id="{section.name}">(.*?)</section>', text, re.DOTALL)[1]
        # a load that nobody has seen wait is over too soon on a busy machine, and says so
        assert "Set aside" not in body or "missing: wait samples" in body, body[:500]
        assert not re.search(r"\b(nan|None|no number)\b", re.sub(r"base64,\S+", "", body))
    assert not re.search(r'<script|(?:src|href|srcset)="(?!data:|#)|@import|url\(', text)
    assert text.count("<picture>") >= 7 and len(text) < 2.5e6
    assert "not ours" in text  # what is set aside inside of a section, with its reason


def _is_drawn_again(text, kept, folder):
    """Whether what was kept of a card is enough for all that it tells but where the server is."""
    assert not re.search(f"{SECRET}|{folder}|guest", kept.read_text())
    again = report_card.sample(kept, "It was made by a test.")
    assert "This is a sample, not your server.</strong> It was made by a test." in again
    found, told = (
        {one["id"]: one.decode() for one in BeautifulSoup(page, "html.parser").select("section")}
        for page in (text, again)
    )
    where = found.pop("provenance"), told.pop("provenance")
    assert found == told and len(found) == len(sections.SECTIONS)
    assert "user guest" in where[0] and "user guest" not in where[1]


def test_the_page_runs_no_script_and_asks_nobody():
    soup = BeautifulSoup(page.html_page("x", "<p>y"), "html.parser")
    policy = soup.head.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    digest = base64.b64encode(hashlib.sha256(soup.style.string.encode()).digest()).decode()
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    others = {"style-src": f"'sha256-{digest}'", "img-src": "data:"}
    assert allowed == dict.fromkeys(allowed, "'none'") | others and "default-src" in allowed


def test_the_steps_are_told_without_a_connection(monkeypatch):
    monkeypatch.setattr(psycopg, "connect", lambda *words, **more: pytest.fail("connected"))
    where, rows = report_card.steps("postgresql://me@db.example/bench", 5)
    assert "db.example" in where and len(rows) == len(sections.SECTIONS)
    assert rows[0]["section"] == "Idle wake-ups"  # before anything puts load on the server
    assert all(row["what it does"] and row["what it touches"] for row in rows)
    assert 240 < sum(one.limit for one in report_card.planned(5)) <= 300
    with pytest.raises(ParameterError, match="PGPASSFILE"):
        report_card.steps(f"postgresql://me:{SECRET}@db.example/bench", 5)


# ---- the command


def test_the_command_says_where_the_page_is(owner, call, tmp_path, only):
    only(finished)
    out, command = tmp_path / "mine.html", ("report-card", url_of(owner))
    made = call(*command, "--schema", "theirs", "--out", out, "--minutes", 1)
    assert made[0] == 0 and f"The report card is in {out}" in made[1] and out.exists()
    told = call(*command, "--dry-run")
    assert told[0] == 0 and "Finds something." in told[1] and "Nothing was touched" in told[1]


@pytest.mark.parametrize(
    ("url", "words", "message"),
    [
        ("", ["--schema", "thiers"], "did you mean theirs"),
        ("", ["--schema", "pgrerun"], "has no schema 'pgrerun'"),
        ("", ["--minutes", "0"], "from 0.2 to 120 minutes"),
        ("", ["--minutes", "nan"], "from 0.2 to 120 minutes"),
        ("", ["--out", "/nowhere/card.html"], "there is no folder /nowhere"),
        ("", ["--out", "."], "it is a folder"),
        ("visitor", [], "GRANT CREATE ON DATABASE postgres TO visitor"),
        ("postgresql://me@/postgres?host=/nowhere", [], "Nothing answers there"),
        (f"postgresql://me:{SECRET}@h/d", [], "PGPASSFILE"),
        ("postgresql://[", [], "can't be read as a URL"),
    ],
)
def test_a_wrong_word_is_told_in_words(owner, call, url, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = url if ":" in url else url_of(owner, url or "postgres")
    status, out, err = call("report-card", place, *words)
    assert status != 0 and message in err
    assert not re.search(f"Traceback|{SECRET}", out + err)
    assert not list(tmp_path.iterdir())


# ---- the page


def test_words_of_somebodys_server_are_no_markup():
    reason = "<b>*x*</b> `y` postgresql://u:pw@h"
    text = page.section_html(report_card.Outcome(small_section(finished), 5, reason=reason))
    assert "*x*" in text and not re.search("<b>|<em>|pw", text)
    assert "1.3 [1.2, 1.4]" in page.prose("It is 1.3 [1.2, 1.4] times.")


@pytest.mark.parametrize(
    "name", ["a\n\n![p](http://a.test/x.png)", "a`![p](x)`b", "``", "<img src=x>", "a\x1b[2Jb"]
)
def test_a_table_s_name_is_never_markup(name):
    text = page.prose(f"Most are {sections.named(name)}'s, of all.")
    soup = BeautifulSoup(text, "html.parser")
    assert [tag.name for tag in soup.find_all(True)] == ["p", "code"] and "\x1b" not in text
