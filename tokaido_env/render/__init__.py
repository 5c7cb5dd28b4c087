"""Drawings of a position: pure functions of a board and the dictionary of `Game.to_dict`."""
