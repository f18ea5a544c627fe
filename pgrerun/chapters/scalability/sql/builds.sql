-- name: counted
CREATE TABLE counted (aid int PRIMARY KEY, abalance int);

-- name: fill_counted
INSERT INTO counted SELECT n, 0 FROM generate_series(1, :rows) AS n;
VACUUM ANALYZE counted;

-- name: prepare
PREPARE lookup (int) AS SELECT abalance FROM counted WHERE aid = $1;

-- name: lookup
EXECUTE lookup (77);

-- name: look_up
-- each in its own statement of one transaction; neighbours in time are none on the pages
DO $$ DECLARE found int; BEGIN FOR i IN :first..:last LOOP
    SELECT abalance INTO found FROM counted WHERE aid = 1 + i % :rows * 7919 % :rows;
END LOOP; END $$;

-- name: look_up_drawn
-- each in its own statement of one transaction; drawn, so that no session finds what another has just read
DO $$ DECLARE found int; key int; BEGIN FOR i IN 1..:lookups LOOP
    key := 1 + floor(random() * :rows);
    SELECT abalance INTO found FROM counted WHERE aid = key;
END LOOP; END $$;

-- name: waiting
SELECT count(*) FROM pg_stat_activity WHERE waiting;

-- name: backends
SELECT application_name, pid FROM pg_stat_activity;

-- name: pages_read
SELECT blks_read FROM pg_stat_database WHERE datname = current_database();

-- name: inserted
CREATE TABLE inserted (id int);

-- name: insert
INSERT INTO inserted SELECT generate_series(1, :rows);

-- name: dead
CREATE TABLE dead (id int PRIMARY KEY);

-- name: insert_dead
INSERT INTO dead VALUES (:id);

-- name: delete_dead
DELETE FROM dead WHERE id = :id;

-- name: scan_by_index
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN SELECT count(*) FROM dead WHERE id >= 0;

-- name: scan_dead
SELECT count(*) FROM dead WHERE id >= 0;
