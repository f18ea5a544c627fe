"""What this machine, and a server by URL, can measure, and what each missing thing costs.

Only looks: no experiment runs. A claim names the capabilities that it can't do without in
the ledger's column `needs`, in the words of `Server.require` and of the instruments.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab import server, spark
from pgrerun.lab.instruments import callgrind, machine, perf
from pgrerun.lab.server import builds, fetched
from pgrerun.lab.server.private import base_directory, unnamed_account
from pgrerun.record.claims import ledger
from pgrerun.site import printing

_OF_A_SERVER = ("restart", "superuser", "checkpoint", "files", "processes", "jit", "pgbench")
REFUSED = "refused"
"""What a finding is called that keeps all experiments from a server."""


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `capability` is what claims call it, "" for what no claim can need."""

    what: str
    found: str
    capability: str = ""
    missing: bool = False

    @property
    def claims(self) -> list[str]:
        """Claims that are set aside because it is missing."""
        if not self.missing:
            return []
        return [claim.id for claim in ledger().values() if self.capability in claim.capabilities]


def examine(address: str = "") -> list[Finding]:
    """Look at this machine, and with `address` at that server instead of the programs installed
    here.
    """
    of_server = list(_borrowed(address)) if address else list(_programs())
    findings = [*of_server, *_instruments(), *of_cluster(), *_hardware()]
    unknown = sorted(_needed() - {finding.capability for finding in findings})
    return findings + [Finding(need, "not looked for", need) for need in unknown]


def _programs() -> Iterator[Finding]:
    """The PostgreSQL programs of this host. Our own clusters restart and are superuser's."""
    bundled, installed = _bundled(), server.installed()
    lacking = "" if bundled or installed else "no programs"
    if os.geteuid() != 0:
        lacking = lacking or unnamed_account() or ""
    yield Finding("a server to restart", lacking or "yes", "restart", missing=bool(lacking))
    yield Finding(
        "PostgreSQL from pip",
        f"{bundled.version} in {bundled.bindir}" if bundled else "none",
        missing=not bundled,
    )
    for programs in installed:
        yield Finding("PostgreSQL installed", f"{programs.version} in {programs.bindir}")
    yield Finding(
        "PostgreSQL fetched",
        ", ".join(release.version for release in fetched.here()) or "none (`pgrerun releases`)",
    )
    yield Finding(
        "builds registered",
        ", ".join(builds.registered()) or "none (`pgrerun releases`)",
    )
    everything = [*([bundled] if bundled else []), *installed]
    able = [f"{programs.version} in {programs.bindir}" for programs in everything if programs.jit]
    yield Finding(
        "JIT compilation",
        "; ".join(able) or "no release here brings llvmjit",
        "jit",
        missing=not able,
    )
    if bundled:
        yield Finding("contrib", ", ".join(sorted(bundled.contrib)))
        for name in sorted(_contrib_needed()):
            there = name in bundled.contrib
            yield Finding(
                f"contrib {name}",
                "yes" if there else "not brought by pip",
                f"contrib:{name}",
                missing=not there,
            )


def _bundled() -> server.Programs | None:
    try:
        return server.bundled()
    except ServerError:
        return None


def _borrowed(address: str) -> Iterator[Finding]:
    where, seen = server.look(address)
    yield Finding("PostgreSQL", where)
    for what, found in seen.remarks.items():
        yield Finding(what, found)
    for obstacle in seen.obstacles:
        yield Finding(REFUSED, obstacle)
    if seen.obstacles:
        return
    with server.open_server(address) as borrowed:
        for capability in (
            *_OF_A_SERVER,
            *(f"contrib:{name}" for name in sorted(_contrib_needed())),
        ):
            reason = borrowed.missing(capability)
            what = capability.replace(":", " ")
            yield Finding(
                what, f"no: {reason}" if reason else "yes", capability, missing=bool(reason)
            )


def _needed() -> set[str]:
    return {capability for claim in ledger().values() for capability in claim.capabilities}


def _contrib_needed() -> set[str]:
    return {
        name
        for kind, _, name in (capability.partition(":") for capability in _needed())
        if kind == "contrib"
    }


def _instruments() -> Iterator[Finding]:
    for name, instrument in (("callgrind", callgrind), ("perf", perf)):
        reason = instrument.unavailable()
        yield Finding(name, reason or "yes", name, missing=reason is not None)
    there = shutil.which("objdump")
    yield Finding(
        "objdump",
        there or "not installed (Debian's package is `binutils`)",
        "objdump",
        missing=not there,
    )
    counters = _hardware_counters()
    found = "yes" if counters else "no, so instructions are counted by callgrind"
    yield Finding("hardware counters", found, "hardware counters", missing=not counters)


def of_cluster() -> Iterator[Finding]:
    """What the chapter on a cluster starts executors with."""
    for capability, look in (("Spark", spark.require_pyspark), ("Java", spark.require_java)):
        try:
            yield Finding(f"{capability}, for a cluster", look(), capability)
        except CannotMeasure as reason:
            yield Finding(f"{capability}, for a cluster", str(reason), capability, missing=True)


def _hardware_counters() -> bool:
    """Whether perf can count instructions: virtual machines often have no counters to give."""
    if perf.unavailable():
        return False
    command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    return (
        done.returncode == 0
        and "not supported" not in done.stderr
        and "not counted" not in done.stderr
    )


def _hardware() -> Iterator[Finding]:
    place = base_directory()
    host = machine.describe(place)
    yield Finding(
        "processors", f"{host['cpus_usable']} usable of {host['cpus']}, {host['cpu_model']}"
    )
    yield Finding("memory", f"{host['memory_bytes'] / 2**30:.1f} GiB")
    filesystem = host["filesystem"] or {"type": "unknown"}
    yield Finding("filesystem of clusters", f"{filesystem['type']} at {place}")
    direct = machine.direct_io(place)
    yield Finding("direct I/O there", "yes" if direct else "no", "direct I/O", missing=not direct)
    flush = host["fdatasync_8k_seconds"]
    words = "not measurable" if flush is None else f"{flush * 1e3:.2f} ms"
    if flush is not None and flush < 5e-5:
        words += ", so it is memory or doesn't wait: set PGRERUN_TMPDIR to a folder on a disk"
    yield Finding("flushing 8 kB (fdatasync)", words)
    yield Finding(
        "Chromium, for tests of the pages", printing.browser() or "none: those tests are skipped"
    )
