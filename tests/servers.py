"""What tests say about servers in more than one file."""

from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from pgrerun.server import Cluster

SMALL = {"shared_buffers": "8MB", "max_connections": 40}


def url_of(server: Cluster, user: str = "postgres", database: str = "postgres") -> str:
    """The URL by which somebody else would borrow `server`."""
    return f"postgresql://{user}@/{database}?host={quote(conninfo_to_dict(server.conninfo())['host'], safe='')}"
