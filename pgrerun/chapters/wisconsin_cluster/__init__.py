"""Chapter `wisconsin_cluster`: queries of the Wisconsin benchmark on Spark, DuckDB, PostgreSQL."""
