-- From an empty pool: the index's pages, and those of the relation that they lead to.
SELECT avg(index_pages + heap_pages) AS value FROM postgres95_lookup WHERE access = 'hash' HAVING count(*) > 0
