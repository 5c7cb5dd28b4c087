"""Expert iteration: a network learns from tree search, then leads the search that it learns from.

python -m tokaido_env.agents.learn.expert --run runs/expert

The first expert is `mcts`, which needs no network; each one after it is `policy_search` by the
network of the round before (Anthony, Tian and Barber 2017, "Thinking fast and slow with deep
learning and tree search"; Silver et al. 2018, AlphaZero). An expert plays both sides of many
games. The network learns how often the search visited each action, and as the value the mean of
what the search found and how the game ended.

The folder holds `settings.json`, the network after each round `01`, `02`, …, as policy files, the
positions of the last rounds as `lessons-<round>.npz`, and `rounds.jsonl` with the ratings. The same
command goes on where it was stopped, round by round.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from tokaido_env.agents.arena.ladder import LADDER, Ladder
from tokaido_env.agents.learn.network import (
    MoveNetwork,
    frozen,
    load_weights,
    repeatable,
    seed32,
)
from tokaido_env.agents.learn.ppo import place
from tokaido_env.agents.learn.settings import RunError, Settings
from tokaido_env.agents.players.heuristic import guides_of
from tokaido_env.agents.players.inputs import read_positions
from tokaido_env.agents.players.mcts import MctsAgent
from tokaido_env.agents.players.policy import Policy, PolicyAgent, Sizes
from tokaido_env.agents.players.policy_search import search
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.checks import check_seed, shown
from tokaido_env.core.luck import arena_seed
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.files import locked, read_json, whole_file, write_text

Search = Callable[..., tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]

MAX_SIMS = 2**16 - 1
"""The most simulations for a decision: what lessons can hold as the visits of one action."""


@dataclass(frozen=True)
class Course:
    """What is taught, and how. The defaults take about an hour on two cores.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = 0
    board: str = "shikoku"
    rounds: int = 4  # the first by `mcts`, the others by the network's own search
    first_sims: int = 400  # simulations a decision of `mcts`
    first_positions: int = 3_000_000  # to learn from in the first round
    sims: int = 100  # simulations a decision of `policy_search`
    positions: int = 1_000_000  # to learn from in each round after the first
    kept_rounds: int = 2  # whose positions are learnt from together
    games: int = 1024  # side by side
    epochs: float = 2.0  # times that each position of a round is seen in the round, on average
    minibatch: int = 2048
    learning_rate: float = 1e-3  # of Adam, falling to nothing in each round as a cosine
    width: int = 256  # units of the first layer
    sampled: float = 0.26  # share of decisions drawn by visits, for variety
    uniform: float = 0.04  # share of decisions drawn from all legal actions, for variety

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name, value in asdict(self).items():
            if name != "board":
                _check_range(name, value)
        for name in ("first_sims", "sims"):
            if getattr(self, name) > MAX_SIMS:
                raise RunError(f"{name}: expected 1 to {MAX_SIMS}, got {getattr(self, name)}")
        if self.sampled + self.uniform > 1:
            shares = f"{self.sampled:g} + {self.uniform:g}"
            raise RunError(f"sampled + uniform: expected at most 1, got {shares}")
        if self.width % 8:
            raise RunError(f"width: expected a multiple of 8, got {self.width}")

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        return Sizes.of_width(self.width)


def _check_range(name: str, value: float) -> None:
    if name in ("sampled", "uniform"):
        if not 0 <= value <= 1:
            raise RunError(f"{name}: expected a share from 0 to 1, got {value!r}")
    elif name != "seed" and not 0 < value < inf:
        raise RunError(f"{name}: expected a number above 0, got {value!r}")


class Lessons(NamedTuple):
    """Positions with a choice, of games that ended.

    Attributes:
        states: `STATE` (n,).
        legal: uint64 (n,), the legal actions as bits.
        visits: uint16 (n, N_ACTIONS), by the search.
        values: float32 (n,), what the search found for the player to decide.
        results: float32 (n,), the final result of that player.
    """

    states: npt.NDArray[np.void]
    legal: npt.NDArray[np.uint64]
    visits: npt.NDArray[np.uint16]
    values: npt.NDArray[np.float32]
    results: npt.NDArray[np.float32]


