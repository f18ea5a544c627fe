"""What a secret is called, and how one is hidden in a text: for parameters and records alike.

Parameters refuse what is on it (`lab.server.passwords`), records and pages hide it (`record.runs`).
"""

import re

import psycopg

SECRETS = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
    # and whatever else the libpq at hand says is to be shown as asterisks
    | {
        option.keyword.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.dispchar == b"*"
    }
)
"""The connection keywords that hold a secret, as far as libpq 18 or the one at hand knows them."""

# Beside them what other programs' names end in, a server's setting, and what DuckDB calls S3's.
_OTHERS = "password passwd passphrase secret token ssl_passphrase_command secret_access_key"
_NAME = rf"\w*(?:{'|'.join([*_OTHERS.split(), *map(re.escape, sorted(SECRETS))])})"
_KEY = re.compile(rf"(?i){_NAME}$")
_IN_TEXT = (
    # user:password@ of a URL. Up to the last @: a password may have a / or another @ in it, which
    # should have been written as %2F and %40. What is hidden too much is no harm.
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,30}://[^\s:]*):\S*@"), r"\1:***@"),
    # of a connection string, or of what follows the ? of a URL
    (re.compile(rf"(?i)\b({_NAME}\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&;,\"']+)"), r"\1***"),
)


def names_one(key: str) -> bool:
    """Whether what is called so is a secret."""
    return _KEY.search(key) is not None


def hidden(text: str) -> str:
    """The text with asterisks for the passwords of URLs and for values that are called a secret."""
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def carries_one(text: str) -> bool:
    """Whether something in the text would be hidden."""
    return hidden(text) != text
