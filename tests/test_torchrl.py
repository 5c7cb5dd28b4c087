"""Tests of `tokaido_env.torchrl`: TorchRL's check, and `Batch` as reference."""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchrl")
import torch
from torchrl.envs import SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.utils import check_env_specs

from tokaido_env import Batch
from tokaido_env.core.arguments import IllegalMove
from tokaido_env.torchrl import TokaidoDuoEnv, value_sign

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TorchRL deprecates a class of its own at import

make = partial(TokaidoDuoEnv, 4, device="cpu")


@pytest.mark.parametrize(
    "options",
    [
        *({"see_board": True}, {"reward": "margin"}, {"board": "family:valid/3"}),
        {"observation": "afterstates"},
    ],
    ids=str,
)
def test_env__passes_torchrls_check(options: dict[str, object]) -> None:
    check_env_specs(TokaidoDuoEnv(8, **options))  # type: ignore[arg-type]


def test_rollout__equals_the_games_of_a_batch() -> None:
    env, batch = TokaidoDuoEnv(5), Batch(5, autoreset=False)
    env.set_seed(9)
    data = env.rollout(900, break_when_any_done=False)
    turn = batch.reset(seed=9)
    ended = 0
    for t in range(900):
        now = data[:, t]
        assert np.array_equal(now["observation"].numpy(), turn.observation)
        assert np.array_equal(now["action_mask"].numpy(), turn.mask.astype(bool))
        assert np.array_equal(now["player"][:, 0].numpy(), turn.mover)
        turn = batch.step(now["action"].numpy())
        own = turn.reward[np.arange(5), turn.player]
        assert np.array_equal(now["next", "reward"][:, 0].numpy(), own)
        assert np.array_equal(now["next", "terminated"][:, 0].numpy(), turn.terminated)
        assert not now["next", "truncated"].any()
        signs = np.where(turn.next_player == turn.player, 1.0, -1.0)
        expected = np.where(turn.next_player == -1, 0.0, signs)
        assert np.array_equal(value_sign(now)[:, 0].numpy(), expected)
        done = np.flatnonzero(turn.terminated)
        ended += len(done)
        if len(done):
            batch.begin(done)
            turn = batch.timestep()
    assert ended > 3


def test_rollout__keeps_finished_games_until_all_are_done(short: Path) -> None:
    env = TransformedEnv(TokaidoDuoEnv(4, board=short), StepCounter())
    env.set_seed(3)
    data = env.rollout(100, break_when_any_done=False, break_when_all_done=True)
    done = data["next", "done"][..., 0]
    assert done[:, -1].all()
    assert not done[:, 0].any()
    for game in range(4):
        first = int(done[game].int().argmax())
        assert done[game, first:].all()
        last = data["next", "observation"][game, first:]
        assert torch.equal(last, last[:1].expand_as(last))


def test_rand_action__needs_the_masks() -> None:
    """Batched environments have their own spec, which knows no masks."""
    for env in (SerialEnv(2, make), make()):
        data = env.reset() if isinstance(env, SerialEnv) else None
        with pytest.raises(RuntimeError, match=r"reset first; apply action_mask: .*random_policy$"):
            env.rand_action(data)


def test_env__is_on_its_device() -> None:
    env = make()
    data = env.rollout(3)
    assert env.device == data.device == data["next", "reward"].device == torch.device("cpu")
    assert make(device=None).rollout(3).device is None


def test_step__names_an_illegal_action_and_the_remedy() -> None:
    env = TokaidoDuoEnv(2)
    data = env.reset()
    data["action"] = (~data["action_mask"]).int().argmax(dim=1)
    with pytest.raises(IllegalMove, match=r"game 0: illegal action .*; apply action_mask: "):
        env.step(data)
