-- name: one_use
SELECT count(*) FROM tenk1 WHERE :"attribute" < 0;

-- name: uses_1
SELECT count(*) FROM tenk1 WHERE even < -1;

-- name: uses_2
SELECT count(*) FROM tenk1 WHERE even < -1 OR even < -2;

-- name: uses_3
SELECT count(*) FROM tenk1 WHERE even < -1 OR even < -2 OR even < -3;

-- name: uses_5
SELECT count(*) FROM tenk1
WHERE even < -1 OR even < -2 OR even < -3 OR even < -4 OR even < -5;

-- name: uses_9
SELECT count(*) FROM tenk1
WHERE even < -1 OR even < -2 OR even < -3 OR even < -4 OR even < -5
    OR even < -6 OR even < -7 OR even < -8 OR even < -9;
