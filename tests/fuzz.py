"""Fuzzing: damaged files of every format are taken and can be used, or are refused.

    python tests/fuzz.py N [--only FORMAT ...] [--seed S]
    python tests/fuzz.py --only FORMAT --case K      run one case again, with its traceback

Each format of `FORMATS` gets N cases. The damage is random; it includes the limits and names in the
types with which the library decodes the format. A refusal is a declared error: its message is one
line of at most 500 characters. Everything else is a defect: another error, a started process, the
end of this process, a case of more than a minute, or more than 1 GiB of memory.
With NUMBA_BOUNDSCHECK=1 the kernels check their indices.
"""

import argparse
import copy
import faulthandler
import functools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import numpy as np
from networks import decisions, random_policy
from positions import random_move, random_walk, shikoku_data, toml_text
from regrets import drawn_sums, small_set, truth_of
from safetensors.numpy import load as load_tensors, save as save_tensors
from valid_files import GOLDEN, generalisation, with_hash

from tokaido_env import Board, BoardError, Game, PositionError
from tokaido_env.agent import AgentError
from tokaido_env.agents import make
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent, PolicyError
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
from tokaido_env.tensor_file import SHA256

TESTS = Path(__file__).resolve().parent
# Flushing a file takes milliseconds on a disk, and nothing in memory.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
GIB = 1 << 30
MAX_SECONDS = 60.0  # for a case; the examples, which compile kernels, get five times that
MAX_MESSAGE = 500  # characters
STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen")
"""Audit events that no file may cause."""


# Damage to trees of JSON types

WRONG: tuple[Any, ...] = (
    *(0, 1, -1, 2, 127, 128, 255, 256, 1000, 2**31, 2**53, 2**63, -(2**63) - 1, 10**30, 10**400),
    *(0.5, -0.0, 1.0, 1e-320, 1e308, float("nan"), float("inf"), None, True, False, [], {}, [[]]),
    *("", "x", "a" * 9999, "\x1b[31m\u2028", "\x00", "\ud800", "../../etc/passwd", "/dev/zero"),
    *("python:subprocess:Popen,args=true", "policy:/dev/zero", "mcts:sims=999999999", "shikoku"),
    *("1", "random", "greedy", [0] * 1000, {str(i): i for i in range(300)}),
)
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]

Entries = list[tuple[Any, Any]]
"""Containers, dicts or lists, and a key of each."""


