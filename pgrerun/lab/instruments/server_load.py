"""A pgbench script run inside the server, without a client: for counting, not for timing.

The server's own language (PL/pgSQL) loops, so that hundreds of thousands of transactions take
seconds. Messages, parsing and planning per statement fall away, and there is one session.
What transactions leave behind, tuples, WAL and statistics, is the same.
"""

import re
from collections.abc import Iterator, Mapping

import psycopg

from pgrerun.errors import ParameterError
from pgrerun.lab.server import releases, seed_random, value

_SET = re.compile(r"\\set\s+(\w+)\s+(.+)")
_BOUND = r"((?:[^(),]|\([^()]*\))+)"  # an expression, with at most one level of brackets
_RANDOM = re.compile(rf"random\({_BOUND},{_BOUND}\)")
_NAME = re.compile(r"(?<!:):([A-Za-z_]\w*)")
_BOUNDARY = re.compile(r"(begin|end|commit|start transaction)\s*;", re.IGNORECASE)
ITERATION = "n"  # the variable that counts transactions, from 1
_AT_ONCE = 200  # blocks in a message


def run(
    connection: psycopg.Connection,
    script: str,
    transactions: int,
    *,
    variables: Mapping[str, int] | None = None,
    seed: int | None = None,
    waiting: bool = False,
) -> None:
    """Run a pgbench script so many times, committing each time.

    The script is pgbench's: `\\set NAME EXPRESSION` lines, whose `random(low, high)` draws
    uniformly, and statements, each of which ends a line with its semicolon. BEGIN and END
    around them may stand there. What pgbench has and SQL hasn't (random_zipfian, \\if, \\gset)
    can't be used. `variables` are what pgbench takes as -D; `:n` counts transactions from 1.
    A SELECT's rows are thrown away.

    seed: begins the session's random numbers anew (`seed_random`); without, they go on.
    waiting: whether each commit waits for the flush of its WAL. The session's
        synchronous_commit is afterwards what it was.
    Needs an autocommit connection (ParameterError). Before PostgreSQL 11 a block can't commit:
    there each transaction is a block of its own, which is parsed and planned anew; and before 9.0,
    which has no blocks, a call of the session's temporary function.
    """
    if not connection.autocommit:
        raise ParameterError("A script that commits in the server needs an autocommit connection.")
    declared, body = _translated(script, variables or {})
    version = connection.info.server_version
    if releases.has(version, "commit in a block"):
        loop = f"FOR drawn_{ITERATION} IN 1..{transactions} LOOP\n{body}\nCOMMIT; END LOOP;"
        sent = iter([f"DO $pgrerun$ DECLARE {declared}BEGIN {loop} END $pgrerun$"])
    elif releases.has(version, "blocks that aren't stored (DO)"):
        sent = _blocks(declared, body, transactions)
    else:
        sent = _calls(declared, body, transactions)
    if seed is not None:
        seed_random(connection, seed)
    waiting = waiting or not releases.knows(version, "synchronous_commit")
    before = "" if waiting else value(connection, str, "SHOW synchronous_commit")
    set_commit = "SELECT set_config('synchronous_commit', %s, false)"
    if not waiting:
        connection.execute(set_commit, ["off"])
    try:
        for statements in sent:
            connection.execute(statements)
    finally:
        if not waiting and not connection.broken:
            connection.execute(set_commit, [before])


def _blocks(declared: str, body: str, transactions: int) -> Iterator[str]:
    """The transactions as a DO statement each, many of them sent at once."""
    for first in range(1, transactions + 1, _AT_ONCE):
        last = min(first + _AT_ONCE, transactions + 1)
        yield ";".join(
            f"BEGIN; DO $pgrerun$ DECLARE {declared}drawn_{ITERATION} int := {number};\n"
            f"BEGIN\n{body}\nEND $pgrerun$; COMMIT"
            for number in range(first, last)
        )


def _calls(declared: str, body: str, transactions: int) -> Iterator[str]:
    """The transactions as calls of a function, many of them sent at once."""
    yield (
        "CREATE OR REPLACE FUNCTION pg_temp.pgrerun_load(int) RETURNS void LANGUAGE plpgsql AS"
        f" $pgrerun$ DECLARE {declared}drawn_{ITERATION} int := $1;\nBEGIN\n{body}\nEND $pgrerun$"
    )
    for first in range(1, transactions + 1, _AT_ONCE):
        last = min(first + _AT_ONCE, transactions + 1)
        calls = (f"SELECT pg_temp.pgrerun_load({number})" for number in range(first, last))
        yield ";".join(f"BEGIN; {call}; COMMIT" for call in calls)


def _translated(script: str, variables: Mapping[str, int]) -> tuple[str, str]:
    """The script's variables as PL/pgSQL declares them, and its statements."""
    drawn: list[str] = []
    body: list[str] = []
    for line in script.splitlines():
        line = line.strip()
        if not line or line.startswith("--") or _BOUNDARY.fullmatch(line):
            continue
        if found := _SET.fullmatch(line):
            name, expression = found.groups()
            if name not in drawn:
                drawn.append(name)
            # whole numbers of 64 bits, as pgbench reckons
            expression = _named(expression, variables, drawn, "::bigint")
            body.append(f"drawn_{name} := {_RANDOM.sub(_uniform, expression)};")
        elif line.startswith("\\"):
            raise ParameterError(f"“{line.split()[0]}” can't be run in the server, only \\set.")
        else:
            body.append(_named(_performed(line, body), variables, drawn, ""))
    return "".join(f"drawn_{name} int; " for name in drawn), "\n".join(body)


def _named(text: str, variables: Mapping[str, int], drawn: list[str], cast: str) -> str:
    """`:name` as the block's variable or as the number that was given for it."""

    def replacement(found: re.Match[str]) -> str:
        name = found[1]
        if name in drawn or name == ITERATION:
            return f"drawn_{name}{cast}"
        return f"{variables[name]}{cast}" if name in variables else found[0]

    return _NAME.sub(replacement, text)


def _uniform(found: re.Match[str]) -> str:
    low, high = found[1].strip(), found[2].strip()
    return f"floor(random() * (({high}) - ({low}) + 1))::bigint + ({low})"


def _performed(line: str, before: list[str]) -> str:
    """A SELECT as PL/pgSQL wants it whose rows nobody takes; lines inside a statement stay."""
    begins = not before or before[-1].endswith(";")
    return re.sub(r"^select\b", "PERFORM", line, flags=re.IGNORECASE) if begins else line
