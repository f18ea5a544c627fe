"""Chapter `uuid_keys`: the worked example of a chapter of one's own."""
