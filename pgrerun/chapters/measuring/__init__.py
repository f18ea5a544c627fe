"""Chapter `measuring`: how to run a benchmark, from the last minutes of the 2012 talk."""
