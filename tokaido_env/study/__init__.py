"""Measurements of the game and of single agents."""
