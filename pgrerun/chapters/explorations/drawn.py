"""The charts of the chapter: frames from the print, the published run and this run, and their words."""
