"""What the measurements of chapter `four_tactics` say about its claims."""

from pgrerun.chapters.four_tactics.evidence import (
    compilation,
    compilation_today,
    files,
    microcode,
    operating_system,
    tactics,
)

__all__ = [
    "compilation",
    "compilation_today",
    "files",
    "microcode",
    "operating_system",
    "tactics",
]
