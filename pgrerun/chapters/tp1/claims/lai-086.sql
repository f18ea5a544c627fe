-- Where the backend ends, look-ups turned to the B-tree: on such a catalog it isn't passed by, and
-- no page can be counted.
SELECT 'no page is read of a B-tree that one defined on a catalog' AS fact,
       max(index_pages) = 0 AS so, true AS essential
FROM postgres95_own_index WHERE runs HAVING count(*) > 0
UNION ALL
SELECT 'as many pages are read of the catalog itself as without it',
       bool_and(catalog_pages = catalog_pages_without), true
FROM postgres95_own_index WHERE runs HAVING count(*) > 0
UNION ALL
SELECT 'transactions run whichever catalog has such a B-tree', bool_and(runs), true
FROM postgres95_own_index
UNION ALL
SELECT 'the planner is called once for a query, whatever is looked up in catalogs',
       bool_and(planned = 1 AND looked_up > 0), true
FROM postgres95_planning HAVING count(*) > 0
UNION ALL
SELECT format('a query of one''s own does read such a B-tree, on {} of the {} catalogs where transactions run',
              count(*) FILTER (query_pages > 0), count(*)),
       max(query_pages) > 0, false
FROM postgres95_own_index WHERE runs
