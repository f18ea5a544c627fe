"""Commands to a single-user backend: no client, no socket, no other process."""

import re
import subprocess
import tempfile
from collections.abc import Sequence

from pgrerun.errors import ServerError
from pgrerun.lab.server import Cluster


def run(cluster: Cluster, lines: Sequence[str]) -> str:
    """What the backend prints on a stopped cluster's files, a command a line.

    Commands come from a file and answers go into one. ServerError if a command fails.
    """
    with tempfile.TemporaryFile("w+") as commands, tempfile.TemporaryFile("w+") as answers:
        commands.writelines(f"{line}\n" for line in lines)
        commands.seek(0)
        done = cluster.single_user(stdin=commands, stdout=answers, stderr=subprocess.PIPE)
        answers.seek(0)
        printed = answers.read()
    error = re.search("ERROR: .*", done.stderr)
    if done.returncode:
        said = done.stderr.strip()
    elif error:
        said = error[0]
    else:
        return printed
    raise ServerError(f"A single-user backend failed: {said[-500:]}")
