"""What the chapter measures, and what it simulates: a module for each part of the document."""
