-- 8 bytes of header and 4 or 8 of data end at the same multiple of 8; with 12 at the next.
WITH entries AS (
    SELECT max(entry) FILTER (columns = '(aid)') AS one,
           max(entry) FILTER (columns = '(aid, abalance)') AS two,
           max(entry) FILTER (columns = '(aid, bid, abalance)') AS three
    FROM index_sizes
)
SELECT 'entries of one and of two integers have the same length' AS fact, one = two AS so
FROM entries
UNION ALL
SELECT 'the length of an entry is the data''s, aligned', one = 16 AND two = 16 FROM entries
UNION ALL
SELECT 'a third integer makes them longer', three = 24 AND three > two FROM entries
