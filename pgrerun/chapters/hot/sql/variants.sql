-- HOT has no switch; an index on the updated column takes it away. The partial indexes have no
-- entries, since a balance is never null: the column counts as indexed at no other cost.

-- name: no_hot
CREATE INDEX accounts_off ON accounts (abalance) WHERE abalance IS NULL;
CREATE INDEX tellers_off ON tellers (tbalance) WHERE tbalance IS NULL;
CREATE INDEX branches_off ON branches (bbalance) WHERE bbalance IS NULL;

-- name: index_on_abalance
CREATE INDEX accounts_abalance ON accounts (abalance);
CREATE INDEX tellers_off ON tellers (tbalance) WHERE tbalance IS NULL;
CREATE INDEX branches_off ON branches (bbalance) WHERE bbalance IS NULL;

-- name: brin_on_abalance
CREATE INDEX accounts_abalance ON accounts USING brin (abalance);

-- name: clients
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench';
