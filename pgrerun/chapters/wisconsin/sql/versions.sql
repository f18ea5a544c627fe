-- name: delete
-- one tuple of each page; rolled back, it leaves the page no longer marked as all visible
DELETE FROM :"relation" WHERE unique2 % :per_page = 0;

-- name: scan
SELECT count(*) FROM :"relation" WHERE unique2 < 0;
