"""Models for machines that are too old, too slow or too large to be had.

What these compute is *simulated* or *predicted*, never measured, and is labelled so
wherever it is shown.
"""
