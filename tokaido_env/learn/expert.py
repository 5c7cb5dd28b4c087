"""Expert iteration: a network learns from tree search, then leads the search that it learns from.

python -m tokaido_env.learn.expert --run runs/expert

The first expert is `mcts`, which needs no network; each one after it is `policy_search` by the
network of the round before (Anthony, Tian and Barber 2017, "Thinking fast and slow with deep
learning and tree search"; Silver et al. 2018, AlphaZero). An expert plays both sides of many
games. The network learns how often the search visited each action, and as the value the mean of
what the search found and how the game ended.

The folder holds `settings.json`, the network after each round `01`, `02`, …, as policy files, the
samples of the last rounds as `lessons-<round>.npz`, and `rounds.jsonl` with the ratings. The same
command goes on where it was stopped, round by round.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from tokaido_env.agents.heuristic import guides_of
from tokaido_env.agents.inputs import read_positions
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.registry import Parameter
from tokaido_env.agents.search import MctsAgent, PolicySearchAgent
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.batch import Batch
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.checks import shown
from tokaido_env.core.luck import arena_seed
from tokaido_env.core.state import copy_rows
from tokaido_env.files import locked, read_json, write_text
from tokaido_env.learn.boards import (
    boards_seen,
    summary,
)
from tokaido_env.learn.declared import (
    COUNT,
    RunError,
    differences,
    enough_memory,
    setting,
)
from tokaido_env.learn.games import NO_MOVE, judge
from tokaido_env.learn.lessons import SearchSettings
from tokaido_env.learn.network import (
    MoveNetwork,
    frozen,
    load_weights,
    repeatable,
    seed32,
)
from tokaido_env.learn.rating import place
from tokaido_env.learn.samples import (
    SampleBuffer,
    Samples,
    legal_rows,
    load_samples,
    save_samples,
)
from tokaido_env.learn.self_play import explored
from tokaido_env.learn.settings import (
    LATER,
    MOST_DECISIONS,
    check_most,
    sweep,
)
from tokaido_env.learn.sighted import SightedNetwork

Search = Callable[..., tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]

MAX_SIMS = 2**16 - 1
"""The most simulations for a decision: what samples can hold as the visits of one action."""

RATING_GAMES = 400  # against each opponent in a rating

_FILES = r"\d+|lessons-\d+\.npz|rounds\.jsonl|settings\.json"  # that are written

_SIMS = Parameter(int, 1, MAX_SIMS)


@dataclass(frozen=True)
class ExpertSettings(SearchSettings):
    """What is learnt, and how. The defaults take about an hour on two cores.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    rounds: int = setting(4, COUNT, "the first by `mcts`, the others by the network's own search")
    first_sims: int = setting(400, _SIMS, "simulations a decision of `mcts`")
    first_positions: int = setting(3_000_000, COUNT, "to learn from in the first round")
    sims: int = setting(100, _SIMS, "simulations a decision of `policy_search`")
    positions: int = setting(1_000_000, COUNT, "to learn from in each round after the first")
    kept_rounds: int = setting(2, COUNT, "rounds whose positions are learnt from together")
    games: int = setting(1024, COUNT, "games side by side")
    epochs: float = setting(
        2.0,
        Parameter(float, 1e-9, 1_000_000),
        "times that each position of a round is seen in the round, on average",
    )
    minibatch: int = setting(2048, COUNT, "positions")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_most("games", self.games, MOST_DECISIONS)
        check_most("minibatch", self.minibatch, MOST_DECISIONS)

    def network(self) -> MoveNetwork:
        """Return an untrained network."""
        return MoveNetwork(self.sizes, boards_seen(self.pool, self.see_board))


