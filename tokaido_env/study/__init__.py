"""Measurements of single agents."""
