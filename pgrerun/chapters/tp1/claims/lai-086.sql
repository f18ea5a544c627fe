-- On some catalogs the backend ends with the first query: Postgres95 looks a catalog that has an index up by a
-- routine that is as hard-wired, and only some look-ups have one. The B-tree isn't used there either, and the
-- report, whose system scanned every catalog, doesn't speak of it: so it is told and decides nothing.
SELECT 'no page is read of a B-tree that one defined on a catalog' AS fact,
       max(index_pages) = 0 AS so, true AS essential
FROM postgres95_own_index WHERE runs
UNION ALL
SELECT 'as many pages are read of the catalog itself as without it',
       bool_and(catalog_pages = catalog_pages_without), true
FROM postgres95_own_index WHERE runs
UNION ALL
SELECT 'the planner is called once for a query, whatever is looked up in catalogs',
       bool_and(planned = 1 AND looked_up > 0), true
FROM postgres95_planning HAVING count(*) > 0
UNION ALL
SELECT 'transactions run whichever catalog has such a B-tree', bool_and(runs), false
FROM postgres95_own_index
UNION ALL
SELECT format('a query of one''s own does read such a B-tree, on {} of the {} catalogs where transactions run',
              count(*) FILTER (query_pages > 0), count(*)),
       max(query_pages) > 0, false
FROM postgres95_own_index WHERE runs
