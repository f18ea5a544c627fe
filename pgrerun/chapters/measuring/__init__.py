"""Chapter `measuring`: how to run a benchmark, from the last minutes of the 2012 talk, tested as claims.

`load.py` has the loads that everything is tried on, `twins.py` runs that don't differ and planted
differences of known size, `repeats.py` how many runs it takes, `steadiness.py` throughput over time,
`watching.py` what logs and profilers cost, `sleeping.py` profiles of backends that wait, `artificial.py`
pgbench beside a paced load, `axes.py` several measures of the same thing, `reasons.py` a fix that works
for another reason and a general mechanism beside a specific one; `drawn.py` draws, `words.py` says what
only this chapter says.
"""

from pgrerun.chapters.measuring import artificial, axes, drawn, load, reasons, repeats, sleeping, steadiness, twins, watching, words

__all__ = ["artificial", "axes", "drawn", "load", "reasons", "repeats", "sleeping", "steadiness", "twins", "watching", "words"]
