-- Experiment 3: unique2 has an index, unique3 has none.

-- name: point_query
SELECT * FROM :"relation" WHERE :"attribute" = :key;

-- name: look_up
-- The same so many times within the server, by a plan that is made once.
DO $$ BEGIN FOR i IN 1..:times LOOP
    PERFORM * FROM :"relation" WHERE :"attribute" = :key;
END LOOP; END $$;
