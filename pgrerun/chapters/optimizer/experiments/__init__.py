"""What the chapter measures: a module for each set of tests, the faults, and section 4."""
