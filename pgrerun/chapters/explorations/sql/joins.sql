-- Experiment 4.

-- name: join
SELECT * FROM :"small" T1 JOIN :"large" T2 ON T1.:"of_small" = T2.:"of_large";

-- name: counted_join
-- Counts tuples, so that none has to be sent.
SELECT count(T1), count(T2) FROM :"small" T1 JOIN :"large" T2 ON T1.:"of_small" = T2.:"of_large";
