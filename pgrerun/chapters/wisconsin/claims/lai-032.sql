-- Of the printed time by the index, waiting is what it takes longer than by a clustered one, which finds
-- the same tuples side by side. Postgres95's two ways are weighed in that proportion:
-- computing by instructions, waiting by pages read. A twentieth is no difference. Where Postgres95's planner
-- took no index for it, there is nothing to compare.
WITH said AS (
    SELECT 1 - max(postgres) FILTER (key = 'q4') / max(postgres) FILTER (key = 'q6') AS waiting
    FROM printed.wisconsin_figure_3_11
), all_read AS (FROM postgres95_queries WHERE query = 'q2' AND tuples = 10000),
by_index AS (FROM postgres95_queries WHERE query = 'q6' AND tuples = 10000 AND plan ILIKE '%index%')
SELECT 'with the report''s share of waiting, a tenth by the index takes Postgres95 no less than reading all'
           AS fact,
       (1 - waiting) * a.instructions / i.instructions + waiting * a.relation_reads / i.relation_reads < 1 / 0.95
           AS so
FROM said, all_read AS a, by_index AS i
