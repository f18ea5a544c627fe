-- From nothing in memory: the pages of the relation itself, which is all that a hashed one has.
SELECT max(reads) AS value FROM ingres_lookup WHERE access = 'hash' AND found = 1 HAVING count(*) > 0
