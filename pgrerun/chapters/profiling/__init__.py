"""Chapter `profiling`: where the 1990 report found POSTGRES's cycles, and where PostgreSQL's instructions go.

Sections 2.2 and 3.1, Figures 3.1 to 3.10. Counts and samples go into the chapter's run; tables,
charts and evidence are read back from there, or from the published run where this one lacks the tool.

`queries.py` has the two query sets, `counted.py` instructions by routine, `breakdown.py` the way from
routine to subsystem, `attributes.py` fetching an attribute, `rules.py` rules that concern nobody,
`checks.py` validity checks, `ladder.py` bookkeeping switched off step by step, `judged.py` what the profiles say about the claims; `drawn.py` draws,
`words.py` says what only this chapter says.
"""

from pgrerun.chapters.profiling import attributes, breakdown, checks, commands, counted, drawn, judged, ladder, queries, rules, sampled, words

__all__ = ["attributes", "breakdown", "checks", "commands", "counted", "drawn", "judged", "ladder", "queries", "rules", "sampled", "words"]
