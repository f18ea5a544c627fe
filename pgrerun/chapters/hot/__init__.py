"""Chapter `hot`: the first results of heap-only tuples (HOT), mail thread of March 2007.

`bank.py` has the thread's relations and the arms with and without HOT, `chain.py` a page
drawn line pointer by line pointer, `ways.py` what keeps an update from being HOT,
`growth.py` sizes after many updates and their theory, `budget.py` what an update costs,
`speed.py` throughput, `worries.py` what the thread feared; `drawn.py` draws, `words.py`
says what only this chapter says.
"""

from pgrerun.chapters.hot import bank, budget, chain, drawn, growth, speed, ways, words, worries

__all__ = ["bank", "budget", "chain", "drawn", "growth", "speed", "ways", "words", "worries"]
