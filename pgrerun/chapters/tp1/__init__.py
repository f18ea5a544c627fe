"""Chapter `tp1`: the transaction of the 1990 report, counted in pages. Sections 2.2, 2.3, 3.2.2, 4.

`variants` has the report's relations and the rungs of its ladder, `experiments` what is measured.
"""
