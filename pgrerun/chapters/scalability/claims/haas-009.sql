SELECT 'a virtual transaction''s lock is on the fast path' AS fact, fastpath AS so, true AS essential
FROM virtual_transactions WHERE state = 'nobody waits for the transaction'
UNION ALL SELECT 'who waits for it moves it into the lock table', NOT fastpath, false
FROM virtual_transactions WHERE state = 'CREATE INDEX CONCURRENTLY waits for it'
