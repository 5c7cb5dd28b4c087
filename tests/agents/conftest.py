"""Fixtures of the tests of agents."""

from pathlib import Path

import pytest
from networks import random_policy

from tokaido_env.agents import search
from tokaido_env.agents.search_tree import Tree, make_trees


@pytest.fixture
def searched_trees(monkeypatch: pytest.MonkeyPatch) -> list[Tree]:
    """The trees of the searches of a test, in order."""
    trees: list[Tree] = []

    def recorded_trees(threads: int, nodes: int, *, priors: bool) -> Tree:
        trees.append(make_trees(threads, nodes, priors=priors))
        return trees[-1]

    monkeypatch.setattr(search, "cached_trees", recorded_trees)
    return trees


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """A policy file with a random network."""
    random_policy().save(tmp_path / "policy")
    return tmp_path / "policy"
