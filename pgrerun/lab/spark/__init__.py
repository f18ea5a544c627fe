"""Spark as something to compare with: executors in processes of their own, Parquet, SQL.

`session.py` starts a driver and talks to it, `driver.py` is that driver, `relations.py` has the
Wisconsin relations made inside the engine. Neither pyspark nor Java is needed to import any of it:
`require` says what is missing.
"""

from pgrerun.lab.spark.relations import wisconsin_sql
from pgrerun.lab.spark.session import Spark, require, require_java, require_pyspark, spark_sql

__all__ = ["Spark", "require", "require_java", "require_pyspark", "spark_sql", "wisconsin_sql"]
