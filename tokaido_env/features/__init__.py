"""Features of positions: the terms of the evaluation, look-ahead features, exact endings."""
