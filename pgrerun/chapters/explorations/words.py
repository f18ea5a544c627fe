"""Sentences that only this chapter says; judgements are put into words by `narrate`."""
