"""Chapter `access_paths`: how PostgreSQL 9.2 finds rows, from the talk of 2012."""
