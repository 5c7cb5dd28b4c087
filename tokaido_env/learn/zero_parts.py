"""What both modes of expert iteration do: units of a round, learning, the gate, the replay."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from tokaido_env.agents.policy import Policy, PolicyAgent, SightedSizes, path_in_spec
from tokaido_env.agents.registry import make
from tokaido_env.arena.executors import Executor, policy_sha256
from tokaido_env.arena.ladder import Ladder, ladder_for, match_seed
from tokaido_env.arena.series import play_series
from tokaido_env.arena.suite_file import sha256_of
from tokaido_env.arena.tournament import Sheet
from tokaido_env.core.luck import arena_seed
from tokaido_env.learn import sighted
from tokaido_env.learn.boards import boards_seen, summary, told_splits
from tokaido_env.learn.declared import (
    RunError,
)
from tokaido_env.learn.expert import RATING_GAMES, learn
from tokaido_env.learn.network import (
    MoveNetwork,
    frozen,
    load_weights,
    seed32,
    torch_threads,
)
from tokaido_env.learn.rating import place
from tokaido_env.learn.samples import Samples, load_samples
from tokaido_env.learn.self_play import SelfPlayUnit
from tokaido_env.learn.sighted import SightedNetwork
from tokaido_env.learn.zero_folder import (
    GATE,
    LEDGER,
    Figures,
    Folder,
    ZeroSettings,
    settings_of,
)

_GATE_ERROR = 0.05


# Players


def unit_of(
    folder: Folder, number: int, index: int, by: int, settings: ZeroSettings
) -> SelfPlayUnit:
    """Return a unit of a round.

    Args:
        folder: of the run.
        number: of the round, from 1.
        index: within it.
        by: round of the policy that plays it; 0: that which the run begins with.
        settings: of the run.
    """
    expert = f"mcts:sims={settings.first_sims}"
    if by or settings.start_from:
        holder = str(folder.policy(by)) if by else settings.start_from
        expert = make(f"policy_search:{path_in_spec(holder)},sims={settings.sims}").spec
    round_seed = int(arena_seed(settings.seed, number))
    return SelfPlayUnit(
        *(expert, policy_sha256(expert), settings.pool, settings.games),
        *(int(arena_seed(round_seed, index)), settings.sampled, settings.uniform),
        *(settings.full, settings.cheap_sims),
    )


def holder_of(folder: Folder, before: int) -> int:
    """Return the round of the policy that holds the gate before another round's; 0: none passed."""
    passed = [one["round"] for one in folder.lines(GATE) if one["passed"] and one["round"] < before]
    return int(passed[-1]) if passed else 0


def best_of(folder: Folder, settings: ZeroSettings) -> Policy:
    """Return the policy that holds the gate in the end."""
    holder = holder_of(folder, settings.rounds + 1)
    if holder or not settings.start_from:
        return Policy.load(folder.policy(holder or settings.rounds))
    return Policy.load(settings.start_from)


def speed_of(units: int, positions: int, seconds: float) -> Figures:
    """Return the figures of playing."""
    figures: Figures = {"units": units, "positions": positions, "seconds": round(seconds, 1)}
    return figures | ({"positions_a_second": round(positions / seconds)} if seconds > 0 else {})


# The learner


def learnt(
    folder: Folder,
    number: int,
    files: Sequence[Path],
    settings: ZeroSettings,
    each_step: Callable[[], None] = lambda: None,
) -> tuple[Policy, Figures]:
    """Return the policy of a round, learnt from units in their order, and its figures.

    Args:
        folder: of the run, with the policy of the round before.
        number: of the round.
        files: of the units, the new ones last.
        settings: of the run.
        each_step: called before each step of the optimizer.
    """
    parts = [load_samples(file, settings.pool) for file in files]
    new = sum(len(part.legal) for part in parts[-settings.units :])
    network = _first_network(settings)
    if number > 1:
        _load_weights(network, Policy.load(folder.policy(number - 1)))
    steps = max(1, round(settings.samples * new / settings.minibatch))
    seed = _seed_of_learning(number, settings)
    with torch_threads(1):
        loss = learn(network, Samples.join(parts), steps, seed, settings, each_step)
    asked = asdict(settings)
    del asked["rounds"]  # may grow, the policy is the same
    begun = Policy.load(settings.start_from).training if settings.start_from else {}
    boards = summary(settings.pool, told_splits(begun))
    training = {"zero": asked, "round": number, "board": boards}
    figures: Figures = {"window": sum(len(part.legal) for part in parts), "loss": round(loss, 5)}
    figures["samples_a_position"] = round(steps * settings.minibatch / new, 2)
    policy = (
        sighted.frozen(network, training)
        if isinstance(network, SightedNetwork)
        else frozen(network, training)
    )
    return policy, figures


