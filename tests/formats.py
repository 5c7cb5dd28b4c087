"""The formats of files that the fuzzer damages: valid examples, and how each is loaded and used."""

import json
import random
import shutil
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import damaged_arrays
import mutants
import numpy as np
from networks import decisions, random_policy
from positions import random_move, random_walk, shikoku_data
from regrets import drawn_sums, small_set, truth_of
from safetensors.numpy import load as load_tensors, save as save_tensors
from valid_files import GOLDEN, generalisation, with_hash

from tokaido_env import Board, BoardError, Game, PositionError
from tokaido_env.agent import AgentError
from tokaido_env.agents import make
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent, PolicyError
from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import LADDER, Ladder, LadderError
from tokaido_env.arena.result import Result, ResultError
from tokaido_env.batch import Batch
from tokaido_env.boards.board import BOARDS_FOLDER
from tokaido_env.core.arguments import SeedError
from tokaido_env.decoding import Source
from tokaido_env.files import OutputError, parse_json
from tokaido_env.learn import run
from tokaido_env.learn.run_folder import read_config
from tokaido_env.learn.settings import METHODS, RunError
from tokaido_env.observers import masks
from tokaido_env.record import Forfeit, RecordError, load as load_records, save as save_records
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.tables import table_text
from tokaido_env.study.regret import choose_actions, regret_measures, set_entry
from tokaido_env.study.regret_set import RegretSet, RegretSetError
from tokaido_env.tensor_file import read_tensors, write_tensors

Damage = Callable[[random.Random, bytes, list[Any]], bytes]

TINY: dict[str, dict[str, Any]] = {
    "td": {"updates": 1, "games": 4, "minibatch_size": 64, "epochs": 1, "snapshot_every": 1},
    "alphazero": {
        **{"rounds": 1, "shards": 1, "games": 2, "sims": 2},
        **{"minibatch_size": 64, "samples_per_position": 0.1},
    },
}


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the file.
        errors: refuse it.
        damage: returns the damaged content.
        examples: returns valid contents, made in a folder.
        use: loads a file and uses what it loads.
        safe: whether an error names the file, and links and pipes are refused.
    """

    name: str
    errors: tuple[type[Exception], ...]
    damage: Damage
    examples: Callable[[Path], list[bytes]]
    use: Callable[[Path], object]
    safe: bool = True


# Damage


def damage_json(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    return mutants.mutated_json(rng, _with_schema_value(rng, json.loads(data), values))


def _damage_bytes(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    return mutants.mutated_bytes(rng, data)


def damage_hashed(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage a result, mostly with a matching hash."""
    tree = mutants.mutated_tree(rng, _with_schema_value(rng, json.loads(data), values), 2)
    if isinstance(tree, dict) and rng.random() < 0.9:
        tree = with_hash(tree)
    return mutants.json_bytes(tree)


