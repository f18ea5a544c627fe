// A page opened from a folder may not fetch its neighbours, which Sphinx's search does
// for the excerpts under its results. Titles and links come from the index and remain.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
