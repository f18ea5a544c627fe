SELECT warnings <> '' OR NOT (old_finds AND new_finds) AS still_there
FROM broken_chains WHERE old_snapshot
