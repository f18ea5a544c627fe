"""Chapter `optimizer`: the three sets of optimizer tests of the 1990 report, and its suggestions.

`queries.py` has the report's queries and their relations, `variants.py` forces a plan, puts a fault
of 1990 back or tells wrong statistics. What is run stands in `sql/`.
"""
