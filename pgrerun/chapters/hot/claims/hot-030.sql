SELECT 'CLUSTER leaves fewer pages than VACUUM FULL' AS fact,
       clustered.accounts + clustered.accounts_pkey < vacuumed.accounts + vacuumed.accounts_pkey
           AS so
FROM compaction_before_hot clustered, compaction_before_hot vacuumed
WHERE clustered.command = 'CLUSTER' AND vacuumed.command = 'VACUUM FULL'
