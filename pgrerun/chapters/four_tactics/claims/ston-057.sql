WITH good AS (SELECT min(high) AS most, max(months_high) AS months FROM printed.four_tactics_conclusions WHERE key IN ('DC', 'FS')),
     bad AS (SELECT max(high) AS most, min(months_low) AS months FROM printed.four_tactics_conclusions WHERE key IN ('M', 'MANGOS'))
SELECT 'compilation and the file system gain more at most than the other two' AS fact, good.most > bad.most AS so FROM good, bad
UNION ALL
SELECT 'and take fewer man-months', good.months < bad.months FROM good, bad
