"""The library that the notebooks speak; import its modules by name, so that each costs only itself."""
