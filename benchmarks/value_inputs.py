"""What a value learns from the same games, by what it reads and how it is taught, in equal time.

    python benchmarks/value_inputs.py
    python benchmarks/value_inputs.py --games 400 --seconds 10 sight entities

One policy plays games against itself. Networks of each variant learn from them who wins, for the
same time on one thread; then each is asked about other games. Told is the loss there, the cross
entropy with how the games ended, beside that of `sight`, in intervals over games. A variant is what
it reads (the observation; the heuristic's terms and outlook beside it; sight beside these; or
entities, by attention) and how it is taught. The bootstrapped values are the policy's own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss

from tokaido_env import Batch
from tokaido_env.agents.heuristic import guides_of
from tokaido_env.agents.inputs import N_SIGHTED, N_TRUNK, read_moves
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.entities import ENTITY_SHAPES, entity_arrays
from tokaido_env.core.observation import N_FEATURES
from tokaido_env.core.rules import scores_of
from tokaido_env.learn.network import torch_threads
from tokaido_env.learn.returns import Nodes, returns_of

_MINIBATCH = 2048
_LEARNING_RATE = 1e-3
_POINTS = 20.0  # unit of the final tracks


class Variant(NamedTuple):
    """What a value reads, and how it is taught."""

    reads: int = N_SIGHTED  # of the numbers of sight, in their order; 0: entities
    width: int = 256
    value_lambda: float = 0.97
    auxiliary: float = 0.1


VARIANTS = {
    "sight": Variant(),
    "heuristic": Variant(reads=N_TRUNK),
    "observation": Variant(reads=N_FEATURES),
    "entities": Variant(reads=0, width=64),
    "width-128": Variant(width=128),
    "width-512": Variant(width=512),
    "width-1024": Variant(width=1024),
    "lambda-0.7": Variant(value_lambda=0.7),
    "lambda-0.9": Variant(value_lambda=0.9),
    "lambda-1": Variant(value_lambda=1.0),
    "auxiliary-0": Variant(auxiliary=0.0),
    "auxiliary-1": Variant(auxiliary=1.0),
}


class Positions(NamedTuple):
    """Decisions of games, and how these ended, for who decides."""

    inputs: torch.Tensor  # bfloat16 (n, N_SIGHTED)
    entities: torch.Tensor  # bfloat16 (m, N_ENTITY_NUMBERS), of the first m of them
    nodes: Nodes
    tracks: torch.Tensor  # float32 (n, 6), the final tracks, mine first

    def results(self) -> torch.Tensor:
        """Return the results, float32 (n,), in [-1, 1]."""
        return torch.from_numpy(self.nodes.results[self.nodes.game] * self.sign())

    def sign(self) -> npt.NDArray[np.float32]:
        """Return 1 where player_0 decides, else -1."""
        return np.asarray(1 - 2 * self.nodes.mover, np.float32)


def play(policy: Policy, games: int, seed: int, with_entities: int) -> Positions:
    """Let a policy play itself, its moves drawn.

    Args:
        policy: both players.
        games: how many.
        seed: of the first.
        with_entities: positions of which entities are kept.
    """
    pool = BoardPool.load()
    agent = PolicyAgent.of(policy, "itself", temperature=1.0)
    guides = guides_of(pool.records)
    batch = Batch(games, pool, observation="entities", autoreset=False, copy=False)
    batch.reset(seed=seed)
    parts: list[tuple[Any, ...]] = []
    entities: list[torch.Tensor] = []
    while (running := np.flatnonzero(~batch.over)).size:
        states, legal = batch.states[running], batch.legal[running]
        boards = batch.boards_of(running)
        inputs, _ = read_moves(pool.records, guides, np.zeros(len(legal), np.int64), states, legal)
        _, values = policy.evaluate(boards, states, legal)
        parts.append((torch.from_numpy(inputs).bfloat16(), running, states["player"], values))
        if sum(map(len, entities)) < with_entities:
            entities.append(_rows(batch.observe(running, states["player"])))
        batch.advance(running, agent.act(boards, states, legal, batch.keys(running)))
    return _noted(batch, parts, entities)


def _rows(seen: Any) -> torch.Tensor:
    """Return what is seen of games in rows of entities."""
    parts = [torch.from_numpy(seen[name]).bfloat16().flatten(1) for name in ENTITY_SHAPES]
    return torch.cat(parts, 1)


def _noted(batch: Batch, parts: list[tuple[Any, ...]], entities: list[torch.Tensor]) -> Positions:
    inputs, game, mover, values = zip(*parts, strict=True)
    games, movers = np.concatenate(game), np.concatenate(mover).astype(np.int8)
    own = np.concatenate(values) * (1 - 2 * movers)
    never = np.full(len(games), -1, np.int64)
    results = batch.rewards(np.arange(len(batch.over)))[:, 0]
    nodes = Nodes(games, movers, own.astype(np.float32), never, np.zeros(0, np.float32), results)
    boards = batch.boards_of(np.arange(1))
    ends = [scores_of(boards, batch.states[i : i + 1], 0) for i in range(len(results))]
    tracks = np.array(ends, np.float32)[games]
    rows = np.arange(len(games))
    both = np.concatenate([tracks[rows, movers], tracks[rows, 1 - movers]], 1)
    return Positions(
        torch.cat(inputs), torch.cat(entities or [torch.empty(0)]), nodes, torch.from_numpy(both)
    )


class Plain(nn.Module):
    """Two layers on numbers."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.reads = variant.reads
        self.first = nn.Linear(variant.reads, variant.width)
        self.second = nn.Linear(variant.width, variant.width // 2)
        self.out = nn.Linear(variant.width // 2, 7)

    def forward(self, positions: Positions, rows: torch.Tensor) -> torch.Tensor:
        """Return log odds / 2, and the final tracks: (n, 7)."""
        units = torch.relu(self.first(positions.inputs[rows, : self.reads]))
        told: torch.Tensor = self.out(torch.relu(self.second(units))).float()
        return told


class Attentive(nn.Module):
    """Two layers of attention between the globals, stations, towns and areas."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        width = variant.width
        self.kinds = [name for name in ENTITY_SHAPES if name in ("stations", "towns", "areas")]
        self.globals = nn.Linear(*ENTITY_SHAPES["globals"], width)
        self.into = nn.ModuleList(nn.Linear(ENTITY_SHAPES[name][1], width) for name in self.kinds)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 7)

    def forward(self, positions: Positions, rows: torch.Tensor) -> torch.Tensor:
        """Return log odds / 2, and the final tracks: (n, 7)."""
        seen = {
            name: torch.from_numpy(array)
            for name, array in entity_arrays(positions.entities[rows].float().numpy()).items()
        }
        tokens = [self.globals(seen["globals"].bfloat16())[:, None]]
        each = zip(self.into, self.kinds, strict=True)
        tokens += [layer(seen[name].bfloat16()) for layer, name in each]
        units = self.layers(torch.cat(tokens, 1), src_key_padding_mask=seen["token_mask"] == 0)
        told: torch.Tensor = self.out(units[:, 0]).float()
        return told


class Learnt(NamedTuple):
    """What a variant came to."""

    losses: npt.NDArray[np.float64]
    """(games,), the mean over each game's decisions."""
    seen: int
    """Positions that it learnt from."""
    parameters: int


def learn(variant: Variant, taught: Positions, asked: Positions, seconds: float) -> Learnt:
    """Train a value on some games for a time, and ask it about others."""
    torch.manual_seed(0)
    model: nn.Module = Attentive(variant) if variant.reads == 0 else Plain(variant)
    masters = [weight.detach().clone().requires_grad_() for weight in model.parameters()]
    model.bfloat16()
    optimizer = torch.optim.Adam(masters, _LEARNING_RATE, eps=1e-5, fused=True)
    returns = returns_of(taught.nodes, variant.value_lambda, 1.0)
    odds = torch.from_numpy((returns.targets * taught.sign() + 1) / 2)
    count = len(taught.inputs if variant.reads else taught.entities)
    generator = torch.Generator().manual_seed(0)
    began, seen = time.perf_counter(), 0
    while (share := (time.perf_counter() - began) / seconds) < 1:
        rows = torch.randint(count, (_MINIBATCH,), generator=generator)
        told = model(taught, rows)
        loss = binary_cross_entropy_with_logits(2 * told[:, 0], odds[rows])
        beside = smooth_l1_loss(told[:, 1:], taught.tracks[rows] / _POINTS)
        (loss + variant.auxiliary * beside).backward()
        _step(model, masters, optimizer, _LEARNING_RATE * (1 + np.cos(np.pi * share)) / 2)
        seen += _MINIBATCH
    parameters = sum(weight.numel() for weight in masters)
    return Learnt(_losses(model, asked), seen, parameters)


def _step(
    model: nn.Module, masters: list[torch.Tensor], optimizer: torch.optim.Optimizer, rate: float
) -> None:
    """Move the weights in float32, and round them."""
    optimizer.param_groups[0]["lr"] = rate
    with torch.no_grad():
        for master, weight in zip(masters, model.parameters(), strict=True):
            assert weight.grad is not None
            master.grad = weight.grad.float()
        optimizer.step()
        for master, weight in zip(masters, model.parameters(), strict=True):
            weight.copy_(master)
    model.zero_grad()


@torch.no_grad()
def _losses(model: nn.Module, asked: Positions) -> npt.NDArray[np.float64]:
    odds = (asked.results() + 1) / 2
    parts = []
    for rows in torch.arange(len(odds)).split(_MINIBATCH):
        told = model(asked, rows)[:, 0]
        parts.append(binary_cross_entropy_with_logits(2 * told, odds[rows], reduction="none"))
    losses, game = torch.cat(parts).double().numpy(), asked.nodes.game
    return np.asarray(np.bincount(game, losses) / np.bincount(game))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("variants", nargs="*", metavar="VARIANT", help=f"some of {', '.join(VARIANTS)} (all)")
    add("--games", type=int, default=8000, help="to learn from (8000)")
    add("--asked", type=int, default=1000, help="to ask about (1000)")
    add("--seconds", type=float, default=60.0, help="that each learns (60)")
    add("--policy", default="challenger", help="who plays (challenger)")
    add("--entities", type=int, default=300_000, help="positions with entities kept (300000)")
    options = parser.parse_args(arguments)
    names = options.variants or list(VARIANTS)
    if unknown := sorted(set(names) - VARIANTS.keys()):
        parser.error(f"{unknown[0]}: expected {', '.join(VARIANTS)}")
    agent = make(options.policy)
    if not isinstance(agent, PolicyAgent):
        parser.error(f"{options.policy}: expected a policy")
    kept = options.entities if "entities" in names else 0
    taught = play(agent.policy, options.games, 0, kept)
    asked = play(agent.policy, options.asked, 10**6, 10**9 if kept else 0)
    print("| variant | parameters | positions | loss | above `sight` |\n|---|---|---|---|---|")
    with torch_threads(1):
        base = learn(VARIANTS["sight"], taught, asked, options.seconds)
        print(_row("sight", base, base.losses), flush=True)
        for name in names:
            if name != "sight":
                learnt = learn(VARIANTS[name], taught, asked, options.seconds)
                print(_row(name, learnt, base.losses), flush=True)
    return 0


def _row(name: str, learnt: Learnt, base: npt.NDArray[np.float64]) -> str:
    more = learnt.losses - base
    error = 1.96 * more.std(ddof=1) / len(more) ** 0.5
    figures = f"{learnt.parameters:,} | {learnt.seen / 1e6:.1f} M | {learnt.losses.mean():.4f}"
    return f"| `{name}` | {figures} | {more.mean():+.4f} ± {error:.4f} |"


if __name__ == "__main__":
    sys.exit(main())
