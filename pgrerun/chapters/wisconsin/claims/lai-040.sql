-- INGRES decides, whose times are printed: by what all its processes execute, and by the pages of
-- relations, catalogs and temporaries that they read and write. A printed time may be half a tenth
-- of a second off, so a ratio is as printed from the least that two such times can have.
WITH seconds AS (
    SELECT max(ingres) FILTER (key = 'q20') AS scalar, max(ingres) FILTER (key = 'q23') AS by_index,
           max(ingres) FILTER (key = 'q21') AS grouped, max(ingres) FILTER (key = 'q24') AS grouped_by_index
    FROM printed.wisconsin_figure_3_11
), efforts AS (
    SELECT query, 'instructions' AS measure, instructions AS effort FROM ingres_queries WHERE tuples = 10000
    UNION ALL
    SELECT query, 'pages',
           relation_reads + relation_writes + catalog_reads + temporary_reads + temporary_writes
    FROM ingres_queries WHERE tuples = 10000
), ratios AS (
    SELECT measure,
           sum(effort) FILTER (query = 'q23') / sum(effort) FILTER (query = 'q20') AS of_scalar,
           sum(effort) FILTER (query = 'q24') / sum(effort) FILTER (query = 'q21') AS of_grouped
    FROM efforts WHERE query IN ('q20', 'q21', 'q23', 'q24') GROUP BY measure
)
SELECT 'an index saves MIN no ' || measure AS fact,
       of_scalar >= (by_index - 0.05) / (scalar + 0.05) AS so,
       of_scalar < (by_index - 0.05) / (scalar + 0.05) AS opposite, true AS essential
FROM ratios, seconds
UNION ALL
SELECT 'MIN by group takes at least as many more ' || measure || ' with an index as is printed',
       of_grouped >= (grouped_by_index - 0.05) / (grouped + 0.05),
       of_grouped < (grouped - 0.05) / (grouped + 0.05), true
FROM ratios, seconds
UNION ALL
SELECT 'MIN by group takes more ' || measure || ' with an index',
       of_grouped > (grouped + 0.05) / (grouped - 0.05),
       of_grouped < (grouped - 0.05) / (grouped + 0.05), false
FROM ratios, seconds
ORDER BY essential DESC, fact
