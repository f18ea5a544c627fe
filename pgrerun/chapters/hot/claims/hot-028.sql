SELECT 'CREATE INDEX marks an index over broken chains' AS fact, marked AS so
FROM broken_chains WHERE old_snapshot
UNION ALL
SELECT 'old snapshots are kept from it', NOT old_uses AND old_finds
FROM broken_chains WHERE old_snapshot
