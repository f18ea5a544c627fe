"""What is run: times and counts of the queries, on today's engines and on those of then."""
