"""Chapter `since_when`: claims of all chapters, and what counts, from release to release."""
