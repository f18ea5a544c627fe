"""Shared memory that a killed server left, returned to the machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from functools import cache
from pathlib import Path

_DYNAMIC = "/dev/shm/PostgreSQL."
_HEADER = struct.Struct("=iixxxxxxxxxxxxxxxxI")  # PGShmemHeader: magic, creator, ..., dsm_control
_MAGIC, _DYNAMIC_MAGIC = 679834894, 0x9A503D32  # src/include/storage/pg_shmem.h, ipc/dsm.c


def return_shared_memory(data_directory: Path) -> None:
    """Return the shared memory that a killed server or single-user backend left.

    The lock file in the data directory names its System V segment, whose header names the
    control segment of its dynamic shared memory, which lists the others. Only what nobody is
    attached to any more goes, and only what belongs to the data directory's own account:
    that account can write the lock file, and must gain nothing by it.
    """
    try:
        owner = os.lstat(data_directory).st_uid
        lock = os.open(data_directory / "postmaster.pid", os.O_RDONLY | os.O_NOFOLLOW)
        with open(lock) as file:
            lines = file.read(4096).splitlines()
        names = lines[6] if len(lines) > 6 else lines[2]  # before 9.1 the third line is the last
        creator, (key, segment) = abs(int(lines[0])), map(int, names.split())
        listed = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except (OSError, ValueError, IndexError):
        return
    for line in listed:
        fields = [int(field) for field in line.split()]
        if fields[:2] != [key, segment] or fields[6] != 0 or fields[9] != owner:
            continue  # another one's, or still in use: key, id, attached processes, creator's uid
        header = _shared_header(segment)
        if header is None or header[:2] != (_MAGIC, creator):
            continue
        for part in _dynamic_segments(Path(f"{_DYNAMIC}{header[2]}")):
            with contextlib.suppress(OSError):
                if part.lstat().st_uid == owner:
                    part.unlink()
        _libc().shmctl(segment, 0, None)  # IPC_RMID


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_int
    libc.shmdt.argtypes = (ctypes.c_void_p,)
    libc.shmctl.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    return libc


def _shared_header(segment: int) -> tuple[int, int, int] | None:
    """Magic, creator's process id and dynamic control segment's handle of a server's segment."""
    address = _libc().shmat(segment, None, 0o10000)  # SHM_RDONLY
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        magic, creator, control = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    finally:
        _libc().shmdt(address)
    return magic, creator, control


def _dynamic_segments(control: Path) -> list[Path]:
    """The segments that a server's control segment lists, and that segment itself.

    `dsm_control_header` in PostgreSQL's src/backend/storage/ipc/dsm.c: magic, number of
    items, room for items; each item starts with its handle, whatever the release.
    """
    try:
        content = control.read_bytes()
        magic, used, room = struct.unpack_from("=3I", content)
    except (OSError, struct.error):
        return []
    if magic != _DYNAMIC_MAGIC or not used <= room:
        return []
    size = (len(content) - 16) // room
    handles = [struct.unpack_from("=I", content, 16 + size * item)[0] for item in range(used)]
    return [Path(f"{_DYNAMIC}{handle}") for handle in handles if handle] + [control]
