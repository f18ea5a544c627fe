-- name: cluster
CLUSTER accounts USING accounts_pkey;

-- name: vacuum_full
VACUUM FULL accounts;
