"""Matches between agents, their records, ratings and ladders."""
