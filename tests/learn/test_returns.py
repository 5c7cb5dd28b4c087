"""Value targets and advantages against their definitions as sums."""

import numpy as np
import pytest

from tokaido_env.learn.returns import Nodes, returns_of

RNG = np.random.default_rng(1)


class Chain:
    """A random game: its decisions and chance nodes, their values for player_0, and the result."""

    def __init__(self, length: int) -> None:
        self.is_chance, self.movers = [], []
        for _ in range(length):
            self.is_chance.append(False)
            self.movers.append(int(RNG.integers(2)))
            if RNG.random() < 0.4:
                self.is_chance.append(True)
                self.movers.append(-1)
        if self.is_chance[-1]:  # the last action ends the game
            self.is_chance.pop()
            self.movers.pop()
        self.values = RNG.uniform(-1, 1, len(self.movers)).astype(np.float32)
        self.result = float(RNG.integers(-1, 2))

    def value(self, i: int) -> float:
        """Return the value of a node; at the end the result."""
        return float(self.values[i]) if i < len(self.values) else self.result

    def target(self, i: int, decay: float) -> float:
        """Return the λ-return: later values with weights (1 - λ) λ**(n - 1)."""
        left = len(self.values) - i
        steps = [self.value(i + n) for n in range(1, left + 1)]
        weights = [(1 - decay) * decay ** (n - 1) for n in range(1, left)] + [decay ** (left - 1)]
        assert sum(weights) == pytest.approx(1)
        return float(np.dot(steps, weights))

    def advantage(self, i: int, decay: float, chance_weight: float) -> float:
        """Return the discounted changes of value after a decision, scaled at chance nodes."""
        total = 0.0
        for n in range(i, len(self.values)):
            share = chance_weight if self.is_chance[n] else 1.0
            total += share * decay ** (n - i) * (self.value(n + 1) - self.value(n))
        return total * (1 - 2 * self.movers[i])


@pytest.mark.parametrize(
    ("value_lambda", "policy_lambda", "chance_weight"),
    [(1.0, 1.0, 1.0), (0.9, 0.8, 0.3), (0.0, 0.5, 0.0)],
)
def test_returns_of__equals_the_definitions(
    value_lambda: float, policy_lambda: float, chance_weight: float
) -> None:
    chains = [Chain(int(RNG.integers(1, 12))) for _ in range(20)]
    # Decisions in the order of a rollout: the first of every game, then the second, and so on.
    nodes = sorted(
        (chain.is_chance[:i].count(False), g, i)
        for g, chain in enumerate(chains)
        for i, chance in enumerate(chain.is_chance)
        if not chance
    )
    chance, chance_values, where = [], [], []
    for _, g, i in nodes:
        follows = i + 1 < len(chains[g].movers) and chains[g].is_chance[i + 1]
        chance.append(len(chance_values) if follows else -1)
        if follows:
            chance_values.append(chains[g].value(i + 1))
            where.append((g, i + 1))
    found = returns_of(
        Nodes(
            np.array([g for _, g, _ in nodes]),
            np.array([chains[g].movers[i] for _, g, i in nodes], np.int8),
            np.array([chains[g].value(i) for _, g, i in nodes], np.float32),
            *(np.array(chance), np.array(chance_values, np.float32)),
            np.array([chain.result for chain in chains], np.float32),
        ),
        *(value_lambda, policy_lambda, chance_weight),
    )
    for row, (_, g, i) in enumerate(nodes):
        assert found.targets[row] == pytest.approx(chains[g].target(i, value_lambda), abs=1e-5)
        expected = chains[g].advantage(i, policy_lambda, chance_weight)
        assert found.advantages[row] == pytest.approx(expected, abs=1e-5)
    for row, (g, i) in enumerate(where):
        assert found.chance_targets[row] == pytest.approx(
            chains[g].target(i, value_lambda), abs=1e-5
        )
