SELECT 'CLUSTER leaves fewer pages than VACUUM FULL' AS fact,
       clustered.accounts + clustered.accounts_pkey < vacuumed.accounts + vacuumed.accounts_pkey
           AS so
FROM compaction clustered, compaction vacuumed
WHERE clustered.command = 'CLUSTER' AND vacuumed.command = 'VACUUM FULL'
