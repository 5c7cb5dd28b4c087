"""Tests of `tokaido_env.torchrl`: TorchRL's check, and `Batch` as reference."""

import numpy as np
import pytest

pytest.importorskip("torchrl")
import torch
from torchrl.envs.utils import check_env_specs

from tokaido_env import Batch
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import IllegalMove, SeedError
from tokaido_env.torchrl import TokaidoDuoEnv, value_sign


@pytest.mark.parametrize(
    "options",
    [{}, {"see_board": True}, {"reward": "margin"}, {"board": "family:valid/3"}],
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
        assert np.array_equal(now["next", "truncated"][:, 0].numpy(), turn.truncated)
        signs = np.where(turn.next_player == turn.player, 1.0, -1.0)
        expected = np.where(turn.next_player == -1, 0.0, signs)
        assert np.array_equal(value_sign(now)[:, 0].numpy(), expected)
        done = np.flatnonzero(turn.terminated | turn.truncated)
        ended += len(done)
        if len(done):
            batch.begin(done)
            turn = batch.timestep()
    assert ended > 3


def test_rollout__plays_legal_random_actions() -> None:
    env = TokaidoDuoEnv(16)
    env.set_seed(0)
    data = env.rollout(150, break_when_any_done=False)
    chosen = data["action_mask"].gather(-1, data["action"][..., None])
    assert chosen.all()
    assert data["next", "action_mask"].any(dim=-1).all()
    assert data["action_mask"].shape == (16, 150, N_ACTIONS)


def test_set_seed__reproduces_games() -> None:
    def played(seed: int) -> torch.Tensor:
        env = TokaidoDuoEnv(4)
        torch.manual_seed(3)
        env.set_seed(seed)
        seen: torch.Tensor = env.rollout(80, break_when_any_done=False)["observation"]
        return seen

    assert torch.equal(played(5), played(5))
    assert not torch.equal(played(5), played(6))


def test_env__refuses_wrong_arguments() -> None:
    env = TokaidoDuoEnv(2)
    data = env.reset()
    data["action"] = (~data["action_mask"]).int().argmax(dim=1)
    with pytest.raises(IllegalMove, match="game 0: illegal action"):
        env.step(data)
    with pytest.raises(SeedError):
        env.set_seed(-1)
    with pytest.raises(ValueError, match="n: expected 1 to"):
        TokaidoDuoEnv(0)
