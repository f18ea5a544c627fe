"""Chapter `hot`: the first results of heap-only tuples (HOT), mail thread of March 2007."""
