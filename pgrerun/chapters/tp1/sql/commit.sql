-- name: undecided
UPDATE account SET string = 'undecided';

-- name: after_recovery
SELECT (SELECT count(*) FROM history), (SELECT count(*) FROM account WHERE string = 'undecided');
