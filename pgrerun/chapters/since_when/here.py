"""The releases on this machine, and those of them that a run compares."""

import numpy as np

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import bundled, fetched, releases
from pgrerun.lab.testbed import Testbed


def version(release: str) -> int:
    """The release's place in time: 90300 for "9.3"."""
    return releases.number(tuple(map(int, release.split("."))))


def here() -> dict[str, str]:
    """The releases on this machine, oldest first, and what `programs` takes for each.

    CannotMeasure if none was fetched or registered: the bundled one has nothing to be compared
    with.
    """
    there = {name: name for name in fetched.comparable()}
    if not there:
        raise CannotMeasure(
            "releases side by side",
            "it needs older releases of PostgreSQL beside the bundled one, and none was fetched"
            " or registered: `pgrerun releases fetch` brings some",
        )
    there.setdefault(releases.named(bundled().number), "")
    return {name: there[name] for name in sorted(there, key=version)}


def evenly(there: dict[str, str], many: int) -> dict[str, str]:
    """So many of them, from the oldest to the newest."""
    names = list(there)
    places = np.linspace(0, len(names) - 1, min(many, len(names))).round().astype(int)
    return {names[place]: there[names[place]] for place in places}


def compared(bed: Testbed) -> dict[str, str]:
    """As many of those here as the parameter says."""
    return evenly(here(), bed.parameters.releases)


def one_builder(bed: Testbed) -> dict[str, str]:
    """Those here that one builder compiled, as many as the parameter says.

    Of the builders of two or more it is the one of the newest, as releases of long ago that
    somebody compiled say nothing of today's. CannotMeasure if there are less than two.
    """
    there, builders = here(), fetched.comparable()
    own: dict[str, str] = {}
    for builder in dict.fromkeys(builders[name] for name in reversed(there) if name in builders):
        own = {name: spec for name, spec in there.items() if builders.get(name) == builder}
        if len(own) >= 2:
            break
    if len(own) < 2:
        raise CannotMeasure(
            "two releases of one builder",
            "times compare only between releases that one builder compiled, and there is only one:"
            " `pgrerun releases fetch` brings more",
        )
    return evenly(own, bed.parameters.timed_releases)
