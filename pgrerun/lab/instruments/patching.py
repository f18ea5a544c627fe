"""A copy of a server program in which one routine always gives the same answer.

What would happen without a check? Where the check is a routine of its own, its code can be replaced
by one that returns at once, without compiling anything. The copy lives in a private directory; the
installed program is only read.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import symbols
from pgrerun.lab.server import Programs, private

X86_64, AARCH64 = 62, 183  # ELF e_machine


def machine_code(machine: int, answer: int) -> bytes:
    """Machine code of `return answer;` by both platforms' calling conventions.

    0 <= answer < 65536.
    """
    if machine == X86_64:  # mov eax, answer; ret
        return b"\xb8" + struct.pack("<I", answer) + b"\xc3"
    if machine == AARCH64:  # movz w0, answer; ret
        return struct.pack("<II", 0x52800000 | answer << 5, 0xD65F03C0)
    raise CannotMeasure("symbols", "a routine can be replaced on x86-64 and AArch64 only")


@contextmanager
def answering(programs: Programs, routine: str, answer: int) -> Iterator[Path]:
    """A `postgres` in which `routine` returns `answer` and does nothing else.

    CannotMeasure for a program that is stripped, has no such routine or runs on another
    platform.
    """
    who = private.account()
    original = private.reachable(programs.path("postgres"), who)
    offset = symbols.file_offset(original, routine)
    image = bytearray(original.read_bytes())
    (machine,) = struct.unpack_from("<H", image, 0x12)
    code = machine_code(machine, answer)
    image[offset : offset + len(code)] = code
    with private.PrivateDirectory(private.base_directory(), who) as home:
        folder = home.folder("bin")
        folder.chmod(0o755)
        program = folder / original.name
        program.write_bytes(image)
        program.chmod(0o755)
        for part in ("lib", "lib64", "share"):  # it finds its installation's files beside itself
            if (original.parent.parent / part).is_dir():
                (home.path / part).symlink_to(original.parent.parent / part)
        yield program
