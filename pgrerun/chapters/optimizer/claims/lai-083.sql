-- The report's two bounds on one attribute are recognized; these are on two that go together.
SELECT 'ranges on two correlated attributes are still multiplied' AS fact,
       expected NOT BETWEEN rows / 2 AND 2 * rows AS so
FROM two_attributes
WHERE condition = 'unique1 < 1000 AND tenthousand < 1000' AND extended_statistics = 'none'
