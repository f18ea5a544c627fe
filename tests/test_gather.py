"""The records of many machines: what is planted is found and nothing else, and a source is data."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import pytest
import thousand
from sealed import changed, older, reseal, rewrite
from servers import until
from thousand import CLAIMS

from pgrerun.errors import ParameterError, RecordError
from pgrerun.record import gather, machines, reader, runs, sources
from pgrerun.record.schema import ENVIRONMENT, OBSERVATIONS, VERDICTS

# With the table that is left of each, as to read all of them is what takes the time.
CHAPTERS = {"hot": "computed", "uuid_keys": "insert"}
MANY = 150  # enough for other processes to read them


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Runs of many machines, which are the published ones but for what the machine is."""
    place, template = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("published")
    for chapter, table in CHAPTERS.items():
        folder = template / chapter
        folder.mkdir()
        for name in (ENVIRONMENT, VERDICTS, f"{table}.parquet"):
            shutil.copy(runs.CHECKOUT / runs.PUBLISHED / chapter / name, folder)
        changed(folder, partial(with_one_table, table))
        reseal(folder)
    for number in range(MANY):
        machine = {"cpu_model": "Planted", "cpus": 2, "memory_bytes": (number + 1) * thousand.GIB}
        for chapter in CHAPTERS:
            folder = place / f"{number:04d}" / chapter
            shutil.copytree(template / chapter, folder)
            changed(folder, lambda head, of=machine: head["environment"]["machine"].update(of))
    return place


def with_one_table(table, head):
    return head | {"tables": {table: head["tables"][table]}, "sha256": {}}


@pytest.fixture(scope="module")
def gathered(place, tmp_path_factory):
    return gather.gather([str(place)], tmp_path_factory.mktemp("scratch"))


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def few(place, tmp_path):
    for name in ("0000", "0001", "0002"):
        shutil.copytree(place / name, tmp_path / "few" / name)
    return tmp_path / "few"


def test_every_record_is_counted_once(place, gathered):
    assert len(gathered.machines) == MANY and gathered.records == MANY * len(CHAPTERS)
    assert not gathered.refused and not gathered.superseded
    kept = [json.loads((place / "0000" / one / VERDICTS).read_text()) for one in CHAPTERS]
    claims = {verdict["claim"] for of_one in kept for verdict in of_one}
    # but those whose rule has changed since the published run
    assert set(gathered.words) <= claims and len(gathered.words) > len(claims) / 2


def test_the_planted_dependences_are_found_and_nothing_else():
    planted = {CLAIMS[1]: thousand.many_cores, CLAIMS[4]: thousand.old_release}
    found = machines.findings(thousand.gathered(thousand.machines(MANY), planted))
    assert {one.claim: (one.circumstance, one.others) for one in found.dependences} == {
        CLAIMS[1]: ("cores", ()),
        CLAIMS[4]: ("release", ()),
    }
    assert found.tests > 20 and all(one.q <= machines.CHANCE for one in found.dependences)
    assert found.unlike.p > machines.CHANCE


def test_what_only_goes_along_with_the_cause_is_not_told():
    dice = random.Random(3)
    # memory follows the processors, so that it alone would tell the words apart as well
    made = [
        dataclasses.replace(one, memory=round(one.cores * dice.uniform(1, 4) * thousand.GIB))
        for one in thousand.machines(MANY)
    ]
    found = machines.findings(thousand.gathered(made, {CLAIMS[1]: thousand.many_cores}))
    assert [(one.claim, one.circumstance, one.others) for one in found.dependences] == [
        (CLAIMS[1], "cores", ())
    ]


def test_the_machine_unlike_its_peers_is_the_one_that_was_made_so():
    odd = thousand.gathered(thousand.machines(MANY), {})
    for given in odd.words.values():
        given[17] = 2
    found = machines.findings(odd).unlike
    assert found.machine == 17 and found.p <= machines.CHANCE
    assert {claim for claim, *_ in found.words} == set(CLAIMS)


def test_few_machines_say_nothing():
    found = machines.findings(thousand.gathered(thousand.machines(9), {}))
    assert (found.tests, found.dependences, found.unlike) == (0, [], None)


def test_the_order_of_the_sources_and_the_number_of_processes_change_nothing(
    place, gathered, scratch, monkeypatch
):
    monkeypatch.setattr(gather, "processes", lambda: 1)
    names = sorted(map(str, place.iterdir()), reverse=True)
    assert gather.gather(names, scratch) == gathered


def renamed(folder, name, year):
    """Make a record of another run of its machine, which ended in that year."""
    about = {"run": name, "finished_at": f"{year}-01-01T00:00:00+00:00"}
    changed(folder, lambda head: head | about)


