"""What is measured, a module for each of the slides' experiments or each thing that is watched.

`buffer_pool` is Experiment 1: times, what its reader writes, who else writes and when.
`clock_sweep` is about which pages stay. `planner` is Experiments 2 and 4, the groupings and joins
picked as work_mem grows, `size_up` is Experiment 3; `by_release` sets releases side by side.
"""
