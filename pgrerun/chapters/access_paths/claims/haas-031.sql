-- Still there if the map is wrong after a crash, or the WAL lacks a change of it.
SELECT (SELECT bool_or(wrong_visible > 0 OR wrong_frozen > 0 OR differing > 0) FROM crashes)
    OR (SELECT bool_or(records < bits) FROM logged) AS still_there
