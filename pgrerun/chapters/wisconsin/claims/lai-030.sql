SELECT kind AS part,
       median(recomputed_ratio) / (SELECT median(recomputed_ratio)
                                   FROM printed.wisconsin_figure_3_11_derived
                                   WHERE "group" = 'retrieval') AS value
FROM printed.wisconsin_figure_3_11_derived
WHERE kind IN ('insert', 'delete')
GROUP BY kind
