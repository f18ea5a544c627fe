"""A PostgreSQL to experiment on: our own throwaway cluster, or somebody's server by URL.

`binaries.py` finds programs, `fetched.py` those that a package client brings by `packages.py`;
`cluster.py` owns a cluster, `borrowed.py` is a guest on a server once `entrance.py` has looked at
it, `client.py` is the face that both
share, `loopback.py` a cluster's face over TCP while it has one, `private.py` what must be gone
afterwards, with `processes.py` and `shared_memory.py`. `releases.py` says what differs between
releases.
"""

from collections.abc import Mapping

from pgrerun.lab.server.binaries import Programs, bundled, from_folder, installed
from pgrerun.lab.server.borrowed import Borrowed, look, place
from pgrerun.lab.server.client import Server, read_any_bytes, seed_random, set_session
from pgrerun.lab.server.cluster import Cluster
from pgrerun.lab.server.private import sweep
from pgrerun.lab.server.queries import exists, row, value

__all__ = [
    "Borrowed",
    "Cluster",
    "Programs",
    "Server",
    "bundled",
    "exists",
    "from_folder",
    "installed",
    "look",
    "open_server",
    "place",
    "read_any_bytes",
    "row",
    "seed_random",
    "set_session",
    "sweep",
    "value",
]


def open_server(
    spec: str = "",
    programs: Programs | None = None,
    settings: Mapping[str, str | int] | None = None,
) -> Server:
    """`Cluster(programs, settings)` for "", else `Borrowed(spec)`.

    `spec` is a URL or a libpq connection string. A borrowed server's settings are its owner's; its
    tools are of `programs` where those can reach it.
    """
    return Borrowed(spec, programs) if spec.strip() else Cluster(programs, settings)