def test_published_runs_of_one_machine_count_once_with_the_word_that_they_share(few, scratch):
    names = ("published", "published-2", "published-3")
    places = [str(few / name) for name in names]
    for year, name in enumerate(names, 2031):  # of the same machine, the last of them the newest
        shutil.copytree(few / "0000" / "hot", few / name / "hot")
        renamed(few / name / "hot", name, year)
    alike = gather.gather(places, scratch)
    assert (len(alike.machines), alike.superseded, alike.differing) == (1, 0, {})
    folder = few / "published-3" / "hot"
    kept = json.loads((folder / VERDICTS).read_text())
    other = next(one for one in kept if one["verdict"] != "not tested here")
    aside = {"verdict": "not tested here", "capability": "perf", "reason": "none"}
    other |= aside | {"evidence": None}
    (folder / VERDICTS).write_text(json.dumps(kept))
    reseal(folder)
    found = gather.gather(places[::-1], scratch)
    assert (found.records, found.superseded) == (3, 0)
    assert machines.tally(found, other["claim"]) == {"inconclusive": 1}
    [(claim, [said])] = found.differing.items()
    assert claim == other["claim"] and said.endswith(", not tested here")
    assert said.startswith("3 runs")
    # a newer run of another name stands for the machine alone
    renamed(folder, "mine", 2040)
    alone = gather.gather(places, scratch)
    assert alone.superseded == 2 and not alone.differing


def test_words_are_those_of_today_s_rules(few, scratch):
    """What the record calls its verdict doesn't count; its evidence does."""
    for folder in few.glob("*/hot"):
        kept = (folder / VERDICTS).read_text()
        own = r'"verdict": "(?!not test)[^"]*", "predicate"'
        named = re.sub(own, '"verdict": "splendid", "predicate"', kept)
        (folder / VERDICTS).write_text(named)
        reseal(folder)
    found = gather.gather([str(few)], scratch)
    words = {found.vocabulary[w] for given in found.words.values() for w in given if w is not None}
    assert len(words - {"splendid", "not tested here"}) > 2


def test_a_record_speaks_for_its_own_chapter_alone(few, scratch):
    folder = few / "0000" / "uuid_keys"
    other = json.loads((few / "0000" / "hot" / VERDICTS).read_text())[0]
    (folder / VERDICTS).write_text(json.dumps([other | {"chapter": "hot"}]))
    reseal(folder)
    shutil.rmtree(few / "0000" / "hot")
    found = gather.gather([str(few / "0000"), str(few / "0001" / "uuid_keys")], scratch)
    assert other["claim"] not in found.words and found.unanswered == 1


def test_what_was_gathered_is_kept_and_read_again(gathered, tmp_path):
    path = tmp_path / "gathered.json"
    gathered.save(path)
    assert gather.Gathered.load(path) == gathered
    path.write_text(path.read_text()[:-10])
    with pytest.raises(RecordError, match="Call pgrerun gather again"):
        gather.Gathered.load(path)


@pytest.mark.parametrize(
    "version, known",
    [("18.6", "18"), ("9.6.24", "9.6"), ("17beta1", "17"), ("", ""), ("many", ""), ("9", "9")],
)
def test_a_release_is_what_its_version_says(version, known):
    assert gather.release(version) == known


# ---- hostile sources


TABLE = "insert.parquet"


def rewritten(select, file=TABLE):
    """Rewrite a table of a record, or the observations of one made older, by a query over `o`."""

    def rewritten(folder):
        if file == OBSERVATIONS and reader.read(folder).tables:
            older(folder)
        rewrite(folder, select, file)

    return rewritten


long = partial(rewritten, file=OBSERVATIONS)


def linked(folder):
    (folder / VERDICTS).unlink()
    (folder / VERDICTS).symlink_to("/etc/passwd")


