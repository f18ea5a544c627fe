"""Chapter `since_when`: claims of all chapters, and what counts, from release to release."""

from pgrerun.chapters.since_when import charts, evidence, experiments, sentences

__all__ = ["charts", "evidence", "experiments", "sentences"]
