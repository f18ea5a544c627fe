-- name: updated
CREATE TABLE updated (id int PRIMARY KEY, n int) WITH (fillfactor = 20);

-- name: fill_updated
INSERT INTO updated SELECT id, 0 FROM generate_series(1, :rows) AS id;
VACUUM ANALYZE updated;

-- name: positions
-- up to where the WAL is inserted, and up to where it is on the disk
SELECT pg_current_xlog_insert_location(), pg_current_xlog_location();

-- name: hints
-- versions of rows, and those of which no hint tells how a transaction ended that made or left them
SELECT count(*),
       sum(CASE WHEN (item).t_infomask & 768 = 0 OR (item).t_infomask & 3072 = 0 THEN 1 ELSE 0 END)
FROM (SELECT heap_page_items(get_raw_page('updated', page::int)) AS item
      FROM generate_series(0, pg_relation_size('updated') / 8192 - 1) AS page) AS pages
WHERE (item).lp_flags = 1;
