"""Expert iteration: a network learns from tree search, then leads the search that it learns from.

python -m tokaido_env.agents.learn.expert --run runs/expert

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from tokaido_env.agents.arena.ladder import LADDER, Ladder
from tokaido_env.agents.learn.arrays import read_arrays
from tokaido_env.agents.learn.declared import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    Declared,
    RunError,
    differences,
    enough_memory,
    setting,
)
from tokaido_env.agents.learn.network import (
    MoveNetwork,
    frozen,
    load_weights,
    repeatable,
    seed32,
)
from tokaido_env.agents.learn.rating import place
from tokaido_env.agents.learn.settings import MOST_DECISIONS, check_most, check_width, sweep
from tokaido_env.agents.players.heuristic import guides_of
from tokaido_env.agents.players.inputs import read_positions
from tokaido_env.agents.players.policy import Policy, PolicyAgent, Sizes
from tokaido_env.agents.players.search import MctsAgent, PolicySearchAgent
from tokaido_env.agents.registry import Parameter
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.checks import check_seed, plain
from tokaido_env.core.jit import entry
from tokaido_env.core.luck import arena_seed
from tokaido_env.core.possible import FINE
from tokaido_env.core.rules import legal
from tokaido_env.core.state import STATE, copy_rows
from tokaido_env.files import locked, read_json, whole_file, write_text
from tokaido_env.validity import check_states

Search = Callable[..., tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]

MAX_SIMS = 2**16 - 1
"""The most simulations for a decision: what samples can hold as the visits of one action."""

MOST_FILE = 4 << 30  # bytes of samples

RATING_GAMES = 400  # against each opponent in a rating

_FILES = r"\d+|lessons-\d+\.npz|rounds\.jsonl|settings\.json"  # that are written

_SIMS = Parameter(int, 1, MAX_SIMS)


@dataclass(frozen=True)
class ExpertSettings(Declared):
    """What is learnt, and how. The defaults take about an hour on two cores.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = setting(0, Parameter(int), "of games and network, 0 to 2**53 - 1")
    board: str = setting("shikoku", TEXT, "a built-in board or a file")
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
    learning_rate: float = setting(
        1e-3, RATE, "of Adam, falling to nothing in each round as a cosine"
    )
    width: int = setting(256, COUNT, "units of the network's first layer, a multiple of 8")
    sampled: float = setting(0.26, SHARE, "share of decisions drawn by visits, for variety")
    uniform: float = setting(
        0.04, SHARE, "share of decisions drawn from all legal actions, for variety"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        check_width(self.width)
        check_most("games", self.games, MOST_DECISIONS)
        check_most("minibatch", self.minibatch, MOST_DECISIONS)
        if self.sampled + self.uniform > 1:
            shares = f"{self.sampled:g} + {self.uniform:g}"
            raise RunError(f"sampled + uniform: expected at most 1, got {shares}")

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        return Sizes.of_width(self.width)


class Samples(NamedTuple):
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


def self_play(expert: Search, positions: int, seed: int, settings: ExpertSettings) -> Samples:
    """Let an expert play both sides of many games and note what it found.

    Args:
        expert: called with boards, guides, states, legal and keys; returns actions, values for
            player_0 and visits.
        positions: about how many; those of games that do not end in time are left out.
        seed: of the games and of the other decisions.
        settings: the shares of other decisions, the games side by side, the board.

    Raises:
        RunError: if no game has ended by then.
    """
    batch = Batch(settings.games, settings.board, observation=None, autoreset=True, copy=False)
    batch.reset(seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    games = np.arange(settings.games)
    boards = batch.boards_of(games)
    guides = guides_of(boards)
    buffer = _SampleBuffer(settings.games)
    while buffer.count < positions:
        states, legal = copy_rows(batch.states, games), batch.legal.copy()
        actions, values, visits = expert(boards, guides, states, legal, batch.keys(games))
        buffer.add(states, legal, visits, values)
        played = _explored(actions, visits, legal, rng, settings)
        turn = batch.step(played)
        buffer.end(np.flatnonzero(turn.terminated | turn.truncated), turn.reward)
    samples = buffer.samples()
    if not len(samples.legal):
        raise RunError(f"positions: expected enough for a game to end, got {positions}")
    return samples


class _SampleBuffer:
    """Notes positions while games go on, and the results when they end."""

    def __init__(self, games: int) -> None:
        self.count = 0
        self.parts: list[Samples] = []
        self.open: list[list[tuple[int, int, int]]] = [[] for _ in range(games)]

    def add(self, states: Any, legal: Any, visits: Any, values: Any) -> None:
        """Note the games in which there is a choice."""
        chosen = np.flatnonzero(legal & (legal - np.uint64(1)))
        movers = states["player"][chosen].astype(np.int64)
        own = (values[chosen] * (1 - 2 * movers)).astype(np.float32)
        unknown = np.full(len(chosen), np.nan, np.float32)
        part = Samples(
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

    def samples(self) -> Samples:
        """Return the positions of games that ended."""
        whole = Samples(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))
        ended = np.flatnonzero(~np.isnan(whole.results))
        return Samples(
            copy_rows(whole.states, ended),
            whole.legal[ended],
            whole.visits[ended],
            whole.values[ended],
            whole.results[ended],
        )


def _explored(
    actions: npt.NDArray[np.int64],
    visits: npt.NDArray[Any],
    legal: npt.NDArray[np.uint64],
    rng: np.random.Generator,
    settings: ExpertSettings,
) -> npt.NDArray[np.int64]:
    """Replace some of the expert's actions by others, so that games differ."""
    kind, number = rng.random((2, len(actions)))
    by_visits = _drawn(visits, number)
    any_legal = _drawn(legal_rows(legal), number)
    played = np.where(kind < settings.sampled + settings.uniform, by_visits, actions)
    return np.where(kind < settings.uniform, any_legal, played)


def _drawn(weights: npt.NDArray[Any], number: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return for each row an index drawn by the weights with a number from [0, 1)."""
    bounds = np.cumsum(weights, axis=1, dtype=np.float64)
    return np.asarray((bounds <= (number * bounds[:, -1])[:, None]).sum(axis=1))


def legal_rows(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return legal actions given as bits, uint64 (n,), as bool (n, N_ACTIONS)."""
    bits = legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64)
    return (bits & np.uint64(1)).astype(np.bool_)


def learn(
    network: MoveNetwork, samples: Samples, steps: int, seed: int, settings: ExpertSettings
) -> float:
    """Train a network on samples; return the mean loss of the last tenth of the steps."""
    board = Board.load(settings.board).record
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rng = np.random.Generator(np.random.PCG64(seed))
    order, at, losses = rng.permutation(len(samples.legal)), 0, []
    for step in range(steps):
        if at + settings.minibatch > len(order):
            order, at = rng.permutation(len(samples.legal)), 0
        rows = order[at : at + settings.minibatch]
        at += settings.minibatch
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        with repeatable():
            loss = _loss(network, board, samples, rows)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return float(np.mean(losses[-max(1, steps // 10) :]))


def _loss(
    network: MoveNetwork, board: npt.NDArray[np.void], samples: Samples, rows: npt.NDArray[np.int64]
) -> torch.Tensor:
    """Return the cross-entropy to the visits plus the squared error of the value."""
    legal = samples.legal[rows]
    inputs = read_positions(board, copy_rows(samples.states, rows), legal)
    allowed = torch.from_numpy(legal_rows(legal))
    logits, values = network(torch.from_numpy(inputs), allowed)
    log_odds = functional.log_softmax(logits.masked_fill(~allowed, -1e9), dim=1)
    visits = torch.from_numpy(samples.visits[rows].astype(np.float32))
    shares = visits / visits.sum(dim=1, keepdim=True)
    wanted = torch.from_numpy((samples.values[rows] + samples.results[rows]) / 2)
    cross_entropy = -(shares * log_odds.masked_fill(~allowed, 0.0)).sum(dim=1).mean()
    return cross_entropy + functional.mse_loss(values[:, 0], wanted)


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
    network = MoveNetwork(settings.sizes)
    ladder = Ladder.load(LADDER, settings.board)
    policy = frozen(network)
    for number in range(1, settings.rounds + 1):
        path = folder / f"{number:02d}"
        if not path.is_file():
            began = time.perf_counter()
            samples = _samples_of_round(folder, policy, number, settings)
            figures: dict[str, Any] = {"round": number, "positions": len(samples.legal)}
            figures["loss"] = round(_learn_round(network, samples, number, settings), 5)
            # "course" is what the header of a policy file calls these settings.
            policy = frozen(network, {"course": asdict(settings), "round": number})
            agent = PolicyAgent.of(policy, "learner")
            rating = place(agent, ladder, settings.board, RATING_GAMES)
            figures |= {"elo": rating.elo, "ci95": rating.ci95, "games": rating.games}
            _log_round(folder, figures)
            policy.save(path)  # last: where there is a policy, the round is whole
            report(figures | {"seconds": time.perf_counter() - began})
        policy = Policy.load(path)
        load_weights(network, policy)
    return policy


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
        _save_samples(path, self_play(expert, positions, seed, settings))
    first = max(1, number - settings.kept_rounds + 1)
    for old in range(1, first):
        (folder / f"lessons-{old:02d}.npz").unlink(missing_ok=True)
    files = [folder / f"lessons-{n:02d}.npz" for n in range(first, number + 1)]
    kept = [load_samples(file, settings.board) for file in files]
    return Samples(*(np.concatenate(column) for column in zip(*kept, strict=True)))


def _first_expert(settings: ExpertSettings) -> Search:
    return MctsAgent(settings.first_sims).search


def _expert_of(policy: Policy, settings: ExpertSettings) -> Search:
    return PolicySearchAgent.of(policy, "expert", settings.sims).search


def _save_samples(path: Path, samples: Samples) -> None:
    """Write samples whole or not at all; states as bytes, so that nothing is pickled."""
    arrays = samples._asdict() | {
        "states": samples.states.view(np.uint8).reshape(-1, STATE.itemsize)
    }
    with whole_file(path) as file:
        np.savez(file, **arrays)


def load_samples(path: Path, board: str) -> Samples:
    """Read samples, and check that they are of games on a board.

    Raises:
        RunError: naming the file, what is wrong and what helps.
    """
    try:
        samples = _as_samples(read_arrays(path, MOST_FILE))
        _check_samples(samples, Board.load(board))
        return samples
    except (OSError, ValueError) as error:
        what = plain(str(error), 300)
        number = path.stem.removeprefix("lessons-")
        raise RunError(
            f"{path}: broken samples: {what}: delete it, and the policies {number} and later, to "
            "have them made again"
        ) from None


def _as_samples(arrays: dict[str, npt.NDArray[Any]]) -> Samples:
    """Return arrays as samples, of the dtypes and shapes of these."""
    n = len(arrays["legal"]) if "legal" in arrays and arrays["legal"].ndim else 0
    like: dict[str, tuple[Any, tuple[int, ...]]]
    like = {"states": (np.uint8, (n, STATE.itemsize)), "legal": (np.uint64, (n,))}
    like |= {"visits": (np.uint16, (n, N_ACTIONS))}
    like |= {name: (np.float32, (n,)) for name in ("values", "results")}
    for name, (dtype, shape) in like.items():
        array = arrays.get(name)
        if array is None or array.dtype != dtype or array.shape != shape:
            got = "none" if array is None else f"{array.dtype!s:.80} of shape {array.shape}"
            raise ValueError(f"{name}: expected {np.dtype(dtype)} of shape {shape}, got {got}")
    columns = {name: np.ascontiguousarray(arrays[name]) for name in like}
    return Samples(**columns | {"states": columns["states"].reshape(-1).view(STATE)})


def _check_samples(samples: Samples, board: Board) -> None:
    """Check that games on a board can stand so, with such choices and results."""
    games = np.arange(len(samples.legal))
    check_states([board], board.record, np.zeros_like(games), games, samples.states)
    wrong = first_wrong_mask(board.record, samples.states, samples.legal)
    if wrong != FINE:
        raise ValueError(f"game {wrong}: legal: expected what is legal in its state")
    visits = samples.visits * legal_rows(samples.legal)
    if (visits != samples.visits).any() or not visits.any(axis=1).all():
        raise ValueError("visits: expected some in each position, of legal actions only")
    for name in ("values", "results"):
        if not (np.abs(getattr(samples, name)) <= 1).all():
            raise ValueError(f"{name}: expected numbers from -1 to 1")


@entry
def first_wrong_mask(boards: Any, states: Any, masks: Any) -> int:
    """Return the place of the first mask that is empty or not what is legal in its state, or -1."""
    for j in range(len(masks)):
        if masks[j] == 0 or masks[j] != legal(boards[0], states[j]):
            return j
    return FINE


def _open_folder(folder: Path, settings: ExpertSettings) -> None:
    """Make the folder, or see that it was made with the same settings."""
    path, asked = folder / "settings.json", asdict(settings)
    if not path.is_file():
        write_text(path, json.dumps(asked, indent=1) + "\n")
    own = read_json(path)
    if not isinstance(own, dict):
        raise RunError(f"{path}: expected an object of settings, got a {type(own).__name__}")
    if differing := differences(own, asked):
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
        prog="python -m tokaido_env.agents.learn.expert",
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
