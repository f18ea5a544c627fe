"""The command from the outside: exit status, one paragraph on standard error, no traceback."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgrerun import cli
from pgrerun.errors import ServerError
from pgrerun.record import claims, runs
from pgrerun.record.runs import Run
from pgrerun.site.book import Book


def pgrerun(*words):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pgrerun.cli", *words], capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def call(monkeypatch, capsys):
    """The command in this process: (status, output, errors)."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["pgrerun", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


@pytest.fixture
def nothing_runs(monkeypatch):
    def refuse(*words, **more):
        raise AssertionError("a chapter was started")

    monkeypatch.setattr(Book, "run", refuse)
    monkeypatch.setattr(Book, "retell", refuse)


@pytest.mark.parametrize(
    "words, message",
    [
        (["run", "tp2"], "did you mean tp1"),
        (["run"], "Name one chapter"),
        (["run", "tp1", "--all"], "Name one chapter"),
        (["run", "tp1", "--profile", "laptpo"], "did you mean laptop"),
        (["run", "tp1", "-p", "client=2"], "did you mean clients"),
        (["run", "tp1", "-p", "clients=-1"], "from 2 to 64"),
        (["run", "tp1", "-p", "clients=99999999999"], "from 2 to 64"),
        (["run", "tp1", "-p", "clients=two"], "whole number"),
        (["run", "tp1", "-p", "clients"], "name=value"),
        (["run", "tp1", "-p", f"clients={'x' * 5000}"], "whole number"),
        (["run", "tp1", "-p", f"{'x' * 5000}=1"], "no parameter"),
        (["run", "x" * 5000], "no chapter"),
        (["claims", "x" * 5000], "no chapter"),
        (["run", "tp1", "--all", "--out", "x.ipynb"], "Name one chapter"),
        (["run", "--all", "--out", "x.ipynb"], "--out"),
        (["run", "tp1", "--name", "../mine"], "letters"),
        (["run", "tp1", "--name=-x"], "begins with a letter"),
        (["run", "tp1", "--name", "_x"], "begins with a letter"),
        (["run", "tp1", "--name", "x" * 300], "a hundred characters"),
        (["run", "tp1", "--name", "published"], "--replace"),
        (["run", "tp1", "-p", "programs=~nosuchuser/bin"], "is none"),
        (["run", "tp1", "-p", f"programs={'x/' * 2500}"], "is none"),
        (["run", "tp1", "-p", "programs=/nowhere"], "is none"),
        (["run", "tp1", "--server", "postgresql://ann:hunter2@h/d"], "PGPASSFILE"),
        (["run", "tp1", "-p", "server=postgresql://ann:hunter2@h/d"], "PGPASSFILE"),
        (["run", "tp1", "-p", "postgresql://ann:hunter2@h/d"], "name=value"),
        (["doctor", "--server", "host=h password=hunter2"], "PGPASSFILE"),
        (["run", "tp1", "--profil", "ci"], "--profile"),
        (["rnu"], "run"),
        (["parameters", "tp"], "did you mean tp1"),
        (["claims", "pt1"], "did you mean tp1"),
        (["refresh", "nothing"], "no chapter"),
        (["book", "--profile", "night"], "did you mean overnight"),
        (["compare"], "'mine'"),
        (["compare", "published"], "named twice"),
        (["compare", "a", "b", "a"], "named twice"),
    ],
)
def test_a_wrong_word_ends_with_2_and_one_paragraph(call, nothing_runs, words, message):
    status, out, err = call(*words)
    assert status == 2
    assert message in err
    assert "Traceback" not in err and "hunter2" not in err + out
    assert len(err.strip().splitlines()) == 1 and len(err) < 1000


def test_any_other_error_of_ours_ends_with_1(call, monkeypatch):
    def fail(*words, **more):
        raise ServerError("The server does not answer.")

    monkeypatch.setattr(Book, "run", fail)
    status, _, err = call("run", "tp1")
    assert (status, err) == (1, "The server does not answer.\n")


