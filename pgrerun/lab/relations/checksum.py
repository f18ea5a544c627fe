"""One number for an answer, the same on PostgreSQL, on DuckDB and in memory, and in any order of
the tuples.
"""

from collections.abc import Sequence

import numpy as np

from pgrerun.errors import RerunError

# Weights are drawn once by x -> 48271 x mod 2^31 - 1 (Park and Miller 1988) and lie between
# 2^25 and 2^26: 32 attributes of int4 times such a weight still fit int8, where PostgreSQL would
# raise, and even small values wrap around the modulus.
_MODULUS = 2**31 - 1
_MOST_TERMS = 32

# Where a Wisconsin string differs from another: seven leading letters, or letters 1, 27 and 52.
LETTERS = (1, 2, 3, 4, 5, 6, 7, 27, 52)


def weights(count: int) -> list[int]:
    """The weight of each term of the checksum, for whoever recomputes it elsewhere."""
    drawn, x = [], 1
    for _ in range(count):
        x = x * 48271 % _MODULUS
        drawn.append(2**25 + x % 2**25 | 1)
    return drawn


def checksum_sql(
    source: str,
    integers: Sequence[str],
    texts: Sequence[str] = (),
    letters: Sequence[int] = LETTERS,
) -> str:
    """A query that gives (number of tuples, checksum) of an answer, both as int8.

    source: a relation's name, or a subquery in parentheses with an alias.
    integers: its int4 attributes; texts: its character attributes; letters: which letters
    of them count (from 1), by default those that tell Wisconsin strings apart. Letters cost
    most of the query's time. NULL counts as -1.

    Each tuple contributes the square, modulo 2^31 - 1, of a weighted sum of its attributes;
    the sum of the contributions doesn't depend on the order of the tuples, but does on which
    values stand together in one tuple (hence the square) and on how often a tuple occurs.
    Raises ValueError beyond 32 integers, where int8 could overflow.
    """
    terms = [f"coalesce({name}, -1)" for name in integers]
    spelt = [f"coalesce(ascii(substr({name}, {at}, 1)), -1)" for name in texts for at in letters]
    if len(integers) > _MOST_TERMS:
        raise ValueError(
            f"a checksum takes at most {_MOST_TERMS} integer attributes, not {len(integers)}"
        )
    weighted = " + ".join(
        f"{term}::bigint * {weight}"
        for term, weight in zip(terms + spelt, weights(len(terms) + len(spelt)), strict=True)
    )
    return (
        f"SELECT count(*) AS tuples, coalesce(sum(h * h % {_MODULUS}), 0)::bigint AS checksum"
        f" FROM (SELECT ({weighted}) % {_MODULUS} AS h FROM {source}) AS hashed"
    )


def checksum(
    integers: Sequence[Sequence[int]],
    texts: Sequence[Sequence[str]] = (),
    letters: Sequence[int] = LETTERS,
) -> tuple[int, int]:
    """(number of tuples, checksum) of an answer in memory, as `checksum_sql` gives them for the
    same attributes.

    integers (one at least), texts: the attributes' values, each of shape (tuples,), without NULLs;
    a number that is too large for int4 counts as its remainder modulo 2^31 - 1.
    """
    spelt = [
        [ord(text[at - 1 : at] or "\0") for text in values] for values in texts for at in letters
    ]  # ascii('') is 0
    hashed = np.zeros(len(integers[0]), np.int64)
    for values, weight in zip(
        [*integers, *spelt], weights(len(integers) + len(spelt)), strict=True
    ):
        hashed = (hashed + np.asarray(values, np.int64) % _MODULUS * weight) % _MODULUS
    return len(hashed), int((hashed * hashed % _MODULUS).sum())


class Answers:
    """What engines answered to the same questions, as (tuples, checksum)."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, tuple[int, int]]] = {}

    def compare(self, question: str, engine: str, answer: tuple[int, int]) -> None:
        """RerunError, naming both engines, if an earlier one answered the question otherwise."""
        other, known = self._first.setdefault(question, (engine, answer))
        if known != answer:
            raise RerunError(
                f"{question} is answered differently: by {other} with {known}, by {engine} with"
                f" {answer} (tuples, checksum)."
            )
