"""A layer that scores each action by the features of its afterstate, for policies and Q-values."""

from __future__ import annotations

from torch import Tensor, nn, relu

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstate_observation import N_AFTERSTATE


class ActionScores(nn.Module):
    """Scores each action by its afterstate in the context of the state, and by its id.

    All actions share the weights of the afterstates. Only the bias of an id is the action's own,
    and it is near 0 at the start.

    Args:
        width: of the hidden state.
        units: that see both the afterstate and the hidden state.
    """

    def __init__(self, width: int, units: int = 32) -> None:
        super().__init__()
        self.afterstate, self.context = nn.Linear(N_AFTERSTATE, units), nn.Linear(width, units)
        self.score, self.by_id = nn.Linear(units, 1), nn.Linear(width, N_ACTIONS)
        nn.init.orthogonal_(self.by_id.weight, 0.01)

    def forward(self, hidden: Tensor, actions: Tensor) -> Tensor:
        """Return scores, float32 (…, N_ACTIONS), also of illegal actions: mask them.

        Args:
            hidden: the network's hidden state, float32 (…, width).
            actions: `actions` of the afterstate observation, float32 (…, N_ACTIONS, N_AFTERSTATE).
        """
        units = relu(self.afterstate(actions) + self.context(hidden)[..., None, :])
        scores: Tensor = self.score(units).squeeze(-1) + self.by_id(hidden)
        return scores