def damaged_tree(rng: random.Random, tree: Any, values: list[Any]) -> Any:
    """Return a copy of a tree with one to three changes; `values` are of the format's types."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, 3)):
        entries = entries_of(tree)
        if not entries:
            return DEEP
        container, key = rng.choice(entries)
        change = rng.choices((_replace, _nudge, _drop, _add, _repeat), (6, 6, 2, 2, 1))[0]
        change(rng, container, key, values)
    return tree


def entries_of(data: Any) -> Entries:
    """Return every entry of a tree: its container and its key."""
    entries: Entries = []
    left = [data] if isinstance(data, dict | list) else []
    while left:
        container = left.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        entries += [(container, key) for key in keys]
        left += [container[key] for key in keys if isinstance(container[key], dict | list)]
    return entries


def _wrong(rng: random.Random, values: list[Any]) -> Any:
    if values and rng.random() < 0.4:
        return rng.choice(values)
    return copy.deepcopy(rng.choice((*WRONG, DEEP)))


def _replace(rng: random.Random, container: Any, key: Any, values: list[Any]) -> None:
    container[key] = _wrong(rng, values)


def _nudge(rng: random.Random, container: Any, key: Any, values: list[Any]) -> None:
    """Change a number a little, change a letter, or copy another entry of the container."""
    old = container[key]
    if isinstance(old, int | float):
        container[key] = not old if isinstance(old, bool) else old + rng.choice((-1, 1, 3, -10))
    elif isinstance(old, str) and old:
        at = rng.randrange(len(old))
        container[key] = old[:at] + rng.choice("abC1:.\x7f") + old[at + rng.randint(0, 1) :]
    else:
        others = list(container.values()) if isinstance(container, dict) else container
        container[key] = copy.deepcopy(rng.choice(others))


def _drop(rng: random.Random, container: Any, key: Any, values: list[Any]) -> None:
    del container[key]


def _add(rng: random.Random, container: Any, key: Any, values: list[Any]) -> None:
    if isinstance(container, list):
        container.insert(key, rng.choice((_wrong(rng, values), copy.deepcopy(container[key]))))
    else:
        container[rng.choice((f"{key}s", str(key)[:-1], "\x1b[31m", ""))] = container[key]


def _repeat(rng: random.Random, container: Any, key: Any, values: list[Any]) -> None:
    """Repeat an item many times, or put it into a list."""
    if isinstance(container, list) and len(container) < 1000:
        container[key:key] = [copy.deepcopy(container[key])] * 100
    else:
        container[key] = [container[key]]


def limit_values(kinds: list[Any]) -> list[Any]:
    """Return the names in the types of a format, and numbers at and beyond their limits."""
    found: list[Any] = []
    left: list[Any] = [msgspec.json.schema(kind) for kind in dict.fromkeys(kinds)]
    while left:
        schema = left.pop()
        left += schema.values() if isinstance(schema, dict) else schema
        left = [one for one in left if isinstance(one, dict | list)]
        if isinstance(schema, dict):
            for key, step in (("minimum", -1), ("maximum", 1), ("exclusiveMaximum", 0)):
                if isinstance(schema.get(key), int | float):
                    found += [schema[key], schema[key] + step]
            if isinstance(schema.get("pattern"), str):
                found += schema["pattern"].strip("^$").removesuffix("\\Z").strip("()").split("|")
    return sorted(set(found), key=str)


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


# Damage to bytes, arrays and files

TOKENS = (
    *(b"[", b"]", b"{", b"}", b'"', b"'", b",", b":", b"=", b"\n", b"\\", b"\x00", b"#", b"-"),
    *(b"\\ud800", b"9" * 5000, b"[" * 20_000, b'{"":' * 2000, b"\xff", b"\xef\xbb\xbf", b"NaN"),
    *(b"1e999", b"\x1b[2J"),
)


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with one to four changes: flips, cuts, repeats, insertions."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 8, 100))
        flipped = bytes(one ^ 1 << rng.randrange(8) for one in data[at : at + 1])
        data = rng.choice(
            (
                data[:at] + flipped + data[at + 1 :],
                data[:at] + rng.randbytes(length) + data[at + length :],
                data[:at] + data[at + length :],
                data[:at] + data[max(0, at - length) :],
                data[:at] + rng.choice(TOKENS) + data[at:],
                data[:at] if rng.random() < 0.3 else data,
            )
        )
    return data


def damaged_array(rng: random.Random, array: Any) -> Any:
    """Return an array with other values, another shape or another dtype."""
    raw = bytearray(array.tobytes())
    for _ in range(rng.choice((1, 3, 50)) if raw else 0):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    fill = rng.choice((b"\xff", b"\x7f", b"\x80", b"\x01", rng.randbytes(1))) * array.nbytes
    forms: tuple[Callable[[], Any], ...] = (
        lambda: np.frombuffer(bytes(raw), array.dtype).reshape(array.shape),
        lambda: np.frombuffer(fill, array.dtype).reshape(array.shape),
        lambda: array[: rng.randrange(len(array) + 1)],
        lambda: array[None],
        lambda: array.T,
        lambda: np.concatenate([array, array]),
        lambda: np.zeros(array.shape, rng.choice(("f8", "i8", "i4", "u1", "f2"))),
    )
    return np.asarray(rng.choices(forms, (4, 2, 1, 1, 1, 1, 1))[0](), order="C")


def damaged_toml(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    tree = damaged_tree(rng, tomllib.loads(data.decode()), values)
    text = toml_text(tree if isinstance(tree, dict) else {"": tree})
    return _mostly(rng, text.encode("utf-8", "backslashreplace"))


def damaged_json(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    return _mostly(rng, _json_bytes(damaged_tree(rng, json.loads(data), values)))


def damaged_result(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage a result, with a matching hash."""
    tree = damaged_tree(rng, json.loads(data), values)
    return _mostly(rng, _json_bytes(with_hash(tree) if isinstance(tree, dict) else tree))


def _mostly(rng: random.Random, data: bytes) -> bytes:
    """Return a file as it is, mostly, or with damaged bytes."""
    return data if rng.random() < 0.75 else damaged_bytes(rng, data)


