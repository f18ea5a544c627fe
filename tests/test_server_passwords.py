"""No secret is taken as a parameter, whatever its keyword or its place, and none is repeated."""

import pytest

from pgrerun import credentials
from pgrerun.errors import ParameterError
from pgrerun.lab.server import passwords

SECRET = "hunter2"


@pytest.mark.parametrize("keyword", sorted(credentials.SECRETS))
@pytest.mark.parametrize("form", ["postgresql://127.0.0.1/b?{}={}", "host=127.0.0.1 {}={}"])
def test_every_keyword_that_holds_a_secret_is_refused(keyword, form):
    with pytest.raises(passwords.CarriesSecret) as refused:
        passwords.parse(form.format(keyword, SECRET))
    assert SECRET not in str(refused.value) and "PGPASSFILE" in str(refused.value)


@pytest.mark.parametrize(
    "spec",
    [
        f"postgresql://u:{SECRET}@127.0.0.1/b",
        f"postgresql://u:p/{SECRET}@127.0.0.1/b",
        f"postgresql://u:12/{SECRET}@127.0.0.1/b",
        f"postgresql://u:12/x#{SECRET}@127.0.0.1/b",
        f"postgres://u:a?{SECRET}@127.0.0.1/b",
        f"dbname=postgresql://u:{SECRET}@127.0.0.1/b",
        f"dbname='host=127.0.0.1 password={SECRET}'",
        f"postgresql://127.0.0.1/?dbname=postgresql://u:{SECRET}@127.0.0.1/b",
        f"postgresql://127.0.0.1/?dbname=postgresql%3A%2F%2Fu%3A{SECRET}%40127.0.0.1%2Fb",
        f"postgresql://127.0.0.1:{SECRET}/b",
        f"host=127.0.0.1 port={SECRET}",
        f"postgresql://[{SECRET}",
        f"no such thing {SECRET}",
    ],
)
def test_secrets_in_the_wrong_place_are_refused_unquoted(spec):
    with pytest.raises(ParameterError) as refused:
        passwords.parse(spec)
    error = refused.value
    assert SECRET not in f"{error} {error.__cause__} {error.__context__}"


@pytest.mark.parametrize("port", ["-1", "0", "65536", "٧"])
def test_a_port_is_a_number_that_there_is(port):
    with pytest.raises(ParameterError, match="from 1 to 65535"):
        passwords.parse(f"host=127.0.0.1 port={port}")


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("postgresql://h/b?user=a@b", {"host": "h", "dbname": "b", "user": "a@b"}),
        ("postgresql://u@h1:1,h2:2/a%40b", {"host": "h1,h2", "port": "1,2", "dbname": "a@b"}),
        ("service=mine", {"service": "mine"}),
        ("dbname=a@b", {"dbname": "a@b"}),
    ],
)
def test_what_carries_none_is_read(spec, found):
    assert found.items() <= passwords.parse(spec).items()
