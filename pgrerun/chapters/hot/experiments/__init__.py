"""What the chapter measures, a module for each part of the thread."""
