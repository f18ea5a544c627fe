SELECT printf('query %s takes the same response time compiled and interpreted', query) AS fact, dc = ingres AS so
FROM printed.four_tactics_compiled_wall WHERE size <= 1 ORDER BY query
