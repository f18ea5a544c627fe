"""A Spark application: its driver in a process of its own, its executors in theirs.

By default the cluster is ours: Spark's own `local-cluster`, a master and workers inside of the
driver's JVM, executors of one core each in JVMs of their own, all on the loopback interface and
with a secret that outsiders don't know. Several applications may be open at the same time, as one
process can't have them. A cluster that exists is named by its master's address.
"""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.server.private import Closing, PrivateDirectory, base_directory
from pgrerun.lab.spark.relations import wisconsin_sql

JAVA = 17  # the oldest that Spark 4 runs on
EXECUTOR, DRIVER = 768, 512  # MB of heap of each executor, and of the driver
_RESIDENT = 2  # what a JVM takes of memory over its heap, at most
_PATIENCE = 120.0  # seconds until all executors must have come
_LOOPBACK = "127.0.0.1"
_INTO = re.compile(r"^CREATE TABLE (\S+) AS ")
_NAME = re.compile(r'"(\w+)"')


def spark_sql(sql: str) -> str:
    """A statement of `quel.Translator` or of `relations.checksum_sql` for Spark.

    A stored result is Parquet, as the relations are; names that SQL reserves stand in backticks.
    Everything else in the retrievals is the same in both.
    """
    return _NAME.sub(r"`\1`", _INTO.sub(r"CREATE TABLE \1 USING parquet AS ", sql))


def require(executors: int) -> str:
    """The Java that Spark would run on here; CannotMeasure, saying what is missing.

    `executors` is how many will be running on this machine, 0 for none.
    """
    require_pyspark()
    version = require_java()
    wanted = _RESIDENT * (executors * EXECUTOR + DRIVER) * 2**20
    if executors and (free := psutil.virtual_memory().available) < wanted:
        raise CannotMeasure(
            "memory",
            f"{executors} executors of Spark may take {wanted / 2**30:.1f} GB, and"
            f" {free / 2**30:.1f} GB are free",
        )
    return version


def require_pyspark() -> str:
    """The version of pyspark, "yes" where it is on Python's path but wasn't installed, as with a
    Spark that somebody unpacked; CannotMeasure if it isn't there.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise CannotMeasure(
            "Spark",
            "it needs pyspark, which isn't installed: `pip install -r requirements-cluster.txt`"
            " brings it",
        )
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return "yes"


def require_java() -> str:
    """The version of the Java that Spark would take; CannotMeasure if it is none or too old."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = None
    with contextlib.suppress(OSError):
        told = subprocess.run([program or "", "-version"], capture_output=True, text=True).stderr
        # before Java 9 the number was behind a one and a dot
        found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', told)
    if found is None or int(found[2]) < JAVA:
        here = f"the one here is {found[1]}" if found else "there is none here"
        raise CannotMeasure(
            "Java",
            f"Spark needs Java {JAVA} or later, and {here}; on Debian and Ubuntu `apt install"
            " default-jre-headless` brings it, and elsewhere JAVA_HOME names it",
        )
    return found[1]


