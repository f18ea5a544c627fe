-- An index whose mark is taken away is what a CREATE INDEX that knows nothing of it would leave.
WITH index AS (SELECT *, server = 'hot' AS hot, mark = 'as made' AS as_made FROM broken_chains_then)
SELECT 'the CREATE INDEX of HOT marks an index over broken chains, and that of before doesn''t' AS fact,
       bool_and(marked = hot) AS so, true AS essential
FROM index WHERE as_made
UNION ALL
SELECT 'on the commit with HOT old snapshots are kept from it', NOT old_uses AND old_finds, true
FROM index WHERE hot AND as_made
UNION ALL
SELECT 'without the mark an old snapshot doesn''t find its version by it',
       old_uses AND NOT old_finds, true
FROM index WHERE hot AND NOT as_made
UNION ALL
SELECT 'on the commit before HOT an old snapshot finds its version by such an index',
       old_uses AND old_finds, false
FROM index WHERE NOT hot
