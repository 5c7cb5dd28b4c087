"""How agents are measured: matches, ratings, ladders."""
