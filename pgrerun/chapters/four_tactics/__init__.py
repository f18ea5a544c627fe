"""Chapter `four_tactics`: the memorandum of 1981 on making INGRES faster.

`experiments/ingres.py` runs its benchmark on University INGRES 6.3, `experiments/simulated_disk.py`
times the pages that this asks for on a simulated disk. The others ask PostgreSQL and the machine
what became of each tactic: `compilation`, `microcode`, `reading` (of files) and `operating_system`.
`sql/` is what PostgreSQL runs.
"""
