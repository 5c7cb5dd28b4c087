"""Matches between agents, their records, ratings, ladders and suites."""
