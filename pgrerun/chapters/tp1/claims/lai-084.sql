-- A count and no sample: the keys that a transaction draws don't change which catalogs it reads.
SELECT min(by_scan.first_catalog_fetches / by_index.first_catalog_fetches) AS value
FROM catalog_access AS by_scan JOIN catalog_access AS by_index USING (block, more_relations)
WHERE more_relations > 0
  AND by_scan.access = 'by sequential scan' AND by_index.access = 'by index'
