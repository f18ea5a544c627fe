"""The library that the notebooks speak; import modules by name, so that each costs only itself."""
