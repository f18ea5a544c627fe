SELECT count(DISTINCT expected) = 1 AS still_there FROM hidden_constant WHERE seen
