"""disk.c as a shared library, compiled once in a process for each base directory."""

import ctypes
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server.binaries import c_compiler
from pgrerun.lab.server.private import PrivateDirectory, account, base_directory


def compiled() -> Path:
    """The library, in a place that the servers' account may enter; gone with this process.

    CannotMeasure without a C compiler, or where what it makes can't be loaded.
    """
    return _compiled(base_directory())


@cache
def _compiled(base: Path) -> Path:
    compiler = c_compiler(
        "a disk is slowed by a small library in C, and there is no compiler to make it"
    )
    place = PrivateDirectory(base, account())
    source, library = place.path / "disk.c", place.path / "disk.so"
    source.write_text(files(__package__).joinpath("disk.c").read_text())
    # Fortified headers would define some of the functions that it defines.
    options = ["-shared", "-fPIC", "-O2", "-U_FORTIFY_SOURCE"]
    command = [compiler, *options, "-o", str(library), str(source), "-ldl", "-lm", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(
            "C compiler",
            f"{compiler} can't make the library that slows a disk: {done.stderr.strip()[-300:]}",
        )
    library.chmod(0o755)
    try:
        ctypes.CDLL(str(library))
    except OSError as error:  # below a directory that nothing is run from, say
        raise CannotMeasure(
            "C compiler", f"the library that slows a disk can't be loaded: {error}"
        ) from None
    return library


@cache
def functions() -> ctypes.CDLL:
    """The library in this process, whose own files it leaves alone: the disk by any clock."""
    library = ctypes.CDLL(str(compiled()))
    integer = ctypes.c_int64
    library.disk_size.restype = ctypes.c_size_t
    library.disk_lateness.restype = integer
    library.disk_make.argtypes = (ctypes.c_void_p,)
    library.disk_forget.argtypes = (ctypes.c_void_p,)
    library.disk_serve.restype = integer
    library.disk_serve.argtypes = (ctypes.c_void_p, ctypes.c_int, integer, integer)
    return library


@cache
def lateness() -> int:
    """Nanoseconds that this machine wakes a sleeper too late, at most 0.2 ms."""
    return min(int(functions().disk_lateness()), 200_000)
