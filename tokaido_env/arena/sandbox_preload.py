"""Imports and kernels that the fork server loads once for all sandboxes: see `sandbox`."""

from tokaido_env.arena import sandbox_process as sandbox_process
from tokaido_env.game import Game

_game = Game(seed=0)
_game.copy().play(_game.legal_actions()[0])
