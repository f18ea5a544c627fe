"""Every wrong value stops before anything starts, and says what would be right."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papermill.cli import _resolve_type

from pgrerun import credentials
from pgrerun.errors import BookError, ParameterError
from pgrerun.parameters import (
    PROFILES,
    addresses,
    assignments,
    at,
    chapter_parameters,
    chapters,
    from_namespace,
    info,
    profile_values,
    recorded,
    table,
)


def refusal(given, **words):
    with pytest.raises(ParameterError) as caught:
        chapter_parameters("tp1", given, **words)
    return str(caught.value)


@pytest.mark.parametrize("chapter", chapters())
@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_is_valid_complete_and_has_pairs_enough_to_judge_times(chapter, profile):
    parameters = chapter_parameters(chapter, {}, profile)
    assert parameters.model_dump() == profile_values(chapter, profile)
    assert parameters.pairs >= (5 if profile == PROFILES[0] else 7)


TOML = """
title = "Toy"
document = "hot-2007"
place = 1
about = "A toy."
minutes = { ci = 1, laptop = 2, overnight = 3 }
"""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A function that writes a chapter.toml and makes its folder a chapter, for this test alone."""
    monkeypatch.setattr("pgrerun.parameters.elsewhere", {})

    def write(text):
        (tmp_path / "chapter.toml").write_text(text)
        at("toy", tmp_path)

    return write


def test_a_chapter_may_lie_elsewhere(elsewhere):
    elsewhere(
        TOML
        + """
[parameters.rows]
description = "Size"
unit = "rows"
range = [1, 10]
profiles = { ci = 1, laptop = 2, overnight = 10 }
[parameters.share]
description = "Share"
range = [0.0, 1.0]
profiles = { ci = 0.5, laptop = 0.5, overnight = 1.0 }
"""
    )
    assert chapters()[-1] == "toy"
    given = chapter_parameters("toy", {"rows": 3}, "laptop")
    assert (given.rows, given.share, given.pairs) == (3, 0.5, 15)
    with pytest.raises(ParameterError, match=r"rows must be a whole number from 1 to 10 \(rows\)"):
        chapter_parameters("toy", {"rows": 2.0})


@pytest.mark.parametrize(
    "damage",
    [
        "title =",
        TOML + "colour = 'red'",
        TOML.replace("ci = 1, ", ""),
        TOML + "[parameters.rows]\nprofiles = { ci = 1, laptop = 1, overnight = 1 }",
        TOML + "[parameters.rows]\nrange = [1, 2]\nprofiles = { ci = 1 }",
        TOML + "[parameters.pairs]\nrange = [1, 2]\n"
        "profiles = { ci = 1, laptop = 1, overnight = 1 }",
    ],
)
def test_a_damaged_chapter_file_is_named(elsewhere, damage, tmp_path):
    elsewhere(damage)
    with pytest.raises(BookError, match="chapter.toml can't be used"):
        info("toy")


@pytest.mark.parametrize(
    "value", [-1, 0, 65, 10**12, "2", 2.0, 2.5, True, None, float("nan"), [2]], ids=repr
)
def test_a_value_of_another_type_or_out_of_range_is_told_what_may_be_with_all_other_faults(value):
    message = refusal({"clients": value, "scale": "big"})
    assert "clients must be a whole number from 2 to 64 (connections)" in message
    assert "scale must be" in message


def test_unknown_chapter_and_profile(tmp_path):
    with pytest.raises(ParameterError, match="no chapter 'tp2'; did you mean tp1"):
        chapter_parameters("tp2", {})
    with pytest.raises(ParameterError, match="holds no chapter.toml"):
        at("toy", tmp_path)
    assert "no profile 'laptpo'; did you mean laptop" in refusal({}, profile="laptpo")
    assert "no profile 3" in refusal({"profile": 3})


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"server": server}
            for server in (
                "postgresql://ann:hunter2@db.example/bench",
                "postgresql://ann@db.example/bench?password=hunter2",
                "host=db.example user=ann password=hunter2",
                "postgresql://db.example/bench?sslpassword=hunter2",
                "postgresql://ann:hunter2@[db.example",  # unreadable as a URL
                "postgres://ann:hunter2%zz@db.example",
                "postgresql://u:p/hunter2@127.0.0.1/b",
                "hunter2",
                ["hunter2"],
                *(
                    f"{beginning}{keyword}=hunter2"
                    for keyword in sorted(credentials.SECRETS)
                    for beginning in ("postgresql://127.0.0.1/b?", "host=h ")
                ),
            )
        ),
        {"sever": "postgresql://a:hunter2@h"},
        {"programs": "postgresql://a:hunter2@h"},
    ],
)
def test_a_password_is_refused_and_never_repeated(given):
    assert "hunter2" not in refusal(given)


def test_programs_must_be_a_folder(tmp_path):
    assert chapter_parameters("tp1", {"programs": str(tmp_path)}).programs == str(tmp_path)
    for programs in (str(tmp_path / "missing"), "~nosuchuser/bin", "x" * 5000, "a\0b"):
        assert len(refusal({"programs": programs})) < 500


