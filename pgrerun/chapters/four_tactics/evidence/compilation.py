"""What the engines of the miniature say: instructions of Python's machine, all exact."""

import pandas as pd


def over_compiled(found: pd.DataFrame, engine: str = "threaded", query: str = "c") -> float:
    """Instructions that interpreting a tuple takes over those of a compiled engine.

    `found` is of `experiments.compilation.instructions`; engine: a column of it.
    """
    row = found.set_index("query").loc[query]
    return row["interpreted"] / row[engine]


def extra_instructions(found: pd.DataFrame) -> dict[str, float]:
    """Instructions that threaded code takes more than code in line, for each node of its tree."""
    return {f"query {row['query']}": row["extra per node"] for _, row in found.iterrows()}