def test_a_full_disk_is_the_readers_to_mend(call, monkeypatch):
    def fail(*words, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/tp1.ipynb")

    monkeypatch.setattr(Book, "run", fail)
    status, _, err = call("run", "tp1")
    assert status == 1
    assert "/full/tp1.ipynb can't be written: No space left on device" in err


def test_a_record_that_is_not_there(call):
    status, _, err = call("compare", "no-such-run")
    assert status == 1 and "no-such-run" in err


@pytest.mark.parametrize("words", [["compare"], ["site", "--run"]], ids=["compare", "site"])
def test_a_record_whose_name_no_file_can_have(call, words):
    status, _, err = call(*words, "x" * 300)
    assert status in (1, 2) and "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_a_damaged_record_is_told_in_one_paragraph(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    with Run.open("mine", "tp1", key="k", environment={}) as run:
        run.observe(
            "ladder",
            "one",
            0,
            {"tps": 1},
            units={"tps": "1/s"},
            seed=1,
            position=0,
            started_at="now",
        )
    damaged = tmp_path / "mine" / "tp1" / "environment.json"
    damaged.write_text("{")
    status, _, err = call("compare", "mine")
    assert status == 1 and str(damaged.parent) in err and "Restore" in err
    assert "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_two_records_are_compared_with_what_may_explain_it(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    for name, verdict, cores in (
        ("mine", "reversed", 64),
        ("yours", "holds", 2),
        ("twin", "reversed", 64),
    ):
        machine = {"cores": cores, "load_average": [cores]}
        with Run.open(name, "tp1", key="k", environment={"machine": machine}) as run:
            run.observe(
                "ladder",
                "one",
                0,
                {"tps": cores},
                units={"tps": "1/s"},
                seed=1,
                position=0,
                started_at="now",
            )
            run.add_verdict({"claim": "lai-059", "verdict": verdict})
    status, out, _ = call("compare", "mine", "yours")
    assert status == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any("tps" in line and "64 2 1 1 32" in line for line in lines)
    assert "lai-059 tp1 reversed holds" in lines and "tp1 machine.cores 64 2" in lines
    assert "load_average" not in out  # differs between any two runs
    same = call("compare", "mine", "twin")[1]
    assert "No verdict differs." in same and "settings are the same." in same


def test_the_published_side_of_a_comparison_is_the_word_of_all_published_runs(
    call, monkeypatch, tmp_path
):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.setattr(runs, "CHECKOUT", tmp_path)
    words = {
        "published": "holds reversed",
        "published-2": "reversed reversed",
        "published-3": "holds reversed",
        "mine": "holds reversed",
    }
    for name, given in words.items():
        with Run.open(name, "tp1", key="k", environment={}) as run:
            for claim, verdict in zip(("lai-059", "lai-055"), given.split(), strict=True):
                run.add_verdict({"claim": claim, "verdict": verdict})
    lines = [" ".join(line.split()) for line in call("compare", "mine")[1].splitlines()]
    assert "lai-059 tp1 holds inconclusive (holds, reversed, holds)" in lines
    assert not any("lai-055" in line for line in lines)
    # published runs are compared with each other as they are
    lines = [
        " ".join(line.split())
        for line in call("compare", "published-2", "published")[1].splitlines()
    ]
    assert "lai-059 tp1 reversed holds" in lines


def observed(name: str, parameters: dict, variant: str = "one") -> None:
    with Run.open(name, "tp1", key="k", environment={"parameters": parameters}) as run:
        run.observe(
            "ladder",
            variant,
            0,
            {"tps": 64},
            units={"tps": "1/s"},
            seed=1,
            position=0,
            started_at="now",
        )


