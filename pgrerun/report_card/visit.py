"""A chapter's verbs on somebody's server: its parameters and a record of its own, without claims
and without other servers.
"""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import Borrowed
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.parameters import chapter_parameters
from pgrerun.report_card.limits import Watchdog

# What each chapter's verbs are to do in the minutes that there are; the rest is as in the profile
# ci.
PARAMETERS = {
    "optimizer": {"points": 7, "tuples": 40_000, "pairs": 9},
    "tp1": {"scale": 1, "counted": 20},
    "scalability": {
        "scale": 1,
        "most_clients": 32,
        "transactions": 500,
        "commits": 20,
        "idle_seconds": 10,
    },
}


class Visit(Chapter):
    """What a section of the card sees. `schema` is the one that the reader has chosen, `watchdog`
    the section's.
    """

    def __init__(self, name: str, guest: Borrowed, schema: str, watchdog: Watchdog):
        self._folder = PrivateDirectory(base_directory())
        self._variants: dict[str, list[str]] = {}
        self.schema, self.watchdog = schema, watchdog
        super().__init__(
            name,
            chapter_parameters(name, PARAMETERS[name]),
            guest=guest,
            records=self._folder.path,
        )

    def compare(self, name, variants, units, pairs=0, warmup=1):
        self._variants[name] = [variant.name for variant in variants]
        return super().compare(name, variants, units, pairs, warmup)

    def table(self, name: str, metric: str) -> pd.DataFrame:
        """Complete blocks alone: the section may have been ended in the middle of one.

        Empty where nothing was measured, which is no fault here: sections are left out or ended.
        """
        frame = wide(self.run.observations(name), metric)
        return frame if frame.empty else frame.reindex(columns=self._variants[name]).dropna()

    def by_provenance(self, name: str) -> list[tuple[str, pd.DataFrame]]:
        found = {"published": self.published_run(name)}
        own = self.run.observations(name)
        if not own.empty:
            complete = own.groupby("block")["variant"].nunique() == len(self._variants[name])
            found["measured"] = own[own["block"].map(complete)]
        return [(kind, frame) for kind, frame in found.items() if not frame.empty]

    def blocks(self, name: str, metric: str) -> int:
        """Complete blocks of an experiment; CannotMeasure if there is none."""
        if self.table(name, metric).empty:
            raise CannotMeasure(
                "time",
                "its time was over before everything had been measured once; give it more minutes",
            )
        return len(self.table(name, metric))

    def close(self) -> None:
        """Throw the record away; the server is its opener's."""
        self.run.close()
        self._folder.close()
