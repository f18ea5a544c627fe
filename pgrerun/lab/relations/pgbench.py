"""pgbench's relations: branches, tellers, accounts and history.

They are made by rule in the server, with pgbench's attributes, and can have other numbers of
tuples, names, fillfactors and indexes than `pgbench -i` gives them. pgbench leaves the fillers
of branches and tellers null and those of accounts blank, and so does this.

`debit_credit.py` has the relations of the 1990 report, whose attributes are others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgrerun.errors import ParameterError
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server, releases

BRANCHES, TELLERS, ACCOUNTS, HISTORY = "branches", "tellers", "accounts", "history"
KEYS = {BRANCHES: "bid", TELLERS: "tid", ACCOUNTS: "aid"}

_ATTRIBUTES = {
    BRANCHES: "bid int NOT NULL, bbalance int, filler char(88)",
    TELLERS: "tid int NOT NULL, bid int, tbalance int, filler char(84)",
    ACCOUNTS: "aid int NOT NULL, bid int, abalance int, filler char(84)",
    HISTORY: "tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)",
}
_TUPLES = {
    BRANCHES: "n, 0, NULL",
    TELLERS: "n, (n - 1) / 10 + 1, 0, NULL",
    ACCOUNTS: "n, (n - 1) / {accounts} + 1, 0, ''",
}
SCATTERED = "hashint4(n), n"
"""An `order` of accounts on their pages that has nothing to do with aid and is always the same."""


@dataclass(frozen=True)
class Index:
    """A further index: `accounts_covering` ON accounts (aid, abalance) is
    Index("accounts", "covering", "(aid, abalance)").

    definition: what stands after the relation in CREATE INDEX, such as
        "USING brin (abalance)" or "(abalance) WHERE abalance IS NULL".
    """

    role: str
    suffix: str
    definition: str


@dataclass(frozen=True)
class Pgbench:
    """pgbench's relations of so many branches; keys counted from 1, every balance 0.

    Each branch has ten tellers; teller t belongs to branch 1 + (t - 1) // 10, and so do accounts.
    `prefix` stands before the relations' names: "pgbench_" for pgbench's built-in scripts.
    ParameterError unless all numbers are at least 1.
    """

    branches: int = 1
    accounts_per_branch: int = 100_000
    prefix: str = "pgbench_"

    def __post_init__(self) -> None:
        if min(self.branches, self.accounts_per_branch) < 1:
            raise ParameterError(
                f"pgbench's relations need at least one branch and account, not {self}."
            )

    @property
    def accounts(self) -> int:
        """Accounts of all branches."""
        return self.branches * self.accounts_per_branch

    @property
    def tellers(self) -> int:
        """Tellers of all branches."""
        return 10 * self.branches

    @property
    def tuples(self) -> dict[str, int]:
        """Tuples after loading, by role ("branches", "tellers", "accounts", "history")."""
        return {
            BRANCHES: self.branches,
            TELLERS: self.tellers,
            ACCOUNTS: self.accounts,
            HISTORY: 0,
        }

    @property
    def relations(self) -> dict[str, str]:
        """The relations' names by role."""
        return {role: self.prefix + role for role in _ATTRIBUTES}

    @property
    def variables(self) -> dict[str, int]:
        """The -D variables of scripts, all branches together: `\\set aid random(1, :accounts)`.

        `scale` (branches) is the one of pgbench's built-in scripts.
        """
        return {
            "scale": self.branches,
            "branches": self.branches,
            "tellers": self.tellers,
            "accounts": self.accounts,
        }

    def load(
        self,
        server_or_connection: Server | psycopg.Connection,
        *,
        fillfactor: Mapping[str, int] | None = None,
        indexes: Sequence[Index] = (),
        autovacuum: bool = False,
    ) -> None:
        """Create the four relations in the current schema, replacing earlier ones of ours.

        Each but history has its primary key (NAME_pkey). Frozen and analyzed.

        fillfactor: of a relation, in percent, by role; 100 where none is given.
        indexes: beside the primary keys.
        autovacuum: whether it may come to the relations, which then aren't the same every run.
        Takes a server or an autocommit connection. ServerError if a name is somebody else's.
        """
        free = fillfactor or {}
        if unknown := {*free, *(index.role for index in indexes)} - set(_ATTRIBUTES):
            raise ParameterError(
                f"pgbench's relations are {', '.join(_ATTRIBUTES)}, not {', '.join(unknown)}."
            )
        with loading.session(server_or_connection) as connection:
            with connection.transaction():
                for role, name in self.relations.items():
                    wanted = [index for index in indexes if index.role == role]
                    self._make(connection, role, name, free.get(role, 100), wanted, autovacuum, "")
            for name in self.relations.values():  # one by one: several at once take 11
                connection.execute(f"VACUUM FREEZE ANALYZE {_quoted(name)}")

    def load_accounts(
        self,
        server_or_connection: Server | psycopg.Connection,
        name: str,
        *,
        fillfactor: int = 100,
        indexes: Sequence[Index] = (),
        order: str = "",
        autovacuum: bool = False,
    ) -> None:
        """Create accounts alone, under a name of its own; else as `load` does.

        order: SQL by which tuples follow each other on the pages (`SCATTERED`; n is the key).
        """
        with loading.session(server_or_connection) as connection:
            with connection.transaction():
                self._make(connection, ACCOUNTS, name, fillfactor, indexes, autovacuum, order)
            connection.execute(f"VACUUM FREEZE ANALYZE {_quoted(name)}")

    def _make(
        self,
        connection: psycopg.Connection,
        role: str,
        name: str,
        fillfactor: int,
        indexes: Sequence[Index],
        autovacuum: bool,
        order: str,
    ) -> None:
        table = _quoted(name)
        options = [f"fillfactor = {fillfactor}"] if fillfactor != 100 else []
        known = releases.has(connection.info.server_version, "autovacuum_enabled of a table")
        options += ["autovacuum_enabled = off"] if known and not autovacuum else []
        storage = f" WITH ({', '.join(options)})" if options else ""
        loading.replace(connection, name, f"CREATE TABLE {table} ({_ATTRIBUTES[role]}){storage}")
        if role in _TUPLES:
            values = _TUPLES[role].format(accounts=self.accounts_per_branch)
            sorted_by = f" ORDER BY {order}" if order else ""
            connection.execute(
                f"INSERT INTO {table} SELECT {values}"
                f" FROM generate_series(1, {self.tuples[role]}) AS n{sorted_by}"
            )
            connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({KEYS[role]})")
        for index in indexes:
            index_name = _quoted(f"{name}_{index.suffix}")
            connection.execute(f"CREATE INDEX {index_name} ON {table} {index.definition}")

    def is_loaded(self, server_or_connection: Server | psycopg.Connection) -> bool:
        """Whether the current schema has the four relations, made by us, of these sizes.

        History may have grown, and balances may have changed; fillfactor and indexes aren't
        looked at.
        """
        with loading.session(server_or_connection) as connection:
            return loading.is_ours(connection, self.relations[HISTORY]) and all(
                loading.holds(connection, self.relations[role], self.tuples[role]) for role in KEYS
            )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()
