"""The page "Ask the record": its tables load into PostgreSQL, which answers what it asks."""

import json
import re
from pathlib import Path

import pytest
from psycopg import sql

from pgrerun.lab.server import Cluster
from pgrerun.record import runs
from pgrerun.site import ask
from pgrerun.site.advice import Teller

PAGE = Path(__file__).resolve().parent.parent / "book" / "ask.md"
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
FOUND = {name: runs.load("published", name) for name in runs.chapters("published")}
WITH_ROWS = {name: record for name, record in FOUND.items() if record.tables.get(name)}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ask") / "record"
    ask.write(folder, Teller(WITH_ROWS, {}))
    listing = json.loads((folder / ask.LISTING).read_text("utf-8"))
    with Cluster(settings={"fsync": "off"}) as cluster, cluster.connect() as connection:
        connection.execute(listing["functions"])
        for schema in sorted({table["schema"] for table in listing["tables"]}):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for table in listing["tables"]:
            connection.execute(table["statement"])
            place = sql.Identifier(table["schema"], table["name"])
            copy = sql.SQL("COPY {} FROM STDIN WITH (FORMAT csv, HEADER)").format(place)
            with connection.cursor().copy(copy) as target:
                target.write((folder / table["file"]).read_bytes())
            counted = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(place))
            assert counted.fetchone() == (table["rows"],)
        yield connection, listing


def test_each_question_of_the_page_is_answered(loaded):
    connection, _ = loaded
    assert len(EXAMPLES) >= 10
    for example in EXAMPLES:
        assert connection.execute(example).fetchall(), example


def test_each_charts_rows_are_there_with_the_query_that_made_them(loaded):
    connection, listing = loaded
    found = {name: connection.execute(q).fetchall() for name, q in listing["charts"].items()}
    assert all(query.count("\n") >= 2 for query in listing["charts"].values())
    # one that shows times alone is empty where the published run has judged none
    assert sum(map(bool, found.values())) > len(found) / 2
