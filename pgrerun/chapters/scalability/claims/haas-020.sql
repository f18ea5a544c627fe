-- 9.1 shows it, or nothing is said: fixed it is where neither 9.2 nor today's server does.
SELECT bool_or(waits) FILTER (server <> '9.1') AS still_there FROM slow_clog_page
WHERE session = 'needs one page after another, but not that one'
HAVING bool_or(waits) FILTER (server = '9.1')