def play_lessons(expert: Search, positions: int, seed: int, course: Course) -> Lessons:
    """Let an expert play both sides of many games and note what it found.

    Args:
        expert: called with boards, guides, states, legal and keys; returns actions, values for
            player_0 and visits.
        positions: about how many; those of games that do not end in time are left out.
        seed: of the games and of the variety.
        course: the shares of varied decisions, the games side by side, the board.

    Raises:
        RunError: if no game has ended by then.
    """
    batch = Batch(course.games, course.board, observation=None, autoreset=True, copy=False)
    batch.reset(seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    games = np.arange(course.games)
    boards = batch.boards_of(games)
    guides = guides_of(boards)
    noted = _Notes(course.games)
    while noted.count < positions:
        states, legal = copy_rows(batch.states, games), batch.legal.copy()
        actions, values, visits = expert(boards, guides, states, legal, batch.keys(games))
        noted.add(states, legal, visits, values)
        varied = _varied(actions, visits, legal, rng, course)
        turn = batch.step(varied)
        noted.end(np.flatnonzero(turn.terminated | turn.truncated), turn.reward)
    lessons = noted.lessons()
    if not len(lessons.legal):
        raise RunError(f"positions: expected enough for a game to end, got {positions}")
    return lessons


class _Notes:
    """Notes positions while games go on, and the results when they end."""

    def __init__(self, games: int) -> None:
        self.count = 0
        self.parts: list[Lessons] = []
        self.open: list[list[tuple[int, int, int]]] = [[] for _ in range(games)]

    def add(self, states: Any, legal: Any, visits: Any, values: Any) -> None:
        """Note the games in which there is a choice."""
        chosen = np.flatnonzero(legal & (legal - np.uint64(1)))
        movers = states["player"][chosen].astype(np.int64)
        own = (values[chosen] * (1 - 2 * movers)).astype(np.float32)
        unknown = np.full(len(chosen), np.nan, np.float32)
        part = Lessons(
            copy_rows(states, chosen),
            legal[chosen],
            visits[chosen].astype(np.uint16),
            own,
            unknown,
        )
        for row, (game, mover) in enumerate(zip(chosen.tolist(), movers.tolist(), strict=True)):
            self.open[game].append((len(self.parts), row, mover))
        self.parts.append(part)
        self.count += len(chosen)

    def end(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.float32]) -> None:
        """Note the results of games that have ended."""
        for game in games.tolist():
            for part, row, mover in self.open[game]:
                self.parts[part].results[row] = rewards[game, mover]
            self.open[game] = []

    def lessons(self) -> Lessons:
        """Return the positions of games that ended."""
        whole = Lessons(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))
        ended = np.flatnonzero(~np.isnan(whole.results))
        return Lessons(
            copy_rows(whole.states, ended),
            whole.legal[ended],
            whole.visits[ended],
            whole.values[ended],
            whole.results[ended],
        )


def _varied(
    actions: npt.NDArray[np.int64],
    visits: npt.NDArray[Any],
    legal: npt.NDArray[np.uint64],
    rng: np.random.Generator,
    course: Course,
) -> npt.NDArray[np.int64]:
    """Replace some of the expert's actions by others, so that games differ."""
    kind, number = rng.random((2, len(actions)))
    by_visits = _drawn(visits, number)
    any_legal = _drawn(legal_rows(legal), number)
    varied = np.where(kind < course.sampled + course.uniform, by_visits, actions)
    return np.where(kind < course.uniform, any_legal, varied)


def _drawn(weights: npt.NDArray[Any], number: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return for each row an index drawn by the weights with a number from [0, 1)."""
    bounds = np.cumsum(weights, axis=1, dtype=np.float64)
    return np.asarray((bounds <= (number * bounds[:, -1])[:, None]).sum(axis=1))


def legal_rows(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return legal actions given as bits, uint64 (n,), as bool (n, N_ACTIONS)."""
    bits = legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64)
    return (bits & np.uint64(1)).astype(np.bool_)


