"""What claims are judged by, made of what was measured; a module as in `experiments`."""

from pgrerun.chapters.optimizer.evidence import estimates, joins, scans, suggestions

__all__ = ["estimates", "joins", "scans", "suggestions"]
