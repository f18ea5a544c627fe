SELECT 'readers don''t wait for each other' AS fact, bool_and(granted) AS so, true AS essential
FROM weak_and_strong WHERE state = 'two readers'
UNION ALL SELECT 'an ALTER waits for a reader', NOT bool_and(granted), true
FROM weak_and_strong WHERE state = 'a reader and an ALTER'
UNION ALL SELECT 'a DROP waits for a reader', NOT bool_and(granted), true
FROM weak_and_strong WHERE state = 'a reader and a DROP'
UNION ALL SELECT 'a reader and a writer don''t wait for each other', bool_and(granted), true
FROM weak_and_strong WHERE state = 'a reader and a writer'
UNION ALL SELECT 'their locks are on the fast path', bool_and(fastpath), false
FROM weak_and_strong WHERE state IN ('two readers', 'a reader and a writer')
UNION ALL SELECT 'the DROP has moved the reader''s lock into the lock table', NOT bool_or(fastpath), false
FROM weak_and_strong WHERE state = 'a reader and a DROP'
