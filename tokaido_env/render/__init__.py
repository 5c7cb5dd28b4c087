"""Drawings: pure functions of a board and states."""
