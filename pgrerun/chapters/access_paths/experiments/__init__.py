"""What the chapter measures, a module for each thing."""
