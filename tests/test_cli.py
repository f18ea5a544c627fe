"""The command from the outside: exit status, one paragraph on standard error, no traceback."""

import errno
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

from pgrerun import cli
from pgrerun.errors import ServerError
from pgrerun.record.runs import Run
from pgrerun.site.book import Book


def raising(error):
    def fail(*words, **more):
        raise error

    return fail


@pytest.fixture
def nothing_runs(monkeypatch):
    for verb in ("run", "retell"):
        monkeypatch.setattr(Book, verb, raising(AssertionError("a chapter was started")))


def recorded(name, verdicts=(), environment=None, values=(1,), variant="one", killed=False):
    """A run of the chapter tp1: a measurement of each value, and these words for its claims."""
    with Run.open(name, "tp1", key="k", environment=environment or {}) as run:
        for number, value in enumerate(values):
            run.append("ladder", {"variant": variant, "block": number, "tps": float(value)})
        run.complete("ladder", {"units": {"tps": "1/s"}})
        for claim, verdict in zip(("lai-059", "lai-055"), verdicts):
            # without evidence today's rules don't apply, and the kept word counts
            run.add_verdict({"claim": claim, "verdict": verdict})
        if killed:
            raise KeyboardInterrupt


def lines(out):
    return [" ".join(line.split()) for line in out.splitlines()]


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
    assert status == 2 and message in err and "hunter2" not in err + out
    assert "Traceback" not in err and len(err.strip().splitlines()) == 1 and len(err) < 1000


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ServerError("The server does not answer."), 1, "The server does not answer.\n"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/tp1.ipynb"),
            1,
            "/full/tp1.ipynb can't be written: No space left on device",
        ),
        (KeyboardInterrupt(), 130, "goes on from there"),
    ],
    ids=["ours", "full disk", "Ctrl-C"],
)
def test_an_error_that_is_no_bug_is_told_in_words(call, monkeypatch, error, status, told):
    monkeypatch.setattr(Book, "run", raising(error))
    ended, _, err = call("run", "tp1")
    assert ended == status and told in err and "Traceback" not in err


@pytest.mark.parametrize("name", ["no-such-run", "x" * 300], ids=["missing", "long"])
@pytest.mark.parametrize("words", [["compare"], ["site", "--run"]], ids=["compare", "site"])
def test_a_record_that_is_not_there_or_whose_name_no_file_can_have(call, words, name):
    status, _, err = call(*words, name)
    assert status in (1, 2) and name[:9] in err
    assert "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_two_records_are_compared_with_what_may_explain_it(call, own_runs):
    for name, verdict, cores in (
        ("mine", "reversed", 64),
        ("yours", "holds", 2),
        ("twin", "reversed", 64),
    ):
        machine = {"cores": cores, "load_average": [cores]}
        recorded(name, [verdict], {"machine": machine}, [cores])
    status, out, _ = call("compare", "mine", "yours")
    told = lines(out)
    assert status == 0 and any("tps" in line and "64 2 1 1 32" in line for line in told)
    assert {"lai-059 tp1 reversed holds", "tp1 machine.cores 64 2"} <= set(told)
    assert "load_average" not in out  # differs between any two runs
    same = call("compare", "mine", "twin")[1]
    assert "No verdict differs." in same and "are the same" in same


def test_the_published_side_of_a_comparison_is_the_word_of_all_published_runs(call, own_runs):
    for name in ("published", "published-2", "published-3", "mine"):
        recorded(name, ["reversed" if name == "published-2" else "holds", "reversed"])
    told = lines(call("compare", "mine")[1])
    assert "lai-059 tp1 holds inconclusive (holds, reversed, holds)" in told
    assert not any("lai-055" in line for line in told)
    # published runs are compared with each other as they are
    between = lines(call("compare", "published-2", "published")[1])
    assert "lai-059 tp1 reversed holds" in between


def test_several_records_are_compared_by_their_words(call, own_runs):
    for name in "abcd":
        recorded(name, ["holds", "holds" if name == "c" else "reversed"])
    status, out, _ = call("compare", "a", "b", "c")
    assert status == 0 and {"all 2 1 0.5", "lai-055 reversed reversed holds"} <= set(lines(out))
    assert "same verdict" in call("compare", "a", "b", "d")[1]


def test_medians_of_runs_with_other_parameters_are_not_put_side_by_side(call, own_runs):
    for name, scale, pairs in (("mine", 1, 7), ("longer", 1, 41), ("larger", 10, 7)):
        recorded(name, environment={"parameters": {"scale": scale, "pairs": pairs}})
    assert "tps" in call("compare", "mine", "longer")[1]
    out = call("compare", "mine", "larger")[1]
    assert "scale 1 and 10" in out and "tps" not in out


def test_what_a_record_says_is_not_obeyed_by_a_terminal(call, own_runs):
    said = "[bold]txt:bomb:"
    for name, variant in (("mine", said), ("ours", said), ("theirs", "\x1b]0;\x07\u202etxt")):
        recorded(name, variant=variant)
    status, out, _ = call("compare", "mine", "ours")
    assert status == 0 and "[bold]txt:bomb:" in out
    status, _, error = call("compare", "mine", "theirs")
    assert status == 1 and "ladder.parquet" in error
    assert not {"\x1b", "\x07", "\u202e"} & set(error)


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


def test_status_says_what_a_stopped_run_keeps_and_where(call, own_runs, monkeypatch):
    monkeypatch.setattr(Book, "chapters", lambda self: ["tp1"])
    with pytest.raises(KeyboardInterrupt):
        recorded("night", values=[1, 1, 1], killed=True)
    _, out, _ = call("status")
    assert "night keeps 3" in out
    assert str(own_runs / "night" / "tp1.partial") in out


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(Book, "run", raising(ZeroDivisionError()))
    monkeypatch.setattr(sys, "argv", ["pgrerun", "run", "tp1"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_run_hands_on_what_was_given_with_folders_as_seen_from_here(call, monkeypatch, tmp_path):
    seen = {}
    monkeypatch.setattr(Book, "run", lambda self, state, **words: seen.update(state=state, **words))
    monkeypatch.setattr("pgrerun.site.book.server_version", lambda parameters: "18.6")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pg").mkdir()
    words = "run tp1 -p pairs=9 -p programs=pg --out mine.ipynb --name mine"
    call(*words.split())
    given = seen["state"].parameters  # the notebook runs in another folder
    assert (given.pairs, given.programs) == (9, str(tmp_path / "pg"))
    assert (seen["out"], seen["name"]) == (tmp_path / "mine.ipynb", "mine")


def test_experiments_run_one_after_the_other_by_repeating_the_option(call, own_runs, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUN", "")  # which the command sets
    monkeypatch.setattr(Book, "alone", nullcontext)  # other tests run chapters of this checkout
    status, out, errors = call("run", "hot", "--only", "cases", "--only", "fillfactors")
    assert status == 0 and "hot-007" in out, errors
    folder = own_runs / "only-cases-fillfactors" / "hot"
    assert {"cases", "fillfactors"} <= {one.stem for one in folder.glob("*.parquet")}


def test_claims_are_listed(call):
    status, out, _ = call("claims", "tp1")
    assert status == 0 and "lai-046" in out


def test_doctor_looks_at_a_server(call, borrowed_url):
    status, out, _ = call("doctor", "--server", borrowed_url)
    assert status == 0
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if len(line.split()) > 1}
    assert rows["restart"] == "no:" and rows["superuser"] == "yes"
