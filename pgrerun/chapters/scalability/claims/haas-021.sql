-- Each deleted tuple was inserted and deleted by transactions of its own.
WITH compared AS (
    SELECT commits, old.build AS older, new.build AS newer, old.questions AS before, new.questions AS after
    FROM dead_tuples AS old JOIN dead_tuples AS new USING (commits)
    WHERE (old.build, new.build) IN (('surelydead-before', 'surelydead'), ('9.1', '9.2'))
)
SELECT newer || ' asks less often than ' || older || ' about deleted tuples whose hints can''t be set yet' AS fact,
       after < before AS so, true AS essential
FROM compared WHERE commits = 'not flushed yet'
UNION ALL
SELECT newer || ' asks as often as ' || older || ' about those whose hints can be set', after = before, false
FROM compared WHERE commits = 'flushed'
