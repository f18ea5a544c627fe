-- The median condition's q-error without statistics on elements over that with them.
SELECT median(without.q_error / known.q_error) AS value
FROM selectivity AS known JOIN selectivity AS without USING (operator, elements)
WHERE known.statistics = 'with the most common elements' AND without.statistics = 'without'
