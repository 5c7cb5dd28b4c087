"""Repeatable gradients, and steps that refuse infinite ones."""

import numpy as np
import pytest
import torch

from tokaido_env.learn.network import deterministic, take_step, torch_threads


def test_deterministic__repeats_gradients_exactly() -> None:
    """Enough rows for two threads; without `deterministic` most of ten runs differ."""
    weights, rows = torch.nn.Parameter(torch.randn(64, 32)), torch.randint(64, (200_000,))
    factors = torch.randn(len(rows), 32)

    def gradient() -> bytes:
        weights.grad = None
        (weights[rows] * factors).sum().backward()
        return np.asarray(weights.grad).tobytes()

    with torch_threads(2), deterministic():
        assert torch.are_deterministic_algorithms_enabled()
        assert len({gradient() for _ in range(10)}) == 1
    assert not torch.are_deterministic_algorithms_enabled()


def test_take_step__limits_the_norm_and_refuses_infinite_gradients() -> None:
    """By hand: the gradient (30, 40) has norm 50; that of the root of 0 is infinite."""
    weights = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weights], lr=1.0)
    take_step(optimizer, weights @ torch.tensor([30.0, 40.0]), 5.0, "step 1")
    assert torch.allclose(weights, torch.tensor([-3.0, -4.0]))
    take_step(optimizer, weights @ torch.tensor([-3.0, -4.0]), 5.0, "step 2")
    assert torch.allclose(weights, torch.zeros(2), atol=1e-5)
    weights.data.zero_()
    with pytest.raises(FloatingPointError, match=r"^step 3: the gradient's norm is inf$"):
        take_step(optimizer, weights.sqrt().sum(), 5.0, "step 3")
    assert not weights.any()
