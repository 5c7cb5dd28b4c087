"""Tokaido Duo as a reinforcement-learning environment."""

from tokaido_env.board import Board, BoardError
from tokaido_env.game import Game, IllegalMove

__all__ = ["Board", "BoardError", "Game", "IllegalMove"]
