"""What keeps the sizes of the thread's relations, and whether it is HOT."""

import pandas as pd

from pgrerun.chapters.hot.experiments.growth import UNPRUNED_VACUUMED
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FULL,
    HOT,
    NO_HOT,
    REDUCED,
    SIZED,
    UNPRUNED,
    UPDATES,
)
from pgrerun.lab.models.heap_growth import PAGES_PER_PARENT
from pgrerun.record import printed


def pick(sizes: pd.DataFrame, script: str, variant: str, relation: str) -> pd.Series:
    """One row of `experiments.growth.sizes`."""
    return sizes.set_index(["script", "variant", "relation"]).loc[(script, variant, relation)]


def then_and_now(sizes: pd.DataFrame, script: str) -> pd.DataFrame:
    """Pages before and growth of one set-up, a row per relation and index: in 2007 and here."""
    in_print = printed.derived("hot_growth").filter(
        like="reduced_" if script == REDUCED else "full_", axis="index"
    )
    in_print.index = in_print.index.str.partition("_").get_level_values(2)
    own = sizes[sizes["script"] == script]
    rows = []
    for relation, now in own[own["relation"].isin(in_print.index)].groupby("relation", sort=False):
        row, then = {"relation": relation}, in_print.loc[relation]
        for server, words in (("head", "without"), ("hot", HOT)):
            before, added = then[f"initial_{server}"], then[f"increase_{server}"]
            row[f"2007 {words}"] = f"{before:,.0f} + {added:,.0f}"
        for found in reversed(list(now.itertuples())):
            added = found.after - found.before
            row[f"here, {found.variant}"] = f"{found.before:,.0f} + {added:,.0f}"
        rows.append(row)
    return pd.DataFrame(rows)


def over_hot(
    sizes: pd.DataFrame, relation: str, variant: str = UNPRUNED, script: str = REDUCED
) -> float:
    """Pages afterwards in a variant, over those with HOT."""
    with_hot = pick(sizes, script, HOT, relation)["after"]
    return pick(sizes, script, variant, relation)["after"] / with_hot


def index_facts(sizes: pd.DataFrame) -> dict[str, bool]:
    """Whether accounts' primary key grows without HOT only, each full page splitting once."""
    with_hot = pick(sizes, REDUCED, HOT, "accounts_pkey")
    without = pick(sizes, REDUCED, UNPRUNED, "accounts_pkey")
    added, before = without["after"] - without["before"], without["before"]
    # its meta page and the last page of each level needn't split
    unsplit = 3 + (before > PAGES_PER_PARENT) + (before > PAGES_PER_PARENT**2)
    return {
        "accounts_pkey doesn't grow with HOT": with_hot["after"] == with_hot["before"],
        "with neither HOT nor pruning each of its full pages splits, which doubles a large index": (
            added >= before - unsplit
        ),
    }


def stock_facts(sizes: pd.DataFrame) -> dict[str, bool]:
    """Whether pgbench as it is ran both statements of the reduced script, every time."""
    run = pick(sizes, REDUCED, HOT, "accounts")
    return {
        "pgbench ran the reduced script from a file": run["transactions"] > 0,
        "each transaction updated one account and inserted one tuple": (
            run["updated"] == run["history"] == run["transactions"]
        ),
    }


def worth_facts(sizes: pd.DataFrame) -> dict[str, bool]:
    """What HOT does for pgbench's own transaction, in counts."""
    full = sizes[sizes["script"] == FULL].set_index("relation")
    hot, without = (full[full["variant"] == variant].loc[[*SIZED]] for variant in (HOT, NO_HOT))
    accounts = without.loc[[*ACCOUNTS]]
    return {
        "nine of ten updates of pgbench's transaction are HOT": (
            hot["hot_updated"].sum() >= 0.9 * hot["updated"].sum()
        ),
        "no relation or index grows more with HOT than without": (
            (hot["after"] <= without["after"]).all()
        ),
        "without HOT accounts or its index would have grown": (
            (accounts["after"] > accounts["before"]).any()
        ),
    }


def small_facts(small: pd.DataFrame) -> dict[str, bool]:
    """Whether HOT keeps the small tables much smaller."""
    added = (small["after"] - small["before"]).groupby([small["variant"], small["relation"]]).sum()
    return {
        f"{name} grows less than half as much with HOT": (
            2 * added[HOT, name] < added[NO_HOT, name]
        )
        for name in ("tellers", "branches")
    }


def small_index_facts(small: pd.DataFrame) -> dict[str, bool]:
    """Whether the primary key of branches grows without HOT only."""
    index = small[small["relation"] == "branches_pkey"].set_index("variant")
    grown = index["after"] - index["before"]
    return {
        "branches_pkey grows without HOT": grown[NO_HOT] > 0,
        "branches_pkey doesn't grow with HOT": grown[HOT] == 0,
    }


def agreement(measured: pd.DataFrame, computed: pd.DataFrame) -> pd.DataFrame:
    """Measured and computed pages of accounts and its index in each variant.

    Columns: relation, variant, updates, initial_pages, pages, computed (at the end),
    largest_difference (at any time, as a share of the computed pages).
    """
    rows = []
    for relation in ACCOUNTS:
        for variant, own in measured.groupby("variant", sort=False):
            pages = own.set_index("updates")[relation]
            model = computed[computed["variant"] == variant].set_index("updates")[relation]
            off = (pages / model - 1).abs().max()
            rows.append(
                (
                    relation,
                    variant,
                    pages.index[-1],
                    pages.iloc[0],
                    pages.iloc[-1],
                    model.iloc[-1],
                    f"{off:.1%}",
                )
            )
    columns = ["updates", "initial_pages", "pages", "computed", "largest_difference"]
    return pd.DataFrame(rows, columns=["relation", "variant", *columns])


def grown_although_vacuumed(measured: pd.DataFrame) -> float:
    """Pages of accounts after the thread's updates over those before, unpruned but vacuumed."""
    own = measured[measured["variant"] == UNPRUNED_VACUUMED].set_index("updates")["accounts"]
    return own[UPDATES] / own[0.0]


def queue_facts(queue: pd.DataFrame) -> dict[str, bool]:
    """Whether a vacuumed queue needs no CLUSTER with HOT, and would need it without."""
    by_variant = queue.set_index("variant")
    row, before = by_variant.loc[HOT], by_variant.loc[UNPRUNED_VACUUMED]
    return {
        "with HOT the table and its index stop growing": (
            row["table_end"] <= row["table_halfway"] and row["index_end"] <= row["index_halfway"]
        ),
        "with HOT CLUSTER wouldn't halve the table": 2 * row["table_clustered"] > row["table_end"],
        "with neither HOT nor pruning it would": (
            2 * before["table_clustered"] <= before["table_end"]
        ),
    }
