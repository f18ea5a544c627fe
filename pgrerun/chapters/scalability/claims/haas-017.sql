-- One of the big ones is waited for by one transaction in a hundred, and at least as often as any lock of
-- which the talk says nothing.
WITH asked AS (
    SELECT build, commit_log >= 10 AND commit_log >= any_other AS so
    FROM writer_contention WHERE accounts <> 'as loaded'
)
SELECT 'with rows of half an hour of transactions the commit log is waited for once in a hundred at least, and no less often than any lock that the talk doesn''t name, in '
           || left(build, 3) AS fact,
       CASE WHEN bool_and(so) THEN true WHEN NOT bool_or(so) THEN false END AS so, build LIKE '9.1%' AS essential
FROM asked GROUP BY build ORDER BY build
