-- By the steps that PostgreSQL's interpreter takes for query d, and by its operators: of what the
-- executor gets those stand between spaces, and the conversions, which the memorandum's tree has as
-- nodes of their own, behind a bracket.
WITH counted AS (
    SELECT "leading" AS way, "leading" + fetching AS operands, steps,
           (SELECT len(regexp_extract_all("filter", '[)]::| [-+*/<>=]+ ')) FROM conversions
            WHERE qualification = 'query d') AS operators
    FROM dispatch WHERE query = 'd'
), ways AS (
    SELECT 'for each step, what leads to the next one' AS part, way / steps AS value FROM counted
    UNION ALL SELECT 'for each step, with what says where its operands are', operands / steps FROM counted
    UNION ALL SELECT 'for each operator, what leads from step to step', way / operators FROM counted
    UNION ALL SELECT 'for each operator, with what says where operands are', operands / operators FROM counted
)
-- what is printed is another number only if the readings are all on one side of it
SELECT 'however counted' AS part, median(value) AS value, min(value) AS low, max(value) AS high, true AS essential
FROM ways HAVING count(*) > 0
UNION ALL SELECT part, value, value, value, false FROM ways