def test_medians_of_runs_with_other_parameters_are_not_put_side_by_side(
    call, monkeypatch, tmp_path
):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    observed("mine", {"scale": 1, "pairs": 7})
    observed("longer", {"scale": 1, "pairs": 41})
    observed("larger", {"scale": 10, "pairs": 7})
    assert "tps" in call("compare", "mine", "longer")[1]
    out = call("compare", "mine", "larger")[1]
    assert "tp1: the runs had other parameters (scale 1 and 10)" in out and "tps" not in out


def test_of_many_numbers_those_that_lie_farthest_apart_are_shown(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    for name, factor in (("mine", 1.0), ("theirs", 1.001)):
        with Run.open(name, "tp1", key="k", environment={}) as run:
            where = {"units": {"tps": "1/s"}, "seed": 1, "position": 0, "started_at": "now"}
            for number in range(3000):
                apart = 2.0 if name == "mine" and number == 1234 else factor
                run.observe("ladder", f"rung {number}", 0, {"tps": apart}, **where)
    status, out, _ = call("compare", "mine", "theirs")
    assert status == 0 and "rung 1234 " in out
    assert "These are the 100 that lie farthest apart, of 3000 numbers" in out
    assert out.count("rung ") == 100


def test_what_a_record_says_is_not_obeyed_by_a_terminal(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    for name in ("mine", "theirs"):
        observed(name, {"scale": 1}, variant="\x1b]0;title\x07[bold]\u202etxt:bomb:")
    status, out, _ = call("compare", "mine", "theirs")
    assert status == 0 and "[bold]" in out and ":bomb:" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out) and "\\x1b" in out


def test_a_terminal_that_knows_no_more_than_ascii_is_enough(tmp_path):
    environment = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "pgrerun", "parameters", "tp1"],
        capture_output=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0 and b"branches" in done.stdout and b"Traceback" not in done.stderr


