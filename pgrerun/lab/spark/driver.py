"""The driver of a Spark application, told what to do line by line; run as a program of its own.

Standard input has a JSON object on each line, standard output an answer for each: {"rows": [...]},
or {"error": "..."}. The first line is the configuration. It ends with its standard input, that is
with whoever started it, however that one ended; and with it end the JVM and the executors, which
have lost their driver. It imports nothing of this package: it starts with pyspark alone.
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # kept from whatever else writes there
    for answer in _answers():
        print(answer, file=answers, flush=True)


def _answers() -> Iterator[str]:
    try:
        from pyspark.sql import SparkSession

        given = json.loads(sys.stdin.readline())
        builder = SparkSession.builder.appName("pgrerun")
        for name, value in given["settings"].items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        wanted, patience = given["executors"], given["patience"]
        there = lambda: len(_executors(session)) >= wanted
        _await(there, patience, f"no {wanted} executors came")
    except Exception as error:
        yield _failed(error)
        return
    yield json.dumps({"rows": [[session.version]]})
    others = _Others(session, wanted, patience)
    for line in sys.stdin:
        try:
            answer = json.dumps({"rows": _carry_out(session, others, json.loads(line))})
        except Exception as error:
            answer = _failed(error)
        yield answer
    session.stop()


def _failed(error: Exception) -> str:
    words = str(error).strip() or type(error).__name__
    return json.dumps({"error": words.splitlines()[0][:500]})


class _Others:
    """Keeps executors of one core from work: each of them has a task that sleeps.

    So the same application, with executors that are as warm, runs on fewer of them, and no cluster
    has to have room for a second one.
    """

    GROUP = "others"
    SLEEP = (
        "SELECT java_method('java.lang.Thread', 'sleep', id + 2147483647L)"
        " FROM range(0, {n}, 1, {n})"
    )

    def __init__(self, session: Any, executors: int, patience: float):
        self._session, self._executors, self._patience = session, executors, patience
        self._sleeping: threading.Thread | None = None

    def leave(self, working: int) -> None:
        """Have so many executors at work from now on, and queries planned for so many."""
        if self._sleeping:
            self._session.sparkContext.cancelJobGroup(self.GROUP)
            self._sleeping.join()
            self._await_tasks(0)
            self._sleeping = None
        for setting in ("spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism"):
            self._session.conf.set(setting, working)
        if kept := self._executors - working:
            self._sleeping = threading.Thread(target=self._sleep, args=(kept,), daemon=True)
            self._sleeping.start()
            self._await_tasks(kept)

    def _sleep(self, kept: int) -> None:
        self._session.sparkContext.setJobGroup(self.GROUP, self.GROUP, interruptOnCancel=True)
        with contextlib.suppress(Exception):  # that it was cancelled
            self._session.sql(self.SLEEP.format(n=kept)).collect()

    def _await_tasks(self, wanted: int) -> None:
        _await(
            lambda: sum(one.activeTasks() for one in _executors(self._session)) == wanted,
            self._patience,
            f"{wanted} executors could not be kept from work",
        )


def _await(there: Callable[[], bool], patience: float, failed: str) -> None:
    until = time.monotonic() + patience
    while not there():
        if time.monotonic() > until:
            raise TimeoutError(f"{failed} within {patience:g} s")
        time.sleep(0.02)


def _executors(session: Any) -> list[Any]:
    listed = session._jsc.sc().statusStore().executorList(True)
    found = [listed.apply(place) for place in range(listed.size())]
    return [one for one in found if one.id() != "driver"]


def _carry_out(session: Any, others: _Others, asked: dict[str, Any]) -> list[list[Any]]:
    if place := asked.get("bytes") or asked.get("remove"):
        path = session._jvm.org.apache.hadoop.fs.Path(place)
        files = path.getFileSystem(session._jsc.hadoopConfiguration())
        if "remove" in asked:
            return [[files.delete(path, True)]]
        return [[files.getContentSummary(path).getLength()]]
    if "working" in asked:
        others.leave(asked["working"])
        return []
    if "moved" in asked:
        session._jsc.sc().listenerBus().waitUntilEmpty()  # counts follow the tasks' ends
        return [[sum(one.totalShuffleWrite() for one in _executors(session))]]
    return [list(row) for row in session.sql(asked["sql"]).collect()]


if __name__ == "__main__":
    main()
