SELECT max(number) || ' uses of an attribute cost no more calls than ' || min(number) AS fact,
       max_by(calls, number) <= min_by(calls, number) AS so
FROM attributes WHERE varied = 'uses'