def self_play(expert: Search, positions: int, seed: int, settings: ExpertSettings) -> Samples:
    """Let an expert play both sides of many games and note what it found.

    Args:
        expert: called with boards, guides, states, legal and keys; returns actions, values for
            player_0 and visits.
        positions: about how many; those of games that do not end in time are left out.
        seed: of the games and of the other decisions.
        settings: the shares of other decisions, the games side by side, the boards.

    Raises:
        RunError: if no game has ended by then.
    """
    batch = Batch(settings.games, settings.board, observation=None, autoreset=True, copy=False)
    batch.reset(seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    games = np.arange(settings.games)
    buffer = SampleBuffer(settings.games)
    while buffer.count < positions:
        boards, states, legal = batch.boards_of(games), copy_rows(batch.states), batch.legal.copy()
        keys = batch.keys(games)
        actions, values, visits = expert(boards, guides_of(boards), states, legal, keys)
        buffer.add(states, legal, visits, values, batch.slots["board"])
        played = explored(actions, visits, legal, rng, settings)
        turn = batch.step(played)
        buffer.end(np.flatnonzero(turn.terminated | turn.truncated), turn.reward)
    samples = buffer.samples()
    if not len(samples.legal):
        raise RunError(f"positions: expected enough for a game to end, got {positions}")
    return samples


class Lesson(Protocol):
    """How a network learns from samples."""

    @property
    def pool(self) -> BoardPool:
        """The boards that they are of."""

    @property
    def minibatch(self) -> int:
        """Positions of a step."""

    @property
    def learning_rate(self) -> float:
        """Of Adam, falling to nothing as a cosine."""


def learn(
    network: MoveNetwork | SightedNetwork,
    samples: Samples,
    steps: int,
    seed: int,
    settings: Lesson,
    each_step: Callable[[], None] = lambda: None,
) -> float:
    """Train a network on samples; return the mean loss of the last tenth of the steps.

    Args:
        network: is changed.
        samples: to learn from.
        steps: of the optimizer.
        seed: of the order of samples.
        settings: of the learning.
        each_step: called before each step.
    """
    boards = settings.pool.records
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rng = np.random.Generator(np.random.PCG64(seed))
    order, at, losses = rng.permutation(len(samples.legal)), 0, []
    for step in range(steps):
        each_step()
        if at + settings.minibatch > len(order):
            order, at = rng.permutation(len(samples.legal)), 0
        rows = order[at : at + settings.minibatch]
        at += settings.minibatch
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        with repeatable():
            loss = _loss(network, boards, samples.part(rows))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return float(np.mean(losses[-max(1, steps // 10) :]))


def _loss(
    network: MoveNetwork | SightedNetwork, boards: npt.NDArray[np.void], samples: Samples
) -> torch.Tensor:
    """Return the cross-entropy to the visits plus the squared error of the value.

    Of a network with sight the policy only: its value is also of chance, of which samples tell
    nothing, and has no layer in common with the policy.
    """
    legal, which = samples.legal, samples.boards.astype(np.int64)
    if isinstance(network, SightedNetwork):
        judged = judge(network, boards, guides_of(boards), which, samples.states, legal)
        return _cross_entropy(judged.logits, samples)
    own = copy_rows(boards, which) if len(boards) > 1 else boards
    inputs = read_positions(own, samples.states, legal)
    allowed = torch.from_numpy(legal_rows(legal))
    logits, values = network(torch.from_numpy(inputs), allowed, torch.from_numpy(which))
    wanted = torch.from_numpy((samples.values + samples.results) / 2)
    cross_entropy = _cross_entropy(logits.masked_fill(~allowed, NO_MOVE), samples)
    return cross_entropy + functional.mse_loss(values[:, 0], wanted)


def _cross_entropy(logits: torch.Tensor, samples: Samples) -> torch.Tensor:
    """Return the mean cross-entropy to the visits of the positions that have some."""
    visits = torch.from_numpy(samples.visits.astype(np.float32))
    counts = visits.sum(dim=1, keepdim=True)
    shares = visits / counts.clamp(min=1.0)
    log_odds = functional.log_softmax(logits, dim=1)
    return -(shares * log_odds).sum() / (counts > 0).sum().clamp(min=1)


def iterate(
    folder: Path,
    settings: ExpertSettings,
    report: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> Policy:
    """Go through all rounds, from the first that the folder does not have.

    Args:
        folder: new, or one that the same settings have made.
        settings: of all rounds.
        report: called with the figures of each round as it ends, JSON types.

    Returns:
        The policy of the last round.

    Raises:
        RunError: if the folder was made with other settings.
        InUseError: if another command works in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        sweep(folder, _FILES)
        with enough_memory(folder):
            return _iterate(folder, settings, report)


def _iterate(
    folder: Path, settings: ExpertSettings, report: Callable[[dict[str, Any]], None]
) -> Policy:
    _open_folder(folder, settings)
    torch.manual_seed(seed32(settings.seed))
    network = settings.network()
    pool, policy = settings.pool, frozen(network)
    ladder = Ladder.load(ladder_for(pool), pool)
    for number in range(1, settings.rounds + 1):
        path = folder / f"{number:02d}"
        if not path.is_file():
            began = time.perf_counter()
            samples = _samples_of_round(folder, policy, number, settings)
            figures: dict[str, Any] = {"round": number, "positions": len(samples.legal)}
            figures["loss"] = round(_learn_round(network, samples, number, settings), 5)
            # "course" is what the header of a policy file calls these settings.
            training = {"course": asdict(settings), "round": number, "board": summary(pool)}
            policy = frozen(network, training)
            agent = PolicyAgent.of(policy, "learner")
            rating = place(agent, ladder, RATING_GAMES)
            figures |= {"elo": rating.elo, "ci95": rating.ci95, "games": rating.games}
            _log_round(folder, figures)
            policy.save(path)  # last: where there is a policy, the round is whole
            report(figures | {"seconds": time.perf_counter() - began})
        policy = Policy.load(path)
        _check_boards(path, policy, pool)
        load_weights(network, policy)
    return policy


def _check_boards(path: Path, policy: Policy, pool: BoardPool) -> None:
    """Refuse to go on with a policy of other boards of that name: its samples are of these."""
    told = policy.training.get("board")  # which policies from before there were pools do not tell
    begun = told.get("hash") if isinstance(told, dict) else pool.hash
    if begun != pool.hash:
        raise RunError(
            f"{path}: trained on boards of hash {shown(begun)}, {shown(pool.name)} now has "
            f"{pool.hash}: restore the board, or train anew"
        )


def _learn_round(
    network: MoveNetwork, samples: Samples, number: int, settings: ExpertSettings
) -> float:
    steps = max(1, int(settings.epochs * len(samples.legal) / settings.minibatch))
    seed = int(arena_seed(settings.seed, 2 * number + 1))
    return learn(network, samples, steps, seed, settings)


def _samples_of_round(
    folder: Path, policy: Policy, number: int, settings: ExpertSettings
) -> Samples:
    """Return what is learnt in a round: its own positions and those of rounds before."""
    seed = int(arena_seed(settings.seed, 2 * number))
    path = folder / f"lessons-{number:02d}.npz"
    if not path.is_file():
        expert, positions = _first_expert(settings), settings.first_positions
        if number > 1:
            expert, positions = _expert_of(policy, settings), settings.positions
        save_samples(path, self_play(expert, positions, seed, settings))
    first = max(1, number - settings.kept_rounds + 1)
    for old in range(1, first):
        (folder / f"lessons-{old:02d}.npz").unlink(missing_ok=True)
    files = [folder / f"lessons-{n:02d}.npz" for n in range(first, number + 1)]
    kept = [load_samples(file, settings.board) for file in files]
    return Samples.join(kept)


def _first_expert(settings: ExpertSettings) -> Search:
    return MctsAgent(settings.first_sims).search


def _expert_of(policy: Policy, settings: ExpertSettings) -> Search:
    return PolicySearchAgent.of(policy, "expert", settings.sims).search


def _open_folder(folder: Path, settings: ExpertSettings) -> None:
    """Make the folder, or see that it was made with the same settings."""
    path, asked = folder / "settings.json", asdict(settings)
    if not path.is_file():
        write_text(path, json.dumps(asked, indent=1) + "\n")
    own = read_json(path)
    if not isinstance(own, dict):
        raise RunError(f"{path}: expected an object of settings, got a {type(own).__name__}")
    if differing := differences(LATER | own, asked):
        raise RunError(f"{folder}: cannot go on with other settings: {differing}")


def _log_round(folder: Path, figures: dict[str, Any]) -> None:
    """Write the figures of a round after those of the rounds before it."""
    path = folder / "rounds.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    lines = [*lines[: figures["round"] - 1], json.dumps(figures)]
    write_text(path, "\n".join(lines) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tokaido_env.learn.expert",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="folder to begin or to go on with")
    ExpertSettings.add_options(parser.add_argument_group("settings"))
    options = parser.parse_args(arguments)
    try:
        settings = ExpertSettings(**ExpertSettings.given(options))
        iterate(options.run, settings, lambda figures: print(json.dumps(figures), flush=True))
    except (ValueError, OSError) as error:
        print(f"expert: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("expert: stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
