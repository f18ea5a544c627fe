SELECT 'the choice of a victim is a function of its own, so that another can be compiled in'
           AS fact,
       found <> '' AS so, true AS essential
FROM provisions WHERE way LIKE 'a function%'
UNION ALL
SELECT 'whoever asks for a page may name another strategy', found <> '', true
FROM provisions WHERE way LIKE 'another strategy%'
UNION ALL
SELECT 'an extension or a setting takes the choice over', bool_or(found <> ''), false
FROM provisions WHERE way LIKE 'a setting%' OR way LIKE 'a hook%'
