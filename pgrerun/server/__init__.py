"""A PostgreSQL to experiment on: our own throwaway cluster, or somebody's server by URL.

`binaries.py` finds programs, `cluster.py` owns a cluster, `borrowed.py` is a guest on a
server, `client.py` is the face that both share, `loopback.py` a cluster's face over TCP while it
has one, `private.py` what must be gone afterwards.
"""

from pgrerun.server.binaries import Programs, bundled, from_folder, installed
from pgrerun.server.borrowed import Borrowed, place
from pgrerun.server.client import Server, set_session
from pgrerun.server.cluster import Cluster
from pgrerun.server.private import sweep

__all__ = ["Borrowed", "Cluster", "Programs", "Server", "bundled", "from_folder", "installed", "open_server", "place", "set_session", "sweep"]


def open_server(spec: str = "", **options) -> Server:
    """`Cluster(**options)` for "", else `Borrowed(spec)`: a URL or a libpq connection string.

    A borrowed server takes no options: its programs and settings are its owner's.
    """
    return Borrowed(spec) if spec.strip() else Cluster(**options)
