"""What the chapter measures, a module for each piece of the talk's advice."""
