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
_NUMBER = "@number@"  # stands for that of a transaction


def run(
    connection: psycopg.Connection,
    script: str,
    transactions: int,
    *,
    variables: Mapping[str, int] | None = None,
    seed: int | None = None,
) -> None:
    """Run a pgbench script so many times, committing each time.

    The script is pgbench's: `\\set NAME EXPRESSION` lines, whose `random(low, high)` draws
    uniformly, and statements, each of which ends a line with its semicolon. BEGIN and END
    around them may stand there. What pgbench has and SQL hasn't (random_zipfian, \\if, \\gset)
    can't be used. `variables` are what pgbench takes as -D; `:n` counts transactions from 1.
    A SELECT's rows are thrown away.

    seed: begins the session's random numbers anew (`seed_random`); without, they go on.
    No commit waits for the flush of its WAL; the session's synchronous_commit is afterwards what it
    was.
    Needs an autocommit connection (ParameterError). Before PostgreSQL 11 a block can't commit:
    there each transaction is a block of its own, which is parsed and planned anew; and before 9.0,
    which has no blocks, a call of the session's temporary function.
    """
    if not connection.autocommit:
        raise ParameterError("A script that commits in the server needs an autocommit connection.")
    declared, body = _translated(script, variables or {})
    version = connection.info.server_version
    sent = _singly(version, declared, body, transactions)
    if releases.has(version, "commit in a block"):
        loop = f"FOR drawn_{ITERATION} IN 1..{transactions} LOOP\n{body}\nCOMMIT; END LOOP;"
        sent = iter([f"DO $pgrerun$ DECLARE {declared}BEGIN {loop} END $pgrerun$"])
    if seed is not None:
        seed_random(connection, seed)
    knows = releases.knows(version, "synchronous_commit")
    before = value(connection, str, "SHOW synchronous_commit") if knows else ""
    set_commit = "SELECT set_config('synchronous_commit', %s, false)"
    if before:
        connection.execute(set_commit, ["off"])
    try:
        for statements in sent:
            connection.execute(statements)
    finally:
        if before and not connection.broken:
            connection.execute(set_commit, [before])


def _singly(version: int, declared: str, body: str, transactions: int) -> Iterator[str]:
    """The transactions as a block or a call each, many of them sent at once."""
    declared += f"drawn_{ITERATION} int := {_NUMBER};"
    code = f"$pgrerun$ DECLARE {declared}\nBEGIN\n{body}\nEND $pgrerun$"
    one = "DO " + code
    if not releases.has(version, "blocks that aren't stored (DO)"):
        yield (
            "CREATE OR REPLACE FUNCTION pg_temp.pgrerun_load(int) RETURNS void LANGUAGE plpgsql AS "
            + code.replace(_NUMBER, "$1")
        )
        one = f"SELECT pg_temp.pgrerun_load({_NUMBER})"
    for first in range(1, transactions + 1, _AT_ONCE):
        last = min(first + _AT_ONCE, transactions + 1)
        yield ";".join(
            f"BEGIN; {one.replace(_NUMBER, str(number))}; COMMIT" for number in range(first, last)
        )


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
