"""Chapter `explorations`: the slides on PostgreSQL's buffer manager and planner, about 2020."""
