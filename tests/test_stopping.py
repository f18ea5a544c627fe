"""How something long is stopped: stopping.py."""

import signal
import subprocess
import sys

STOPPED_IN_A_FINALIZER = """
import signal, time
from pgrerun.stopping import stoppable

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.{name})
        time.sleep(0)  # the handler runs here at the latest, and what it raises goes nowhere

with stoppable("nothing"):
    try:
        Finalized()
        time.sleep(300)
    except KeyboardInterrupt:
        print("stopped")
"""


def ended(script: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=200
    )


def test_a_signal_that_hits_a_finalizer_stops_too():
    for number in (signal.SIGINT, signal.SIGTERM):
        done = ended(STOPPED_IN_A_FINALIZER.format(name=number.name))
        assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


def test_another_failure_of_a_finalizer_is_told_as_always():
    done = ended(
        "from pgrerun.stopping import stoppable\n"
        "class Finalized:\n"
        "    def __del__(self):\n"
        "        raise ValueError('not ours')\n"
        "with stoppable('nothing'):\n"
        "    Finalized()\n"
    )
    assert done.returncode == 0 and "ValueError: not ours" in done.stderr


def test_a_stop_during_imports_is_quiet():
    done = ended(
        "import sys\n"
        "class Stopped:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pgrerun.parameters':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stopped())\n"
        "from pgrerun.__main__ import main\n"
        "main()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