def _json_bytes(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace")


def damaged_tensors(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage a text in the header or an array, mostly without a hash, or the bytes of the file."""
    if rng.random() < 0.2:
        return damaged_bytes(rng, data)
    arrays, end = load_tensors(data), 8 + int.from_bytes(data[:8], "little")
    texts = json.loads(data[8:end])["__metadata__"]
    if rng.random() < 0.9:
        del texts[SHA256]
    if rng.random() < 0.4:
        key = rng.choice(sorted(texts))
        text = texts[key].encode()
        changed = damaged_json(rng, text, values) if text[:1] == b"{" else damaged_bytes(rng, text)
        texts[key] = changed.decode(errors="replace")
    else:
        name = rng.choice([name for name, array in arrays.items() if array.ndim])
        arrays[name] = damaged_array(rng, arrays[name])
    return bytes(save_tensors(arrays, texts))


def damaged_regrets(rng: random.Random, data: bytes, values: list[Any]) -> bytes:
    """Damage the card or an array, with a matching hash, or the bytes of the file."""
    if rng.random() < 0.2:
        return damaged_bytes(rng, data)
    path = Path("valid.npz")
    path.write_bytes(data)
    loaded = RegretSet.load(path)
    if rng.random() < 0.5:
        changed: dict[str, Any] = {"card": damaged_tree(rng, dict(loaded.card), values)}
    else:
        name = rng.choice(("states", "board", "stratum", "starts", "actions", "sums"))
        changed = {name: damaged_array(rng, getattr(loaded, name))}
    replace(loaded, **changed).save(path)
    return path.read_bytes()


# Formats: valid files, and how each is loaded and used

TINY: dict[str, dict[str, Any]] = {
    "td": {"updates": 1, "games": 4, "minibatch_size": 64, "epochs": 1, "snapshot_every": 1},
    "alphazero": {
        **{"rounds": 1, "shards": 1, "games": 2, "sims": 2},
        **{"minibatch_size": 64, "samples_per_position": 0.1},
    },
}


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
    return [json.dumps(random_walk(seed, 35 * seed).to_dict()).encode() for seed in range(12)]


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


def _ladders(folder: Path) -> list[bytes]:
    whole = json.loads(LADDER.read_text(encoding="utf-8"))
    few = {"greedy", "heuristic", "mcts:sims=100", "champion"}
    matches = [one for one in whole["scores"] if few >= {one["a"], one["b"]}]
    played = {one[side] for one in matches for side in "ab"}
    ratings = [one for one in whole["estimates"] if one["agent"] in played]
    short = whole | {"anchor": "greedy", "estimates": ratings, "scores": matches}
    return [_json_bytes(with_hash(one)) for one in (short, short | {"estimates": []})]


def _use_ladder(path: Path) -> None:
    again = path.with_name("again.json")
    loaded = Ladder.load(path)
    loaded.result.save(again)
    assert Ladder.load(again).result == loaded.result


def _results(folder: Path) -> list[bytes]:
    generalised, regret_set = generalisation(), small_set(most=4)
    few = {"boards": generalised["boards"][:1], "scores": generalised["scores"][:2]}
    measures = regret_measures(regret_set, choose_actions(make("greedy"), regret_set))
    regret = {"protocol": "regret", "boards": [set_entry(regret_set).to_dict()], "scores": []}
    regret |= {"agents": ["greedy"], "estimates": [one.to_dict() for one in measures]}
    changes: tuple[dict[str, Any], ...] = ({}, {"trained_on": "shikoku"}, few, regret)
    return [_json_bytes(with_hash(generalised | one)) for one in changes]


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


def _use_regrets(path: Path) -> None:
    again = path.with_name("again.npz")
    loaded = RegretSet.load(path)
    loaded.save(again)
    assert RegretSet.load(again).hash == loaded.hash


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
    agent.judge(*given)


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

    def stop(progress: run.Progress) -> None:
        json.dumps(progress.figures, allow_nan=False)
        raise _WouldTrainError

    before = signal.getsignal(signal.SIGINT)
    with suppress(_WouldTrainError), mock.patch.object(run, "Logs"):  # it starts a thread
        try:
            run.train(path.parent / "run", stop)
        finally:
            signal.signal(signal.SIGINT, before)


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the file.
        errors: refuse it.
        damage: returns damaged contents, of valid ones and values of the format's types.
        examples: returns valid contents, made in a folder.
        use: loads a file and uses what it loads.
        is_named: whether an error names the file.
    """

    name: str
    errors: tuple[type[Exception], ...]
    damage: Callable[[random.Random, bytes, list[Any]], bytes]
    examples: Callable[[Path], list[bytes]]
    use: Callable[[Path], object]
    is_named: bool = True


_RUN_ERRORS = (RunError, AgentError, BoardError, LadderError, SeedError, OutputError)
FORMATS = {
    "records": Format("games.jsonl", (RecordError,), damaged_json, _records, _use_records),
    "boards": Format("board.toml", (BoardError,), damaged_toml, _boards, _use_board),
    "positions": Format(
        "position", (PositionError,), damaged_json, _positions, _use_position, is_named=False
    ),
    "ladders": Format(
        "ladder.json", (LadderError, AgentError), damaged_result, _ladders, _use_ladder
    ),
    "results": Format("results.json", (ResultError,), damaged_result, _results, _use_results),
    "regrets": Format("set.npz", (RegretSetError,), damaged_regrets, _regrets, _use_regrets),
    "policies": Format("policy", (PolicyError,), damaged_tensors, _policies, _use_policy),
    "configs": Format("my.toml", _RUN_ERRORS, damaged_toml, _configs, _use_config, is_named=False),
    **{
        f"runs of {method}": Format(
            *(
                "checkpoint",
                _RUN_ERRORS,
                damaged_tensors,
                functools.partial(_checkpoints, method=method),
            ),
            _resume,
            is_named=False,
        )
        for method in METHODS
    },
}


# Running


class Fuzzer:
    """Damages the examples of one format, in a new folder that becomes the working directory."""

    def __init__(self, name: str, folder: Path, seed: int = 0) -> None:
        os.chdir(folder)
        self.name, self.seed, self.format = name, seed, FORMATS[name]
        self.path = folder / self.format.name
        self.examples = self.format.examples(folder)
        with schemas() as found:
            for data in self.examples:
                self.path.write_bytes(data)
                self.format.use(self.path)
        self.values = limit_values(found)

    def case(self, number: int) -> str:
        """Run a case; return the message of its refusal, "" if the file was taken."""
        rng = random.Random(f"{self.name} {self.seed} {number}")
        self.path.write_bytes(self.format.damage(rng, rng.choice(self.examples), self.values))
        message, started = "", audited_starts()
        started.clear()
        try:
            self.format.use(self.path)
        except self.format.errors as error:
            message = str(error)
            check_message(message, self.path if self.format.is_named else "")
        assert not started, started
        return message


@functools.cache
def audited_starts() -> list[str]:
    """Return a list that gets the audit events of `STARTS` from now on."""
    events: list[str] = []
    sys.addaudithook(lambda event, _: events.append(event) if event in STARTS else None)
    return events


def check_message(message: str, names: object = "") -> None:
    """Check that a message is one short printable line, however long the input."""
    assert message.isprintable(), f"not one plain line: {message!r}"
    assert 0 < len(message.replace(str(names), "")) <= MAX_MESSAGE, f"{len(message)} characters"
    assert str(names) in message, f"does not name {names}: {message}"


def fuzz(name: str, n: int, seed: int) -> int:
    """Run n cases of a format; print a row of the results; return the number of defects."""
    counts, began = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY) as folder:
        faulthandler.dump_traceback_later(5 * MAX_SECONDS, exit=True)
        fuzzer = Fuzzer(name, Path(folder), seed)
        limit_memory()
        for number in range(n):
            faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
            try:
                counts["refused" if fuzzer.case(number) else "taken"] += 1
            except Exception as error:
                counts["defects"] += 1
                print(f"{name}: case {number}: {type(error).__name__}: {str(error)[:300]}")
        faulthandler.cancel_dump_traceback_later()
        os.chdir(TESTS)
    seconds = time.monotonic() - began
    print(f"{name:<18} {n:>7} cases, {counts['taken'] / n:6.1%} taken, {seconds:.0f} s", flush=True)
    return counts["defects"]


def limit_memory() -> None:
    """Limit the memory of this process to 1 GiB more than it has."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(line for line in status.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + GIB
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("n", nargs="?", type=int, default=1000, help="cases of each format (default: 1000)")
    add("--only", nargs="+", choices=FORMATS, default=list(FORMATS), metavar="FORMAT")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--case", type=int, help="run only this case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case is not None:
        (name,) = options.only
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY) as folder:
            print(Fuzzer(name, Path(folder), options.seed).case(options.case) or "taken")
        return 0
    return int(any([fuzz(name, options.n, options.seed) for name in options.only]))


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS.parent))
    sys.exit(main())
