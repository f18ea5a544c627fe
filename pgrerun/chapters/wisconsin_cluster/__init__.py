"""Chapter `wisconsin_cluster`: three Wisconsin questions on Spark, DuckDB and PostgreSQL.

The queries are those of the chapter `wisconsin`, and so is the POSTQUEL that they are written in;
the engine is `pgrerun.lab.spark`.
"""

from pgrerun.chapters.wisconsin_cluster import charts, evidence, experiments, sentences

__all__ = ["charts", "evidence", "experiments", "sentences"]
