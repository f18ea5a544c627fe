"""Chapter `wisconsin`: the Wisconsin benchmark of the 1990 report, sections 2.3 and 3.2.1.

`queries.toml` has the 32 queries in POSTQUEL, which `queries.py` fills in; `contenders.py` has who
runs them.
"""