def damage_toml(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    if rng.random() < 0.25:
        return mutants.mutated_bytes(rng, data, 2)
    return mutants.mutated_toml(rng, _with_schema_value(rng, tomllib.loads(data.decode()), values))


def damage_tensors(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage a text in the header, an array, or the file of tensors."""
    header, numbers = damaged_arrays.safetensors_parts(data)
    texts = header["__metadata__"]
    if rng.random() < 0.4:
        key = rng.choice(sorted(texts))
        how = damage_json if texts[key].startswith("{") else _damage_bytes
        texts[key] = how(rng, texts[key].encode(), values).decode(errors="replace")
        return damaged_arrays.safetensors_bytes(header, numbers)
    if rng.random() < 0.5:
        return damaged_arrays.damaged_safetensors(rng, data)
    arrays = load_tensors(data)
    name = rng.choice([name for name, array in arrays.items() if array.ndim])
    array = damaged_arrays.damaged_array(rng, arrays[name])
    if array.dtype.kind in "biuf":
        arrays[name] = np.asarray(array, order="C")
    return bytes(save_tensors(arrays, texts))


def _with_schema_value(rng: random.Random, tree: Any, values: list[Any]) -> Any:
    """Replace a value, in a third of the cases, by one at a limit of the format's types."""
    entries = mutants.entries_of(tree) if isinstance(tree, dict | list) else []
    if entries and values and rng.random() < 0.3:
        container, key = rng.choice(entries)
        container[key] = rng.choice(values)
    return tree


# Records, boards and positions


def _records(folder: Path) -> list[bytes]:
    records = load_records(GOLDEN / "games.jsonl")[:6]
    game = Game(seed=0)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    seat = int(game.player == 1)
    lost = Forfeit(seat, "illegal", "RuntimeError: no idea")
    records.append(replace(game.record(), forfeit=lost, end="forfeit", winner=1 - seat))
    return [record.to_json().encode() for record in records]


def _use_records(path: Path) -> None:
    records = load_records(path)
    again = path.with_name("again.jsonl")
    save_records(records, again)
    assert load_records(again) == records


def _boards(folder: Path) -> list[bytes]:
    texts = [path.read_bytes() for path in sorted(BOARDS_FOLDER.glob("*.toml"))[:3]]
    other = Board.from_dict(shikoku_data() | {"name": "short", "max_rounds": 7})
    return [*texts, *(board.to_toml().encode() for board in (Board.generate(3), other))]


def _use_board(path: Path) -> None:
    """Play on a board; its data and its text give the same board."""
    board = Board.load(path)
    assert Board.from_dict(board.to_dict()) == replace(board, source="the board")
    _finish(Batch(2, board, autoreset=False), seed=0)


def _finish(batch: Batch, seed: int, positions: Any = None) -> None:
    batch.reset(seed, positions)
    turn = batch.finish("random")
    assert batch.over.all()
    assert 0 <= turn.observation.min() <= turn.observation.max() <= 1


def _positions(folder: Path) -> list[bytes]:
    walks = (random_walk(seed, 35 * seed, number) for seed in range(12) for number in ("shikoku",))
    return [json.dumps(game.to_dict()).encode() for game in walks]


def _use_position(path: Path) -> None:
    try:
        given = parse_json(path.read_bytes().decode(errors="replace"))
    except ValueError as error:
        raise PositionError(str(error)) from None
    game = Game.from_dict(given, board="shikoku", chance="explicit")
    assert _canonical(game.to_dict()) == _canonical(given)
    _finish(Batch(1, autoreset=False), 0, game.states)
    for _ in range(5):
        if not game.is_over:
            game.play(random_move(game, random.Random(0)))
    assert Game.from_dict(game.to_dict(), chance="explicit") == game


def _canonical(given: Any) -> str:
    """Return JSON with sorted dice."""
    return json.dumps(given | {"dice_left": sorted(given["dice_left"])}, sort_keys=True)


# Results


def _ladders(folder: Path) -> list[bytes]:
    whole = json.loads(LADDER.read_text(encoding="utf-8"))
    few = {"greedy", "heuristic", "mcts:sims=100", "champion"}
    matches = [one for one in whole["scores"] if few >= {one["a"], one["b"]}]
    played = {one[side] for one in matches for side in "ab"}
    ratings = [one for one in whole["estimates"] if one["agent"] in played]
    short = whole | {"anchor": "greedy", "estimates": ratings, "scores": matches}
    unfinished = short | {"estimates": []}
    return [mutants.json_bytes(with_hash(one)) for one in (short, unfinished)]


def _use_ladder(path: Path) -> None:
    again = path.with_name("again.json")
    loaded = Ladder.load(path)
    loaded.result.save(again)
    assert Ladder.load(again).result == loaded.result
    assert all(cost_of(one.agent) >= 0 for one in loaded.agents)


def _results(folder: Path) -> list[bytes]:
    generalised, regret_set = generalisation(), small_set(most=4)
    few = {"boards": generalised["boards"][:1], "scores": generalised["scores"][:2]}
    measures = regret_measures(regret_set, choose_actions(make("greedy"), regret_set))
    regret = {"protocol": "regret", "boards": [set_entry(regret_set).to_dict()], "scores": []}
    regret |= {"agents": ["greedy"], "estimates": [one.to_dict() for one in measures]}
    changes: tuple[dict[str, Any], ...] = ({}, {"trained_on": "shikoku"}, few, regret)
    return [mutants.json_bytes(with_hash(generalised | one)) for one in changes]


def _use_results(path: Path) -> None:
    """Load a result again, and print it; its scores may not belong to its protocol."""
    result = Result.load(path)
    again = path.with_name("again.json")
    result.save(again)
    assert Result.load(again) == result
    assert len(result.to_frame()) == len(result.scores) + len(result.estimates)
    with suppress(ResultError):
        assert all(table_text(table, 80) for table in tables_of(result))


def _regrets(folder: Path) -> list[bytes]:
    rng, loaded = np.random.default_rng(0), small_set(most=4)
    full = replace(loaded, sums=drawn_sums(loaded, truth_of(loaded, rng, 0.3), rng, few=2))
    full.save(folder / "set.npz")
    return [(folder / "set.npz").read_bytes()]


def damage_regrets(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage the card or an array, with a matching hash, or the bytes of the file."""
    if rng.random() < 0.2:
        return mutants.mutated_bytes(rng, data)
    path = Path("valid.npz")
    path.write_bytes(data)
    loaded = RegretSet.load(path)
    if rng.random() < 0.5:
        card = mutants.mutated_tree(rng, _with_schema_value(rng, dict(loaded.card), values), 2)
        changed: dict[str, Any] = {"card": card if isinstance(card, dict) else {}}
    else:
        name = rng.choice(("states", "board", "stratum", "starts", "actions", "sums"))
        changed = {name: damaged_arrays.damaged_array(rng, getattr(loaded, name))}
    replace(loaded, **changed).save(path)
    return path.read_bytes()


def _use_regrets(path: Path) -> None:
    again = path.with_name("again.npz")
    loaded = RegretSet.load(path)
    loaded.save(again)
    assert RegretSet.load(again).hash == loaded.hash


# Networks and runs


def _policies(folder: Path) -> list[bytes]:
    random_policy(LayerSizes(8, 3)).save(folder / "policy")
    return [(folder / "policy").read_bytes()]


def _use_policy(path: Path) -> None:
    """Save the loaded policy, load it again, and use it in positions of all phases."""
    policy = Policy.load(path)
    policy.save(path.with_name("again"))
    again = Policy.load(path.with_name("again"))
    assert all(t.tobytes() == again.tensors[name].tobytes() for name, t in policy.tensors.items())
    boards, states, legal = decisions(("shikoku", "family:7"), games=2, moves=40, most=2)
    given = boards, states, legal, np.arange(len(states), dtype=np.uint64)
    agent, rows = PolicyAgent.from_policy(policy, "policy:x", 0.01), masks(legal)
    chosen = agent.act(*given)
    assert rows[np.arange(len(chosen)), chosen].all()
    probabilities, values = agent.judge(*given)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-4)
    assert (np.abs(values) <= 1).all()


def _configs(folder: Path) -> list[bytes]:
    found = []
    for method in METHODS:
        run.begin(folder / "config", METHODS[method](width=8, **TINY[method]))
        found.append((folder / "config" / "config.toml").read_bytes())
        shutil.rmtree(folder / "config")
    return found


def _use_config(path: Path) -> None:
    method, values = read_config(path)
    kind = METHODS[method or "td"]
    settings = kind(**TINY[method or "td"] | values)
    assert kind(**asdict(settings)) == settings


class _WouldTrainError(Exception):
    """Ends a resume before training."""


def _checkpoints(folder: Path, method: str) -> list[bytes]:
    run.begin(folder / "run", METHODS[method](width=8, **TINY[method]))
    assert run.train(folder / "run")
    (newest,) = sorted((folder / "run").glob("checkpoints/*.safetensors"))[-1:]
    return [newest.read_bytes()]


def _resume(path: Path) -> None:
    """Resume a run with a checkpoint, up to the start of training."""
    (newest,) = sorted((path.parent / "run").glob("checkpoints/*.safetensors"))[-1:]
    shutil.copy(path, newest)
    with suppress(OSError, ValueError):
        header, arrays = read_tensors(newest, run.MAX_BYTES)
        write_tensors(newest, arrays, header)  # with a matching checksum

    def stop(progress: run.Progress) -> None:
        json.dumps(progress.figures, allow_nan=False)
        raise _WouldTrainError

    before = signal.getsignal(signal.SIGINT)
    with suppress(_WouldTrainError):
        try:
            run.train(path.parent / "run", stop)
        finally:
            signal.signal(signal.SIGINT, before)


_RUN_ERRORS = (RunError, AgentError, BoardError, LadderError, SeedError, OutputError)
FORMATS = {
    "records": Format("games.jsonl", (RecordError,), damage_json, _records, _use_records, False),
    "boards": Format("board.toml", (BoardError,), damage_toml, _boards, _use_board),
    "positions": Format(
        "position", (PositionError,), damage_json, _positions, _use_position, False
    ),
    "ladders": Format(
        "ladder.json", (LadderError, AgentError), damage_hashed, _ladders, _use_ladder
    ),
    "results": Format("results.json", (ResultError,), damage_hashed, _results, _use_results),
    "regrets": Format("set.npz", (RegretSetError,), damage_regrets, _regrets, _use_regrets),
    "policies": Format("policy", (PolicyError,), damage_tensors, _policies, _use_policy),
    "configs": Format("my.toml", _RUN_ERRORS, damage_toml, _configs, _use_config, False),
    **{
        f"runs of {method}": Format(
            "checkpoint",
            _RUN_ERRORS,
            damage_tensors,
            partial(_checkpoints, method=method),
            _resume,
            safe=False,
        )
        for method in METHODS
    },
}


@contextmanager
def schemas() -> Iterator[list[Any]]:
    """Yield a list of the types that `Source.decode` decodes in this context."""
    found: list[Any] = []
    decode = Source.decode

    def noted(self: Source, kind: Any) -> Any:
        found.append(kind)
        return decode(self, kind)

    Source.decode = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Source.decode = decode  # type: ignore[method-assign]
