"""The settings of a run that takes a second."""

from typing import Any

VALUES: dict[str, Any] = {
    **{"games": 8, "rollout": 32, "minibatch": 128, "width": 32, "slots": 4, "agents": "greedy"},
    **{"steps": 256, "freeze_every": 256, "pool_size": 4, "rate_every": 0, "refit_games": 0},
    "threads": 1,
}
