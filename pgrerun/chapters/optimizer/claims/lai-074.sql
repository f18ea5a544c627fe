SELECT bool_or(method = 'nested loop') AS still_there
FROM planned_joins WHERE size = 'report' AND query = 3 AND chosen
