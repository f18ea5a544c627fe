-- name: copied
CREATE TABLE scaling_copied (id int, words text);

-- name: copy
COPY scaling_copied FROM STDIN;

-- name: single_inserts
DO $$ BEGIN FOR i IN 1..:rows LOOP
    INSERT INTO scaling_copied VALUES (i, 'some words');
END LOOP; END $$;

-- name: insert_records
SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 200)))
FROM generate_series(1, :records);
