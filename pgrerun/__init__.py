"""The library that the notebooks speak."""