def test_a_relative_folder_of_runs_is_the_same_for_the_kernel(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGRERUN_RUNS", "mine")
    call("compare", "no-such-run")
    assert os.environ["PGRERUN_RUNS"] == str(tmp_path / "mine")


def test_status_says_what_a_stopped_run_keeps_and_where(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    with (
        pytest.raises(KeyboardInterrupt),
        Run.open("night", "tp1", key="k", environment={}) as run,
    ):
        for block in range(3):
            run.observe(
                "ladder",
                "one",
                block,
                {"tps": 1},
                units={"tps": "1/s"},
                seed=1,
                position=0,
                started_at="now",
            )
        raise KeyboardInterrupt
    _, out, _ = call("status")
    assert "The run night keeps 3 observations" in out
    assert str(tmp_path / "night" / "tp1.partial") in out


def test_a_site_is_built_from_a_recorded_run_only(call, monkeypatch, nothing_runs):
    built = []
    monkeypatch.setattr(Book, "site_reasons", lambda self, run="": ["never built"])
    monkeypatch.setattr(Book, "build_site", lambda self, run="": built.append(run))
    assert call("site")[0] == 0 and call("site", "--run", "mine")[0] == 0
    assert built == ["published", "mine"]


def test_ctrl_c_ends_with_130(call, monkeypatch):
    def stop(*words, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(Book, "run", stop)
    status, _, err = call("run", "tp1")
    assert status == 130 and "goes on from there" in err


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(Book, "run", lambda *words, **more: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["pgrerun", "run", "tp1"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_run_hands_everything_on(call, monkeypatch, tmp_path):
    seen = {}
    monkeypatch.setattr(Book, "run", lambda self, state, **words: seen.update(state=state, **words))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pg").mkdir()
    words = [
        "--profile",
        "laptop",
        "-p",
        "pairs=9",
        "-p",
        "programs=pg",
        "--out",
        "mine.ipynb",
        "--name",
        "mine",
    ]
    monkeypatch.setattr("pgrerun.site.book.server_version", lambda parameters: "18.6")
    status, out, _ = call("run", "tp1", *words)
    assert status == 0
    parameters = seen["state"].parameters
    assert (parameters.profile, parameters.pairs, parameters.seed) == ("laptop", 9, 1990)
    assert parameters.programs == str(tmp_path / "pg")  # the notebook runs in another folder
    assert (seen["out"], seen["name"]) == (tmp_path / "mine.ipynb", "mine")
    assert "laptop" in out and "min" in out


@pytest.fixture
def states(monkeypatch):
    """Let the one chapter and the site be in a state of the test's choice; collect what is done."""
    done = []

    def choose(chapter_reasons, site_reasons):
        book = Book()
        fresh = book.state("tp1", {})
        state = type(fresh)("tp1", {}, fresh.parameters, {}, chapter_reasons, 130.0)
        monkeypatch.setattr(Book, "chapters", lambda self: ["tp1"])
        monkeypatch.setattr(Book, "state", lambda self, chapter, given=None: state)
        monkeypatch.setattr(Book, "site_reasons", lambda self: site_reasons)
        for verb in ("run", "retell", "build_site", "proofread"):
            monkeypatch.setattr(
                Book, verb, lambda self, *words, verb=verb, **more: done.append(verb)
            )
        return done

    return choose


def test_book_says_why_nothing_is_rerun(call, states):
    done = states([], [])
    status, out, _ = call("book")
    assert (status, done) == (0, [])
    assert "tp1: nothing it is made from has changed, so it is not rerun." in out
    assert "site: nothing it is made from has changed, so it is not rebuilt." in out
    assert out.strip().endswith("_build/html/index.html")


def test_book_says_what_it_reruns_and_why(call, states):
    done = states(
        ["claim lai-046 changed", *(f"library {n}.py changed" for n in range(9))],
        ["page index.md changed"],
    )
    status, out, _ = call("book")
    assert (status, done) == (0, ["proofread", "run", "build_site"])
    assert "tp1: claim lai-046 changed; library 0.py changed;" in out and "and 6 more" in out
    assert "about 2 min" in out
    assert "site: building (page index.md changed)." in out


def test_book_keeps_outputs_when_only_prose_changed(call, states):
    done = states(["prose changed"], ["chapter tp1 changed"])
    assert call("book")[0] == 0
    assert done == ["proofread", "retell", "build_site"]


def test_status_says_which_input_changed(call, states):
    states(["parameter pairs 7 → 9"], [])
    status, out, _ = call("status")
    assert status == 0
    assert "tp1: out of date (parameter pairs 7 → 9)" in out and "site: up to date" in out


def test_clean_tells_what_it_removed(call, monkeypatch, tmp_path):
    monkeypatch.setattr("pgrerun.lab.server.sweep", lambda *places: [tmp_path / "leftover"])
    monkeypatch.setattr(Book, "clean", lambda self, runs: [tmp_path / "results"])
    assert call("clean")[1].split() == [
        "removed",
        str(tmp_path / "results"),
        "removed",
        str(tmp_path / "leftover"),
    ]


def test_parameters_are_listed_in_full(call):
    status, out, _ = call("parameters", "tp1")
    assert status == 0
    assert "simulated_transactions" in out and "a whole number from 2 to 64 (connections)" in out


def test_claims_are_counted_and_listed(call):
    assert str(len(claims.ledger())) in call("claims")[1]
    assert "lai-046" in call("claims", "tp1")[1]


def test_doctor_looks_at_this_machine(call):
    status, out, _ = call("doctor")
    assert status == 0
    for word in (
        "PostgreSQL from pip",
        "JIT",
        "callgrind",
        "perf",
        "Spark",
        "Java",
        "pageinspect",
        "fdatasync",
        "Chromium",
        "processors",
    ):
        assert word in out


def test_doctor_looks_at_a_server(call, borrowed_url):
    status, out, _ = call("doctor", "--server", borrowed_url)
    assert status == 0
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if len(line.split()) > 1}
    assert rows["restart"] == "no:" and rows["superuser"] == "yes"


def test_doctor_names_the_claims_that_a_missing_thing_sets_aside(monkeypatch):
    from pgrerun.site import doctor

    needs = ("perf", "restart and perf")
    needing = [
        claim.model_copy(update={"needs": words})
        for claim, words in zip(doctor.ledger().values(), needs)
    ]
    monkeypatch.setattr(doctor, "ledger", lambda: {claim.id: claim for claim in needing})
    monkeypatch.setattr(doctor.perf, "unavailable", lambda: "There is no perf.")
    perf = next(finding for finding in doctor.examine() if finding.what == "perf")
    assert perf.found == "There is no perf."
    assert perf.claims == [claim.id for claim in needing]
    monkeypatch.setattr(doctor.perf, "unavailable", lambda: None)
    perf = next(finding for finding in doctor.examine() if finding.what == "perf")
    assert perf.claims == []


def test_doctor_says_what_brings_executors(monkeypatch, tmp_path):
    from pgrerun.site import doctor

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = {finding.capability: finding for finding in doctor.of_cluster() if finding.missing}
    assert "requirements-cluster.txt" in found["Spark"].found
    assert "default-jre-headless" in found["Java"].found
    assert found["Java"].claims == found["Spark"].claims == ["wcluster-001"]


def test_a_need_that_the_doctor_does_not_know_is_shown(monkeypatch):
    from pgrerun.site import doctor

    odd = next(iter(doctor.ledger().values())).model_copy(update={"needs": "a tape robot"})
    monkeypatch.setattr(doctor, "ledger", lambda: {odd.id: odd})
    assert doctor.examine()[-1].found == "not looked for"


def test_the_installed_command_shows_its_verbs():
    done = pgrerun("--help")
    assert done.returncode == 0
    for verb in (
        "run",
        "book",
        "site",
        "status",
        "doctor",
        "compare",
        "clean",
        "claims",
        "parameters",
        "refresh",
    ):
        assert verb in done.stdout


# ---- printing


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """A book that can be printed without building it: the runs that were asked for."""
    from pgrerun.site import printing

    asked = []
    monkeypatch.setattr(
        Book, "build_epub", lambda self, run="": asked.append(run) or tmp_path / "book.epub"
    )
    monkeypatch.setattr(Book, "shown_run", lambda self: "the shown one")
    monkeypatch.setattr(printing, "pdf", lambda epub: epub.with_suffix(".pdf"))
    return asked


def test_what_the_site_shows_is_printed_unless_a_run_is_named(call, printed, nothing_runs):
    status, out, _ = call("print")
    assert status == 0 and "book.epub" in out and "book.pdf" in out
    assert call("print", "--run", "mine")[0] == 0
    assert printed == ["the shown one", "mine"]


def test_without_a_browser_the_epub_is_told_before_the_error(call, monkeypatch, nothing_runs):
    from pgrerun.site import printing

    monkeypatch.setattr(Book, "build_epub", lambda self, run="": Path("book.epub"))
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    status, out, errors = call("print", "--run", "mine")
    assert status == 1 and "The ePub is book.epub" in out
    assert (
        "no-such-browser" in errors
        and errors.strip().count("\n") == 0
        and "Traceback" not in errors
    )


def test_several_records_are_compared_by_their_words(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    for name, words in (
        ("a", "holds reversed"),
        ("b", "holds reversed"),
        ("c", "holds holds"),
        ("d", "holds reversed"),
    ):
        with Run.open(name, "tp1", key="k", environment={}) as run:
            for claim, verdict in zip(("lai-059", "lai-055"), words.split(), strict=True):
                # without evidence today's rules don't apply, and the kept word counts
                run.add_verdict({"claim": claim, "verdict": verdict})
    status, out, _ = call("compare", "a", "b", "c")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert status == 0 and "all 2 1 0.5" in lines and "lai-055 reversed reversed holds" in lines
    assert "All runs give each claim the same verdict." in call("compare", "a", "b", "d")[1]
