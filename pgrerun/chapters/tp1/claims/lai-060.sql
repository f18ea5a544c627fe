SELECT max(tuples) = 1 AS still_there FROM appended_versions
