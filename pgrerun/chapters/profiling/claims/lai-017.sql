SELECT 'without a check that decides whether a page must be fetched there is no right answer' AS fact,
       answer <> 'right' AS so
FROM always_true WHERE routine = 'StartBufferIO'
UNION ALL
SELECT 'without a check that only defends there is a right answer', answer = 'right'
FROM always_true WHERE routine = 'PageIsVerified'
