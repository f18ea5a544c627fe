"""The Wisconsin relations as a query of Spark's: nothing is shipped but numbers.

The random order is a walk around a cycle (`relations.wisconsin`), cut into blocks. What an
executor must know of a block is where the walk enters it and how many tuples come before it. From
these two numbers it makes the block's tuples, whatever the others do. The blocks are rows of the
query, spread over its partitions.
"""

from collections.abc import Iterable
from string import ascii_uppercase, digits

from pgrerun.errors import ParameterError
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.relations.wisconsin import cycle_blocks

_LOW = 256  # powers of the generator that are listed; any other is the product of two
_LETTERS = 7
_DIGITS = (digits + ascii_uppercase)[:26]  # as conv writes them


def wisconsin_sql(relation: Wisconsin, partitions: int) -> str:
    """A SELECT of the relation's tuples, each with all attributes, in so many partitions.

    ParameterError for other attributes than those of 1993.
    """
    if relation.attributes != "1993":
        raise ParameterError("Spark makes the relations of 1993 only.")
    generator, prime, blocks = cycle_blocks(relation.n, relation.order)
    low, high = (
        _numbers(pow(generator, step * i, prime) for i in range(_LOW)) for step in (1, _LOW)
    )
    listed = ", ".join(f"({before}L, {enters}L, {steps})" for before, enters, steps in blocks)
    seed = f"low[i & {_LOW - 1}] * high[i div {_LOW}] % {prime} * enters % {prime}"
    walk = f"filter(transform(sequence(0, steps - 1), i -> {seed}), s -> s <= {relation.n})"
    numbers = (
        f"SELECT CAST(before + place AS INT) AS unique2, CAST(seed - 1 AS INT) AS unique1 FROM"
        f" (SELECT /*+ REPARTITION_BY_RANGE({partitions}, before) */ before, enters, steps,"
        f" {low} AS low, {high} AS high"
        f" FROM VALUES {listed} AS blocks(before, enters, steps))"
        f" LATERAL VIEW posexplode({walk}) walked AS place, seed"
    )
    return f"SELECT {', '.join(_attributes(relation))} FROM ({numbers})"


def _numbers(values: Iterable[int]) -> str:
    # one string is one node of a plan; hundreds of numbers take longer to plan than to use
    return f"CAST(split('{','.join(map(str, values))}', ',') AS ARRAY<BIGINT>)"


def _attributes(relation: Wisconsin) -> list[str]:
    rules = {name: f"unique1 % {modulus}" for name, modulus in relation.moduli.items()}
    rules |= {
        "unique1": "unique1",
        "unique2": "unique2",
        "unique3": "unique1",
        "evenonepercent": "unique1 % 100 * 2",
        "oddonepercent": "unique1 % 100 * 2 + 1",
        "stringu1": _letters("unique1"),
        "stringu2": _letters("unique2"),
        "string4": "rpad(array('AAAA', 'HHHH', 'OOOO', 'VVVV')[unique2 % 4], 52, 'x')",
    }
    return [f"{rules[name]} AS {name}" for name in (*relation.integers, *relation.texts)]


def _letters(value: str) -> str:
    """Seven base-26 digits A..Z, right-justified, and the filler."""
    padded = f"lpad(conv({value}, 10, 26), {_LETTERS}, '0')"
    return f"rpad(translate({padded}, '{_DIGITS}', '{ascii_uppercase}'), 52, 'x')"
