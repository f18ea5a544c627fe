"""Chapter `profiling`: where the 1990 report found POSTGRES's cycles, and where PostgreSQL's
instructions go. Sections 2.2 and 3.1, Figures 3.1 to 3.10.

`queries` has the two query sets, `subsystems` the way from routine to subsystem, `drawings` the
flame graphs.
"""