class Spark(Closing):
    """An application with so many executors of one core each; use it in a `with` block.

    master: the address of a cluster (spark://host:port, yarn, k8s://...); empty for one of our own.
    storage: a folder that driver and executors can write (s3a://..., hdfs://..., file:///...), in
        which a folder of our own is made and removed again; empty for our scratch on this machine.

    All of them work until `use` says otherwise. The start takes some seconds; `version` or any
    other use waits until the executors are there.
    ServerError where the cluster can't be reached or gives no executors.
    """

    def __init__(self, executors: int, master: str = "", storage: str = ""):
        if master:
            _require_reachable(master)
        require(0 if master else executors)
        self.executors, self.own = executors, not master
        self._working = 0
        self._home = PrivateDirectory(base_directory())
        self._log = self._home.path / "driver.log"
        own = f"{storage.rstrip('/')}/pgrerun-{secrets.token_hex(4)}"
        self.storage = own if storage else f"file://{self._home.path}/storage"
        self._borrowed = bool(storage)
        self._process = self._start()
        settings = self._settings(master)
        self._write({"settings": settings, "executors": executors, "patience": _PATIENCE})
        self._version = ""

    @property
    def pid(self) -> int:
        """The driver's process."""
        return self._process.pid

    @property
    def version(self) -> str:
        """Spark's version; waits for the executors."""
        if not self._version:
            [[self._version]] = self._read("Spark did not start")
        return self._version

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement of Spark's SQL and fetch everything that it returns."""
        return [tuple(row) for row in self._ask({"sql": sql})]

    def load(self, relation: Wisconsin) -> None:
        """Have the executors make a relation and store it as Parquet, replacing an earlier one."""
        self.execute(f"DROP TABLE IF EXISTS {relation.name}")
        made = wisconsin_sql(relation, partitions=self.executors)
        self.execute(f"CREATE TABLE {relation.name} USING parquet AS {made}")

    def use(self, executors: int) -> None:
        """Leave the work to so many executors from now on; the others are kept by tasks that sleep.

        Queries are planned for so many. At once if it is so already.
        """
        if executors != self._working:
            self._ask({"working": executors})
            self._working = executors

    def bytes(self, name: str) -> int:
        """Size of a table's files."""
        [[size]] = self._ask({"bytes": f"{self.storage}/{name}"})
        return int(size)

    def moved(self) -> int:
        """Bytes that executors have written for each other since the start."""
        [[size]] = self._ask({"moved": True})
        return int(size)

    def close(self) -> None:
        """End driver and executors and remove what they stored. Safe to repeat."""
        try:
            if self._borrowed and self._version and self._process.poll() is None:
                self._ask({"remove": self.storage})
        finally:
            self._end()
            self._home.close()

    # ---- inside --------------------------------------------------------------------

    def _start(self) -> subprocess.Popen[str]:
        folder = self._home.path
        spec = importlib.util.find_spec("pyspark")
        package = Path(str(spec and spec.origin)).parent
        home = folder / "home"
        home.mkdir()
        for name in ("bin", "jars"):  # a home of its own, as workers write into it
            (home / name).symlink_to(package / name)
        (folder / "scratch").mkdir()
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")
        }
        environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(folder / "scratch")}
        if self.own:
            environment |= {"SPARK_LOCAL_IP": _LOOPBACK, "SPARK_CONF_DIR": str(home)}
        with self._log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("driver.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=folder,
                start_new_session=True,  # Ctrl-C is ours to tell it
            )

    def _settings(self, master: str) -> dict[str, str]:
        # verifying classes, which are pyspark's own, takes a fifth of a short run's processor time
        options = (
            f"-Djava.io.tmpdir={self._home.path}/scratch -XX:-UsePerfData"
            " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
        )
        # a driver only plans, and the better compiler would take cores from the executors for
        # longer than any of its plans lasts
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        settings = {
            "spark.executor.cores": "1",
            "spark.driver.memory": f"{DRIVER}m",
            "spark.driver.extraJavaOptions": f"{options} {quick}",
            "spark.sql.warehouse.dir": self.storage,
            "spark.ui.enabled": "false",
            "spark.ui.liveUpdate.period": "0",  # counts of executors are never older than a task
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }
        if not self.own:
            return settings | {
                "spark.master": master,
                "spark.cores.max": str(self.executors),
                "spark.executor.instances": str(self.executors),
            }
        return settings | {
            "spark.master": f"local-cluster[{self.executors},1,{EXECUTOR}]",
            "spark.executor.memory": f"{EXECUTOR}m",
            # one core is one core, for its garbage collection and compiler, too
            "spark.executor.extraJavaOptions": f"{options} -XX:ActiveProcessorCount=1",
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.host": _LOOPBACK,
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
        }

    def _ask(self, what: dict[str, Any]) -> list[list[Any]]:
        assert self.version
        self._write(what)
        return self._read("Spark could not do what it was asked")

    def _write(self, what: dict[str, Any]) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # whoever reads next says what happened
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()

    def _read(self, failed: str) -> list[list[Any]]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise ServerError(
                f"{failed}: its driver ended. The last it wrote: {self._last_words()}"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ServerError(f"{failed}: {answer['error']}")
        rows: list[list[Any]] = answer["rows"]
        return rows

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        return " / ".join([line.strip() for line in lines if line.strip()][-3:])[:600] or "nothing"

    def _end(self) -> None:
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=15)
        # the process group is ours: JVM and executors that haven't noticed are in it
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()


def _require_reachable(master: str) -> None:
    """ServerError unless somebody listens at one of a standalone cluster's addresses.

    Spark itself would try for a minute before it gives up.
    """
    if not master.startswith("spark://"):
        return
    reasons = []
    for place in master.removeprefix("spark://").split(","):
        try:
            found = urlsplit(f"//{place}")
            with socket.create_connection((found.hostname or "", found.port or 7077), timeout=5):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise ServerError(
        f"No master of a Spark cluster answers at {master} ({'; '.join(reasons)}). Check the host"
        " and the port (7077 unless it was set otherwise) and that the master runs; leave `spark`"
        " empty to start executors on this machine."
    )
