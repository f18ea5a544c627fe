-- A page's wait, as lai-032 has it: what a tenth takes longer by an index that isn't clustered, for each
-- page more. By it part of query 3's printed time was waiting, in which proportion pages weigh against
-- instructions. Where Postgres95's planner took no index for the tenth, there is no wait to tell.
WITH said AS (
    SELECT max(postgres) FILTER (key = 'q3') AS seconds,
           max(postgres) FILTER (key = 'q6') - max(postgres) FILTER (key = 'q4') AS longer
    FROM printed.wisconsin_figure_3_11
), efforts AS (FROM postgres95_queries WHERE tuples = 10000),
by_index AS (
    SELECT i.instructions, i.reads,
           longer / (apart.relation_reads - together.relation_reads) * i.reads / seconds AS waiting
    FROM said, efforts AS i, efforts AS apart, efforts AS together
    WHERE i.query = 'q3' AND together.query = 'q4' AND apart.query = 'q6' AND apart.plan ILIKE '%index%'
)
SELECT (1 - waiting) * a.instructions / i.instructions + waiting * a.reads / i.reads AS value
FROM by_index AS i, efforts AS a WHERE a.query = 'q1'
