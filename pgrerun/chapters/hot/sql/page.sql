-- Four rows so wide that seven versions fill a page; v isn't indexed, w is.

-- name: page
CREATE TABLE page (id int PRIMARY KEY, v int, w int, pad text)
    WITH (autovacuum_enabled = off, fillfactor = 100);
ALTER TABLE page ALTER pad SET STORAGE PLAIN;
CREATE INDEX page_w ON page (w);
INSERT INTO page SELECT n, 1, 0, repeat('x', :width) FROM generate_series(1, 4) AS n;

-- name: page_then
-- The same for PostgreSQL 8.3, whose tables can't be kept from autovacuum one by one.
CREATE TABLE page (id int PRIMARY KEY, v int, w int, pad text) WITH (fillfactor = 100);
ALTER TABLE page ALTER pad SET STORAGE PLAIN;
CREATE INDEX page_w ON page (w);
INSERT INTO page SELECT n, 1, 0, repeat('x', :width) FROM generate_series(1, 4) AS n;

-- name: update
UPDATE page SET v = v + 1 WHERE id = :row;

-- name: update_indexed
UPDATE page SET v = v + 1, w = w + 1 WHERE id = :row;

-- name: update_wide
UPDATE page SET v = v + 1, pad = repeat('x', :width) WHERE id = :row;

-- name: select
SELECT * FROM page WHERE id = :row;

-- name: vacuum
VACUUM page;

-- name: pin
DECLARE holding CURSOR FOR SELECT * FROM page;
FETCH holding;

-- name: tuples
-- "A v2"; id and v are below 256, so any byte order will do
SELECT coalesce(chr(64 + get_byte(t_data, 0) + get_byte(t_data, 3))
                || ' v' || get_byte(t_data, 4) + get_byte(t_data, 7), '')
FROM heap_page_items(get_raw_page('page', 0)) ORDER BY lp;

-- name: upper
SELECT upper FROM page_header(get_raw_page('page', 0));

-- name: entries
-- line pointers of page 0 to which the primary key's only leaf leads
SELECT (tid::text::point)[1]::int
FROM bt_page_items('page_pkey', 1) AS item,
     LATERAL unnest(coalesce(item.tids, ARRAY[item.htid])) AS tid
WHERE (tid::text::point)[0] = 0;

-- name: locks
SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'page'::regclass;

-- name: narrow
CREATE TABLE narrow (id int PRIMARY KEY, v int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO narrow SELECT n, 0, repeat('x', 84) FROM generate_series(1, :rows) AS n;

-- name: narrow_then
CREATE TABLE narrow (id int PRIMARY KEY, v int, pad text);
INSERT INTO narrow SELECT n, 0, repeat('x', 84) FROM generate_series(1, :rows) AS n;

-- name: update_narrow
UPDATE narrow SET v = v + 1 WHERE id = 1;

-- name: free
SELECT upper - lower FROM page_header(get_raw_page('narrow', 0));

-- name: versions
SELECT count(*) FROM heap_page_items(get_raw_page('narrow', 0)) WHERE lp_flags = 1;
