"""The verbs of single chapters: what a notebook cell calls when six lines are not enough.

A module per chapter. It says which variants an experiment has and reads its own observations
back as frames for charts; measuring, recording and judging are the rooms' below.
"""
