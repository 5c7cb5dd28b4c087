"""Policy files, which judge, play and search once they are taken."""

import json
import random

import mutants
import numpy as np
import spoil
from fuzz import Cases
from networks import decisions, random_policy

from tokaido_env.agents.policy import Policy, PolicyAgent, PolicyError, Sizes
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.observing import masks

TEMPERATURES = (0.0, 1e-310, 0.01, 1.0, 10.0)


class Policies(Cases):
    """Policies of few units, that see the board and that do not, and positions of all phases."""

    errors = (PolicyError,)
    name = "policy"

    def make(self) -> None:
        self.files = []
        for sees_board in (False, True):
            random_policy(Sizes(8, 3, 2, 8, 3), sees_board=sees_board).save(self.path)
            self.files.append(self.path.read_bytes())
        boards, states, legal = decisions(("shikoku", "family:7"), games=6, moves=40, most=2)
        self.positions = boards, states, legal, np.arange(len(states), dtype=np.uint64)
        self.rows = masks(legal)

    def check_sound(self) -> None:
        assert len(np.unique(self.positions[1]["phase"])) > 2
        for file in self.files:
            self.path.write_bytes(file)
            self.check(random.Random(0))
            self._search(Policy.load(self.path))

    def damage(self, rng: random.Random) -> None:
        file = rng.choice(self.files)
        how = self._of_other_training if rng.random() < 0.17 else spoil.damaged_tensors
        self.put(rng, how(rng, file), odds=0.01)
        if rng.random() < 0.01 and self.path.is_file():
            with self.path.open("r+b") as opened:
                opened.truncate(rng.choice((0, 8, 2**20, 2**35)))

    def _of_other_training(self, rng: random.Random, file: bytes) -> bytes:
        """The same with another summary of the training, or another word of the rest of it."""
        header, numbers = spoil.parts_of(file)
        told = header["__metadata__"]
        key = "training" if rng.random() < 0.7 else rng.choice(list(told))
        text = mutants.as_json(rng, {"steps": 3, "settings": {"agents": "greedy", "games": 8}})
        told[key] = text.decode("utf-8", "replace")
        return spoil.tensors(header, numbers)

    def check(self, rng: random.Random) -> None:
        """A policy that is taken gives odds and values of all positions, and comes back."""
        policy = Policy.load(self.path)
        policy.save(self.path.with_name("again"))
        again = Policy.load(self.path.with_name("again"))
        assert json.dumps(again.training) == json.dumps(policy.training)
        for name, tensor in policy.tensors.items():
            assert again.tensors[name].tobytes() == tensor.tobytes()
        for temperature in rng.sample(TEMPERATURES, 2):
            agent = PolicyAgent.of(policy, "policy:x", temperature)
            chosen = agent.act(*self.positions)
            assert self.rows[np.arange(len(chosen)), chosen].all()
        odds, values = agent.judge(*self.positions)
        assert np.allclose(odds.sum(axis=1), 1, atol=1e-4)
        assert (odds[~self.rows] == 0).all()
        assert (np.abs(values) <= 1).all()
        if rng.random() < 0.05:
            self._search(policy)

    def _search(self, policy: Policy) -> None:
        chosen = PolicySearchAgent.of(policy, "x", 4).act(*self.positions)
        assert self.rows[np.arange(len(chosen)), chosen].all()
