-- 9.1 shows it, or there are no rows: fixed it is where neither 9.2 nor today's server does.
SELECT bool_or(waits) AS still_there FROM slow_clog_page
WHERE session = 'needs one page after another, but not that one' AND server <> '9.1'
