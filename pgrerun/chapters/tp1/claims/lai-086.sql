SELECT 'the planner''s settings don''t change how catalogs are reached' AS fact,
       bool_and(usual.first_catalog_fetches = unwanted.first_catalog_fetches) AS so
FROM catalog_access AS usual JOIN catalog_access AS unwanted USING (block, more_relations)
WHERE more_relations = 0
  AND usual.access = 'by index' AND unwanted.access = 'planner''s index scans off'
UNION ALL
SELECT 'useful indexes are passed by', min(first_catalog_scans) > 0
FROM catalog_access WHERE access = 'by index' AND more_relations = 0