@pytest.mark.parametrize(
    "text", ["7", "-1", "2.5", "1e3", "True", "False", "None", "text", "", "a=b", "true"]
)
def test_assignments_have_papermill_s_types(text):
    found, expected = assignments([f"x={text}"])["x"], _resolve_type(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("word", ["pairs", "=7", "2x=1", "--pairs=1"])
def test_an_assignment_needs_a_name_and_a_value(word):
    with pytest.raises(ParameterError, match="name=value"):
        assignments([word])


def namespace(**changed):
    return (
        {"__name__": "__main__", "In": [""], "Out": {}, "_i": "", "exit": 1}
        | profile_values("tp1", "ci")
        | changed
    )


@pytest.mark.parametrize(
    ("changed", "given", "profile"),
    [
        ({}, {}, "ci"),
        # its other profile moves what was not changed
        ({"profile": "laptop", "pairs": 9}, {"pairs": 9}, "laptop"),
        # an injected value that equals ci's still counts
        (
            {"In": ["", "pairs = 7", '# Parameters\nprofile = "laptop"\npairs = 7\n']}
            | {"profile": "laptop", "pairs": 7},
            {"pairs": 7},
            "laptop",
        ),
        # modules and functions are no parameters
        ({"json": json, "helper": len, "table": table}, {}, "ci"),
    ],
)
def test_a_notebook_s_namespace_gives_the_parameters_that_it_means(changed, given, profile):
    found = from_namespace("tp1", namespace(**changed))
    assert found == chapter_parameters("tp1", given, profile)


@pytest.mark.parametrize("value", [3, 2.5, "x", False, [1], None, {"a": 1}])
def test_a_stray_plain_variable_is_refused(value):
    with pytest.raises(ParameterError, match="did you mean clients"):
        from_namespace("tp1", namespace(client=value))


def test_a_missing_parameter_is_named():
    given = namespace()
    del given["scale"]
    with pytest.raises(ParameterError, match="sets no scale"):
        from_namespace("tp1", given)


def test_an_injected_password_must_be_removed_from_the_executed_notebook():
    server = "postgresql://ann:hunter2@db.example/bench"
    with pytest.raises(ParameterError, match="delete that file") as caught:
        from_namespace(
            "tp1", namespace(In=["", f'# Parameters\nserver = "{server}"\n'], server=server)
        )
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["７", "٧", "7_0", "1_000.0"])
def test_only_plain_digits_make_a_number(text):
    assert assignments([f"pairs={text}"]) == {"pairs": text}
    assert "pairs must be a whole number" in refusal(assignments([f"pairs={text}"]))


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *((name, f"# Parameters\n{name} = 9\n") for name in ("_pairs", "exit", "get_ipython")),
        ("In", ""),  # the notebook's own, where it isn't the list of its inputs
    ],
)
def test_what_papermill_injects_is_never_ignored(name, cell):
    values = {"In": ["", cell]} | profile_values("tp1", "ci") | {name: 9}
    with pytest.raises(ParameterError, match=f"(?i)there is no parameter '{name}'"):
        from_namespace("tp1", values)


def is_a_paragraph(text):
    return text.strip() and "\n" not in text and len(text) < 2000


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
)
NAMES = st.one_of(st.sampled_from(["profile", "server", "programs", "seed", "pairs"]), st.text())


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from([*chapters(), "nowhere", ""]), st.dictionaries(NAMES, VALUES, max_size=3))
def test_whatever_is_given_is_taken_or_refused_in_a_paragraph(chapter, given):
    try:
        chapter_parameters(chapter, given)
    except ParameterError as error:
        assert is_a_paragraph(str(error))


@settings(max_examples=300)
@given(st.lists(st.text(max_size=40), max_size=3))
def test_whatever_is_assigned_is_read_or_refused(words):
    try:
        assert set(assignments(words)) <= {word.partition("=")[0] for word in words}
    except ParameterError as error:
        assert is_a_paragraph(str(error))


TEXT = """
[parameters.place]
description = "Where"
pattern = "([a-z0-9]+://[^@ ]+)?"
allowed = "an address without a password, or empty"
profiles = { ci = "", laptop = "", overnight = "" }
"""


def test_a_text_that_fits_is_kept_out_of_records_and_another_is_not_repeated(
    elsewhere, monkeypatch
):
    monkeypatch.delenv("PGRERUN_KEEP_ADDRESS", raising=False)
    elsewhere(TOML + TEXT)
    given = chapter_parameters("toy", {"place": "s3a://bucket"})
    assert addresses(given) == {"place": "s3a://bucket"} and "s3a" not in str(recorded(given))
    with pytest.raises(ParameterError, match="place must be an address without a") as error:
        chapter_parameters("toy", {"place": "s3a://key:secret@bucket"})
    assert "secret" not in str(error.value)
