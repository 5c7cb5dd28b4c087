"""Tests of `benchmarks/sample_inputs.py`."""

import sys
from pathlib import Path

import numpy as np

from tokaido_env.agents.weights import SAMPLE_INPUTS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from sample_inputs import sample_inputs


def test_sample_inputs__are_those_of_the_shipped_file() -> None:
    with np.load(SAMPLE_INPUTS) as file:
        assert file["inputs"].tobytes() == sample_inputs().tobytes()
