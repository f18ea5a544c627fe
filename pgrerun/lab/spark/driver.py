"""The driver of a Spark application, told what to do line by line; run as a program of its own.

Standard input has a JSON object on each line, standard output an answer for each: {"rows": [...]},
or {"error": "..."}. The first line is the configuration. It ends with its standard input, that is
with whoever started it, however that one ended; and with it end the JVM and the executors, which
have lost their driver. It imports nothing of this package: it starts with pyspark alone.
"""

import json
import sys
import time
from typing import Any


def main() -> None:
    answer = _Answers()
    try:
        from pyspark.sql import SparkSession

        given = json.loads(sys.stdin.readline())
        builder = SparkSession.builder.appName("pgrerun")
        for name, value in given["settings"].items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        _await_executors(session, given["executors"], given["patience"])
    except Exception as error:
        answer.error(error)
        return
    answer.rows([[session.version]])
    for line in sys.stdin:
        try:
            answer.rows(_carry_out(session, json.loads(line)))
        except Exception as error:
            answer.error(error)
    session.stop()


class _Answers:
    """Standard output, kept from whatever else writes there."""

    def __init__(self) -> None:
        self._out, sys.stdout = sys.stdout, sys.stderr

    def rows(self, rows: list[list[Any]]) -> None:
        self._send({"rows": rows})

    def error(self, error: Exception) -> None:
        words = str(error).strip() or type(error).__name__
        self._send({"error": words.splitlines()[0][:500]})

    def _send(self, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=self._out, flush=True)


def _await_executors(session: Any, wanted: int, patience: float) -> None:
    until = time.monotonic() + patience
    while (there := len(_executors(session))) < wanted:
        if time.monotonic() > until:
            raise TimeoutError(f"{there} of {wanted} executors came within {patience:g} s")
        time.sleep(0.05)


def _executors(session: Any) -> list[Any]:
    listed = session._jsc.sc().statusStore().executorList(True)
    found = [listed.apply(place) for place in range(listed.size())]
    return [one for one in found if one.id() != "driver"]


def _carry_out(session: Any, asked: dict[str, Any]) -> list[list[Any]]:
    if place := asked.get("bytes") or asked.get("remove"):
        path = session._jvm.org.apache.hadoop.fs.Path(place)
        files = path.getFileSystem(session._jsc.hadoopConfiguration())
        if "remove" in asked:
            return [[files.delete(path, True)]]
        return [[files.getContentSummary(path).getLength()]]
    if "moved" in asked:
        session._jsc.sc().listenerBus().waitUntilEmpty()  # counts follow the tasks' ends
        return [[sum(one.totalShuffleWrite() for one in _executors(session))]]
    return [list(row) for row in session.sql(asked["sql"]).collect()]


if __name__ == "__main__":
    main()
