"""The chapter's experiments.

`instructions` counts the query sets by routine and single commands on attributes and rules;
`checks` counts checks and leaves some out; `samples` samples a live server.
"""