def _first_network(settings: ZeroSettings) -> MoveNetwork | SightedNetwork:
    """Return the network that the first round begins with."""
    start = Policy.load(settings.start_from) if settings.start_from else None
    torch.manual_seed(seed32(settings.seed))
    sizes = start.sizes if start else settings.sizes
    boards = boards_seen(settings.pool, settings.see_board)
    network: MoveNetwork | SightedNetwork
    if isinstance(sizes, SightedSizes):
        network = SightedNetwork(sizes, boards)
    else:
        network = MoveNetwork(sizes, boards)
    if start:
        _load_weights(network, start)
    return network


def _load_weights(network: MoveNetwork | SightedNetwork, policy: Policy) -> None:
    if isinstance(network, SightedNetwork):
        sighted.load_weights(network, policy)
    else:
        load_weights(network, policy)


def _seed_of_learning(number: int, settings: ZeroSettings) -> int:
    return match_seed(settings.seed, "zero", "learn", str(number))


def replay(path: Path) -> int:
    """Learn every round again from the ledger's units.

    Returns:
        How many rounds gave the policy that stands in the ledger.

    Raises:
        RunError: naming the first round or unit that is another now, or is gone.
    """
    folder, settings = Folder(path), settings_of(path)
    lines = folder.lines(LEDGER)
    for one in lines:
        files = [path / "units" / name for name in one["units"]]
        for file in files:
            if not file.is_file() or sha256_of(file) != one["units"][file.name]:
                raise RunError(f"{file}: is not the unit of round {one['round']} in the ledger")
        policy, _ = learnt(folder, one["round"], files, settings)
        with tempfile.TemporaryDirectory() as scratch:
            again = Path(scratch) / "policy"
            policy.save(again)
            same = sha256_of(again) == one["policy"] == sha256_of(folder.policy(one["round"]))
        if not same:
            raise RunError(f"{path}: round {one['round']} gives another policy than the ledger's")
    return len(lines)


def note(folder: Folder, number: int, files: Sequence[Path]) -> None:
    """Write into the ledger what a round was learnt from."""
    units = {file.name: sha256_of(file) for file in files}
    policy = sha256_of(folder.policy(number))
    folder.append(LEDGER, {"round": number, "units": units, "policy": policy})


# The gate


def meet_the_gate(
    folder: Folder, number: int, settings: ZeroSettings, executor: Executor
) -> Figures:
    """Let a policy meet the one that holds the gate; note whether it passes."""
    holder, new = holder_of(folder, number), folder.policy(number)
    figures: Figures = {"round": number, "passed": True}
    if (holder or settings.start_from) and settings.gate_games:
        old = str(folder.policy(holder)) if holder else settings.start_from
        a, b = (make(f"policy:{path_in_spec(path)}") for path in (str(new), old))
        seed = match_seed(settings.seed, "zero", "gate", str(number))
        sheet = Sheet(a.spec, b.spec, settings.gate_games, seed, settings.pool)
        results, stopped = play_series([(a, b)], [sheet], error=_GATE_ERROR, executor=executor)
        if stopped is not None:
            raise stopped
        match, decided = results[0]
        figures |= {"games": int(match.results.size), "score": round(match.score, 4)}
        figures["passed"] = decided != "b"
    if settings.rate_every and number % settings.rate_every == 0:
        ladder = Ladder.load(ladder_for(settings.pool), settings.pool)
        agent = PolicyAgent.of(Policy.load(new), "learner")
        rating = place(agent, ladder, RATING_GAMES, settings.seed)
        figures |= {"elo": round(rating.elo, 1), "ci95": [round(x, 1) for x in rating.ci95]}
    folder.append(GATE, figures)
    return figures