def flipped(folder):
    data = bytearray((folder / TABLE).read_bytes())
    for place in range(len(data) // 3, len(data), 97):
        data[place] ^= 255
    (folder / TABLE).write_bytes(data)
    reseal(folder)


def about(**changes):
    return lambda folder: changed(folder, lambda head: head["tables"]["insert"].update(changes))


def facts(**changes):
    return lambda folder: changed(folder, lambda head: head["environment"].update(changes))


HOSTILE = {
    "link": linked,
    "FIFO": lambda d: ((d / VERDICTS).unlink(), os.mkfifo(d / VERDICTS)),
    "checksum": lambda d: (d / VERDICTS).write_text("[]"),
    "no JSON": lambda d: (d / ENVIRONMENT).write_text("{"),
    "escapes": lambda d: (d / ENVIRONMENT).write_text('{"format": "\\u001b[2J\\n"}'),
    "deep": lambda d: (d / ENVIRONMENT).write_text("[" * 100_000),
    "no Parquet": lambda d: ((d / OBSERVATIONS).write_bytes(b"PAR1" * 9), reseal(d)),
    "flipped": flipped,
    "machine a list": facts(machine=[]),
    "no table": lambda d: (d / TABLE).unlink(),
    "table no Parquet": lambda d: ((d / TABLE).write_bytes(b"PAR1" * 9), reseal(d)),
    "no units": about(units=None),
    "fewer rows": about(rows=3),
    "columns": rewritten("SELECT * EXCLUDE (block) FROM o"),
    "another type": rewritten("SELECT *, DATE '2026-01-01' AS day FROM o"),
    "a name that is none": rewritten("""SELECT *, 1 AS "a""b" FROM o"""),
    "text for number": rewritten("SELECT * REPLACE ('1' AS wal_per_key) FROM o"),
    "hole": rewritten("SELECT * REPLACE (NULL::VARCHAR AS looks) FROM o"),
    "left out or not": rewritten("SELECT * REPLACE (NULL::BOOLEAN AS left_out) FROM o"),
    "looks": rewritten("SELECT * REPLACE ('7,x' AS looks) FROM o"),
    "infinite": rewritten("SELECT * REPLACE ('inf'::DOUBLE AS wal_per_key) FROM o"),
    "no number": rewritten("SELECT * REPLACE ('nan'::DOUBLE AS wal_per_key) FROM o"),
    "twice": rewritten("SELECT * FROM o UNION ALL SELECT * FROM o"),
    "escapes in a factor": rewritten("SELECT * REPLACE (keys || chr(27) AS keys) FROM o"),
    "older: columns": long("SELECT * RENAME (value AS worth) FROM o"),
    "older: text for number": long("SELECT * REPLACE ('1' AS value) FROM o"),
    "older: hole": long("SELECT * REPLACE (NULL::VARCHAR AS unit) FROM o"),
    "older: no value": long("SELECT * REPLACE (NULL::DOUBLE AS value) FROM o"),
    "older: infinite": long("SELECT * REPLACE ('inf'::DOUBLE AS value) FROM o"),
    "older: another run": long("SELECT * REPLACE ('x' AS run) FROM o"),
    "older: one of another run": long(
        "SELECT * REPLACE (CASE WHEN block = 0 THEN 'x' ELSE run END AS run) FROM o"
    ),
    "older: twice": long("SELECT * FROM o UNION ALL SELECT * FROM o"),
    "older: flags": long("SELECT * REPLACE ('[]' AS flags) FROM o"),
    "older: deep flags": long(
        "SELECT * REPLACE (repeat('[', 100000) || repeat(']', 100000) AS flags) FROM o"
    ),
    "older: equal when visible": long(
        "SELECT * FROM o UNION ALL SELECT * REPLACE ('\\x1b' AS metric) FROM o WHERE block = 0"
        " UNION ALL SELECT * REPLACE (chr(27) AS metric) FROM o WHERE block = 0"
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_record_is_refused_with_one_line_and_the_rest_is_read(few, scratch, case):
    spoilt = few / "0001" / "uuid_keys"
    HOSTILE[case](spoilt)
    with pytest.raises(RecordError):
        reader.read(spoilt)
    found = gather.gather([str(few)], scratch)
    assert found.records == 3 * len(CHAPTERS) - 1 and len(found.refused) == 1
    assert found.refused[0].startswith(str(spoilt)) and found.refused[0].isprintable()
    assert len(found.refused[0]) < 800 and len(found.machines) == 3


STRANGE = {
    "no machine": facts(machine={}),
    "no server": facts(server={}),
    "numbers as texts": facts(machine={"cpus": "many", "memory_bytes": True}),
    "beyond sense": facts(machine={"cpus": -1, "memory_bytes": 1e300, "cpu_model": "x" * 9999}),
    "lists": facts(machine={"cpus": [1], "cpu_model": {}}, server={"version": [18]}),
}


@pytest.mark.parametrize("case", STRANGE)
def test_a_machine_that_says_nothing_of_use_is_still_a_machine(few, scratch, case):
    for folder in (few / "0001").iterdir():
        STRANGE[case](folder)
    found = gather.gather([str(few)], scratch)
    assert not found.refused and len(found.machines) == 3
    assert all(len(one.model) <= 100 for one in found.machines)


def test_what_read_takes_read_many_takes_and_the_other_way_round(few):
    long("SELECT * REPLACE ('µ' || chr(27) AS unit) FROM o")(few / "0000" / "uuid_keys")
    long("""SELECT * REPLACE ('{"disturbed": "x"}' AS flags) FROM o""")(few / "0001" / "uuid_keys")
    marked = "SELECT * REPLACE ('inf'::DOUBLE AS wal_per_key, 'x' || chr(27) AS disturbed) FROM o"
    rewritten(marked)(few / "0002" / "uuid_keys")
    folders = sorted(path.parent for path in few.glob("*/*/environment.json"))
    for folder, one in zip(folders, reader.read_many(folders)):
        alone = reader.read(folder)
        assert (one.head, one.verdicts) == (alone.head, alone.verdicts)


# ---- archives


def packed(folder, path):
    """The archive at this path, whose name says of what kind it is, with the folder in it."""
    name, _, kind = path.name.partition(".")
    how = {"zip": "zip", "tar": "tar", "tar.gz": "gztar"}[kind]
    return Path(shutil.make_archive(path.with_name(name), how, folder.parent, folder.name))


@pytest.mark.parametrize("name", ["runs.zip", "runs.tar", "runs.tar.gz"])
def test_an_archive_says_what_its_folder_says(few, tmp_path, scratch, name):
    (few / "0000" / "uuid_keys" / "page.ipynb").write_text("{}")
    archive = packed(few, tmp_path / name)
    assert gather.gather([str(archive)], scratch) == gather.gather([str(few)], scratch)
    assert gather.gather([str(tmp_path / "runs.*")], scratch).records == 3 * len(CHAPTERS)
    assert not list(scratch.iterdir())


PATHS = [
    "../../evil/{}",
    "/tmp/evil/{}",
    "..\\evil\\{}",
    "a/../../b/{}",
    "C:\\{}",
    "x" * 3000 + "/{}",
]


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_no_name_in_an_archive_leads_anywhere(few, tmp_path, scratch, kind, name):
    archive, folder = tmp_path / f"runs.{kind}", few / "0000" / "uuid_keys"
    before = set(tmp_path.rglob("*"))
    with zipfile.ZipFile(archive, "w") if kind == "zip" else tarfile.open(archive, "w") as into:
        add = into.write if kind == "zip" else into.add
        for file in folder.iterdir():
            add(file, name.format(file.name))
    try:
        assert gather.gather([str(archive)], scratch).records == 1
    except RecordError as error:  # a name that is no path here has no record below it
        assert "\\" in name and "no record" in str(error)
    assert set(tmp_path.rglob("*")) == before | {archive}


def special(kind):
    member = tarfile.TarInfo(f"runs/uuid_keys/{VERDICTS}")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_links_and_the_like_in_a_tar_file_spoil_their_record(few, tmp_path, scratch, kind):
    with tarfile.open(tmp_path / "runs.tar", "w") as archive:
        archive.add(few / "0001", "other")
        archive.add(few / "0000" / "uuid_keys" / ENVIRONMENT, f"runs/uuid_keys/{ENVIRONMENT}")
        archive.addfile(special(kind))
    found = gather.gather([str(tmp_path / "runs.tar")], scratch)
    assert found.records == len(CHAPTERS) and len(found.refused) == 1
    assert "is no regular file" in found.refused[0] and "root:" not in found.refused[0]


def add_a_link(archive):
    link = zipfile.ZipInfo(f"evil/{ENVIRONMENT}")
    link.external_attr = 0o120777 << 16
    archive.writestr(link, "/etc/passwd")


def add_a_bomb(archive):
    archive.writestr(f"bomb/{ENVIRONMENT}", bytes(2**23))


@pytest.mark.parametrize(
    ("add", "told"), [(add_a_link, "is no regular file"), (add_a_bomb, "has more than")]
)
def test_a_link_or_a_bomb_in_a_zip_file_spoils_its_record(
    few, tmp_path, scratch, monkeypatch, add, told
):
    monkeypatch.setattr(sources, "MAX_FILE", 2**22)
    path = packed(few / "0001", tmp_path / "runs.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        add(archive)
    found = gather.gather([str(path)], scratch)
    assert found.records == len(CHAPTERS) and told in found.refused[0]


BOMBS = {
    "MAX_KEPT": "the records in it have more than",
    "MAX_MEMBERS": "when it is unpacked",
    "MAX_DIRECTORY": "table of contents",
    "MAX_UNPACKED": "when it is unpacked",
}


@pytest.mark.parametrize("limit", BOMBS)
def test_a_bomb_is_refused_as_a_whole_and_leaves_nothing(
    few, tmp_path, scratch, limit, monkeypatch
):
    name = "bomb.tar" if limit == "MAX_UNPACKED" else "bomb.zip"
    archive = packed(few / "0000", tmp_path / name)
    monkeypatch.setattr(sources, limit, 3)
    found = gather.gather([str(archive), str(few / "0001")], scratch)
    assert found.records == len(CHAPTERS) and BOMBS[limit] in found.refused[0]
    assert not list(scratch.iterdir())


def test_a_name_without_end_in_a_tar_file_is_not_kept_in_memory(few, tmp_path, scratch):
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2**33
    (tmp_path / "names.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"x" * 2**16)
    found = gather.gather([str(tmp_path / "names.tar"), str(few)], scratch)
    assert "has a name of more than" in found.refused[0]


SPOILT = {
    "torn.zip": lambda data: data[: len(data) * 2 // 3],
    "torn.tar.gz": lambda data: data[: len(data) * 2 // 3],
    "torn.tar": lambda data: data[: len(data) * 2 // 3],
    "flipped.zip": lambda data: data[: len(data) // 3] + bytes(9) + data[len(data) // 3 + 9 :],
    "no.zip": lambda data: b"no archive" * 100,
    "empty.tar.gz": lambda data: b"",
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_damaged_archive_is_refused_as_a_whole(few, tmp_path, scratch, name):
    path = packed(few, tmp_path / name)
    path.write_bytes(SPOILT[name](path.read_bytes()))
    found = gather.gather([str(path), str(few / "0000")], scratch)
    assert found.records == len(CHAPTERS) and len(found.refused) == 1
    assert found.refused[0].startswith(str(path)) and not list(scratch.iterdir())
    with pytest.raises(RecordError, match="No record could be read"):
        gather.gather([str(path)], scratch)


# ---- what lies elsewhere, by DuckDB, whose readers take a file:// for any other address


def test_duckdb_lists_and_reads_what_lies_elsewhere(few, tmp_path, scratch):
    archive = packed(few, tmp_path / "runs.zip")
    found = gather.gather([f"file://{archive}", f"file://{tmp_path}/nothing.zip"], scratch)
    assert found.records == 3 * len(CHAPTERS) and len(found.refused) == 1
    flipped(few / "0002" / "uuid_keys")
    there, here = (gather.gather([place], scratch) for place in (f"file://{few}", str(few)))
    assert dataclasses.replace(there, refused=here.refused) == here
    [refused] = there.refused
    assert "0002/uuid_keys" in refused and not list(scratch.iterdir())


@pytest.mark.parametrize(
    "source, message",
    [
        ("/nowhere/at/all", "There is nothing at"),
        ("ftp://host/runs.zip", "begins with"),
        ("https://host/runs", "names no archive"),
        ("s3://key:hunter2@bucket/runs", "must not carry a password"),
        ("ftp://key:hunter2@host/runs", "must not carry a password"),
        ("s3://key:hun/ter2@bucket/runs", "must not carry a password"),
        ("s3://bucket/runs?s3_secret_access_key=hunter2", "must not carry a password"),
    ],
)
def test_a_source_that_can_be_none_is_refused_before_anything_is_read(
    few, scratch, source, message
):
    with pytest.raises(ParameterError, match=message) as caught:
        gather.gather([str(few), source], scratch)
    assert "hunter2" not in str(caught.value)


# ---- the command


def test_a_handed_in_record_is_checked_by_the_same_code(few, call):
    status, out, _ = call("gather", "--check", few)
    assert status == 0 and "3 machines, 6 records, 0 refused." in out
    flipped(few / "0000" / "uuid_keys")
    status, out, errors = call("gather", "--check", few)
    assert status == 1 and f"refused: {few}/0000/uuid_keys: " in out
    assert len(errors.strip().splitlines()) == 1


def test_a_stopped_reading_leaves_nothing_behind(place, tmp_path):
    archive, mine = packed(place, tmp_path / "runs.tar"), tmp_path / "mine"
    mine.mkdir()
    environment = os.environ | {"PGRERUN_TMPDIR": str(mine)}
    words = [sys.executable, "-m", "pgrerun", "gather", "--check", str(archive)]
    reading = subprocess.Popen(words, env=environment, start_new_session=True)
    until(lambda: list(mine.glob("*/*/*")))  # it has begun to unpack
    os.killpg(reading.pid, signal.SIGKILL)
    reading.wait()
    subprocess.run([*words[:-1], "/nowhere"], env=environment, check=False)  # the next one
    assert not list(mine.iterdir())