def learn(network: MoveNetwork, lessons: Lessons, steps: int, seed: int, course: Course) -> float:
    """Train a network on lessons; return the mean loss of the last tenth of the steps."""
    board = Board.load(course.board).record
    optimizer = torch.optim.Adam(network.parameters(), lr=course.learning_rate)
    rng = np.random.Generator(np.random.PCG64(seed))
    order, at, losses = rng.permutation(len(lessons.legal)), 0, []
    for step in range(steps):
        if at + course.minibatch > len(order):
            order, at = rng.permutation(len(lessons.legal)), 0
        rows = order[at : at + course.minibatch]
        at += course.minibatch
        for group in optimizer.param_groups:
            group["lr"] = course.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        with repeatable():
            loss = _loss(network, board, lessons, rows)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return float(np.mean(losses[-max(1, steps // 10) :]))


def _loss(
    network: MoveNetwork, board: npt.NDArray[np.void], lessons: Lessons, rows: npt.NDArray[np.int64]
) -> torch.Tensor:
    """Return the cross-entropy to the visits plus the squared error of the value."""
    legal = lessons.legal[rows]
    inputs = read_positions(board, copy_rows(lessons.states, rows), legal)
    allowed = torch.from_numpy(legal_rows(legal))
    logits, values = network(torch.from_numpy(inputs), allowed)
    log_odds = functional.log_softmax(logits.masked_fill(~allowed, -1e9), dim=1)
    visits = torch.from_numpy(lessons.visits[rows].astype(np.float32))
    shares = visits / visits.sum(dim=1, keepdim=True)
    wanted = torch.from_numpy((lessons.values[rows] + lessons.results[rows]) / 2)
    cross_entropy = -(shares * log_odds.masked_fill(~allowed, 0.0)).sum(dim=1).mean()
    return cross_entropy + functional.mse_loss(values[:, 0], wanted)


def teach(
    folder: Path, course: Course, report: Callable[[dict[str, Any]], None] = lambda told: None
) -> Policy:
    """Go through a course, from the first round that its folder does not have.

    Returns:
        The policy of the last round.

    Raises:
        RunError: if the folder belongs to another course.
        InUseError: if another command works in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        return _teach(folder, course, report)


def _teach(folder: Path, course: Course, report: Callable[[dict[str, Any]], None]) -> Policy:
    _open_folder(folder, course)
    torch.manual_seed(seed32(course.seed))
    network = MoveNetwork(course.sizes)
    ladder = Ladder.load(LADDER, course.board)
    policy = frozen(network)
    for number in range(1, course.rounds + 1):
        path = folder / f"{number:02d}"
        if not path.is_file():
            began = time.perf_counter()
            lessons = _lessons_of_round(folder, policy, number, course)
            told: dict[str, Any] = {"round": number, "positions": len(lessons.legal)}
            told["loss"] = round(_learn_round(network, lessons, number, course), 5)
            policy = frozen(network, {"course": asdict(course), "round": number})
            rating = place(PolicyAgent.of(policy, "learner"), ladder, Settings(board=course.board))
            told |= {"elo": rating.elo, "ci95": rating.ci95, "games": rating.games}
            _note(folder, told)
            policy.save(path)  # last: where there is a policy, the round is whole
            report(told | {"seconds": time.perf_counter() - began})
        policy = Policy.load(path)
        load_weights(network, policy)
    return policy


def _learn_round(network: MoveNetwork, lessons: Lessons, number: int, course: Course) -> float:
    steps = max(1, int(course.epochs * len(lessons.legal) / course.minibatch))
    seed = int(arena_seed(course.seed, 2 * number + 1))
    return learn(network, lessons, steps, seed, course)


def _lessons_of_round(folder: Path, policy: Policy, number: int, course: Course) -> Lessons:
    """Return what is learnt in a round: its own positions and those of rounds before."""
    seed = int(arena_seed(course.seed, 2 * number))
    path = folder / f"lessons-{number:02d}.npz"
    if not path.is_file():
        expert, positions = _first_expert(course), course.first_positions
        if number > 1:
            expert, positions = _expert_of(policy, course), course.positions
        _save_lessons(path, play_lessons(expert, positions, seed, course))
    first = max(1, number - course.kept_rounds + 1)
    for old in range(1, first):
        (folder / f"lessons-{old:02d}.npz").unlink(missing_ok=True)
    kept = [_load_lessons(folder / f"lessons-{n:02d}.npz") for n in range(first, number + 1)]
    return Lessons(*(np.concatenate(column) for column in zip(*kept, strict=True)))


def _first_expert(course: Course) -> Search:
    return MctsAgent(course.first_sims).search


def _expert_of(policy: Policy, course: Course) -> Search:
    network = policy.network()

    def expert(boards: Any, guides: Any, states: Any, legal: Any, keys: Any) -> Any:
        return search(network, course.sims, boards, states, legal, keys)

    return expert


def _save_lessons(path: Path, lessons: Lessons) -> None:
    """Write lessons whole or not at all; states as bytes, so that nothing is pickled."""
    arrays = lessons._asdict() | {
        "states": lessons.states.view(np.uint8).reshape(-1, STATE.itemsize)
    }
    with whole_file(path) as file:
        np.savez(file, **arrays)


def _load_lessons(path: Path) -> Lessons:
    with np.load(path, allow_pickle=False) as arrays:
        columns = {name: arrays[name] for name in Lessons._fields}
    return Lessons(**columns | {"states": columns["states"].reshape(-1).view(STATE)})


def _open_folder(folder: Path, course: Course) -> None:
    path = folder / "settings.json"
    if not path.is_file():
        write_text(path, json.dumps(asdict(course), indent=1) + "\n")
    known = read_json(path)
    if not isinstance(known, dict):
        raise RunError(f"{path}: expected an object with the settings, got {shown(known)}")
    differing = [name for name, value in asdict(course).items() if known.get(name) != value]
    if differing:
        told = "; ".join(
            f"{name}: the folder has {shown(known.get(name))}, asked for {getattr(course, name)!r}"
            for name in differing
        )
        raise RunError(f"{folder}: belongs to another course: {told}")


def _note(folder: Path, told: dict[str, Any]) -> None:
    """Write what is told of a round after the rounds before it."""
    path = folder / "rounds.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    lines = [*lines[: told["round"] - 1], json.dumps(told)]
    write_text(path, "\n".join(lines) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="folder to begin or to go on with")
    for one in fields(Course):
        kind = type(one.default)
        parser.add_argument("--" + one.name.replace("_", "-"), type=kind, default=one.default)
    options = parser.parse_args(arguments)
    try:
        course = Course(**{one.name: getattr(options, one.name) for one in fields(Course)})
        teach(options.run, course, lambda told: print(json.dumps(told), flush=True))
    except (ValueError, OSError) as error:
        print(f"expert: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("expert: stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
