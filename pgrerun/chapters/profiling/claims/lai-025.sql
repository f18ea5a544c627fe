SELECT 'a routine for memory is in the top ten of the ' || query_set AS fact,
       bool_or(routine IN ('malloc', 'free', 'palloc', 'pfree', 'MemoryContextAlloc', 'AllocSetAlloc',
                           'AllocSetFree', 'PortalHeapMemoryAlloc')) AS so
FROM (SELECT * FROM postgres95_profile WHERE variant = 'assertions'
      QUALIFY row_number() OVER (PARTITION BY query_set ORDER BY instructions DESC) <= 10)
GROUP BY query_set ORDER BY query_set
