"""Chapter `scalability`: many clients at once, from the 2012 talk on PostgreSQL 9.2.

`load` has the servers, pgbench's relations and the loads that all experiments share.
"""
