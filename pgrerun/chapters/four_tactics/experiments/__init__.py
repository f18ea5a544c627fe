"""What chapter `four_tactics` measures: modules per tactic, as in 1981 and as today."""

from pgrerun.chapters.four_tactics.experiments import (
    compilation,
    compilation_today,
    connections,
    files,
    microcode,
    operating_system,
    reading,
)

__all__ = [
    "compilation",
    "compilation_today",
    "connections",
    "files",
    "microcode",
    "operating_system",
    "reading",
]
