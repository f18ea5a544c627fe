-- A loop in PL/pgSQL that assigns to elements of an array, and one that assigns to a variable.

-- name: element
DO $$ DECLARE a int[] := array_fill(0, ARRAY[10]); BEGIN
  FOR i IN 1..:times LOOP a[i % 10 + 1] := i; END LOOP; END $$;

-- name: variable
DO $$ DECLARE a int; b int; BEGIN
  FOR i IN 1..:times LOOP a := i % 10 + 1; b := i; END LOOP; END $$;
