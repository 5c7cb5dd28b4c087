"""Fixtures of the tests of agents."""

from pathlib import Path

import pytest
from networks import random_policy


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """A policy file with a random network."""
    random_policy().save(tmp_path / "policy")
    return tmp_path / "policy"
