"""Tests of `Batch`: each game depends on its seed and its moves only."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
from learner_games import reward_of
from positions import other_board_data, position, random_walk, shikoku_data, write_board
from processes import run_script

from tokaido_env import Game, IllegalMove
from tokaido_env.agents import Agent, make
from tokaido_env.batch import Batch, TimeStep
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import MAX_SEED
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.bots import BOTS, GREEDY, NO_BOT, random_actions
from tokaido_env.core.jit import INTERPRETED, PARALLEL_FROM
from tokaido_env.core.observation import N_FEATURES, SCALES, encode_game
from tokaido_env.core.rng import agent_keys, episode_seed, game_seed
from tokaido_env.core.state import Phase

Ints = npt.NDArray[np.int64]

FEW = 3 if INTERPRETED else 12
MANY = PARALLEL_FROM + 200
UNKNOWN_MOVE = 2**40

needs_threads = pytest.mark.skipif(
    INTERPRETED or numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads"
)


# Reference: single games


class SingleGames:
    """Single games that produce the `TimeStep` expected of a batch of them.

    Args:
        games: the games in their initial positions.
        seeds: seeds of their first episodes.
        autoreset: as for `Batch`.
        margin: whether the reward is the score margin.
    """

    def __init__(
        self,
        games: Iterable[Game],
        seeds: Sequence[int],
        autoreset: bool = True,
        margin: bool = False,
    ) -> None:
        self.games = list(games)
        self.seeds, self.autoreset, self.margin = seeds, autoreset, margin
        self.episodes = [0] * len(self.games)

    def first(self) -> TimeStep:
        return self.timestep([self.no_move(game) for game in self.games])

    def step(self, moves: Iterable[int]) -> TimeStep:
        return self.timestep([self.play(i, int(move)) for i, move in enumerate(moves)])

    def play(self, i: int, move: int) -> dict[str, Any]:
        """Play a move of game `i`, if it is not over, and return the results of the step."""
        game = self.games[i]
        if game.is_over:
            return self.no_move(game)
        player = seat(game)
        game.play(move)
        results = {
            "reward": rewards_of(game, self.margin),
            "terminated": game.is_over,
            "player": player,
            "next_player": seat(game),
        }
        if game.is_over and self.autoreset:
            self.episodes[i] += 1
            seed = episode_seed(self.seeds[i], self.episodes[i])
            self.games[i] = Game(game.board, seed=seed, chance=game.chance)
        return results

    def no_move(self, game: Game) -> dict[str, Any]:
        results = {"reward": (0, 0), "terminated": False}
        return results | {"player": -1, "next_player": seat(game)}

    def timestep(self, results: Sequence[dict[str, Any]]) -> TimeStep:
        games = self.games
        masks = [[game.legal_mask >> action & 1 for action in range(N_ACTIONS)] for game in games]
        return TimeStep(
            observation=np.array([observation_of(game, max(seat(game), 0)) for game in games]),
            mask=np.array(masks, np.int8),
            legal=np.array([game.legal_mask for game in games], np.uint64),
            mover=np.array([seat(game) for game in games], np.int8),
            reward=np.array([each["reward"] for each in results], np.float32),
            terminated=np.array([each["terminated"] for each in results]),
            player=np.array([each["player"] for each in results], np.int8),
            next_player=np.array([each["next_player"] for each in results], np.int8),
        )


def single_games(seeds: Sequence[int], board: Any = "shikoku", **options: Any) -> SingleGames:
    return SingleGames((Game(board, seed=seed) for seed in seeds), seeds, **options)


def seeds_of(seed: int, games: int) -> list[int]:
    """Return the seeds of the first games of a seed."""
    return [game_seed(seed, i) for i in range(games)]


def seat(game: Game) -> int:
    return -1 if game.player is None else game.player


def observation_of(game: Game, by: int) -> npt.NDArray[np.float32]:
    out = np.empty(N_FEATURES, np.float32)
    encode_game(game.boards, game.states, 0, by, out)
    return out


def rewards_of(game: Game, margin: bool) -> list[float]:
    """Return the rewards of both seats in the current position."""
    return [reward_of(game, by, "margin" if margin else "win") for by in range(2)]


def assert_same(timestep: TimeStep, expected: TimeStep) -> None:
    for name, actual, wanted in zip(TimeStep._fields, timestep, expected, strict=True):
        assert actual.dtype == wanted.dtype, name
        assert np.array_equal(actual, wanted), name


# Moves and contents of a batch


def random_legal_actions(rng: random.Random, timestep: TimeStep) -> Ints:
    return np.array([rng.choice(actions_of(int(mask))) for mask in timestep.legal])


def random_moves(rng: random.Random, batch: Batch, timestep: TimeStep) -> Ints:
    """Return an action or, at chance, an outcome per game; -1 for finished games."""
    weights = batch.outcome_weights()
    possible = [actions_of(int(mask)) for mask in timestep.legal]
    each = zip(possible, weights, strict=True)
    return np.array([rng.choice(p or np.flatnonzero(w).tolist() or [-1]) for p, w in each])


def keyed_actions(batch: Batch, games: Ints) -> Ints:
    """Return a random action for each of the given games, from the game's own keys."""
    actions = np.empty(len(games), np.int64)
    random_actions(batch.legal[games], batch.keys(games), actions)
    return actions


def all_of(batch: Batch) -> Ints:
    return np.arange(len(batch))


def running(batch: Batch) -> Ints:
    return np.flatnonzero(~batch.over)


def contents(batch: Batch) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in batch.snapshot().items()}


def short_board(folder: Path, rounds: int = 1) -> Path:
    return write_board(folder / "short.toml", shikoku_data() | {"max_rounds": rounds})


# Game i is Game(seed=game_seed(seed, i))


def boards_of(folder: Path, kind: str) -> list[Any]:
    if kind == "three":
        return three_boards(folder)
    return [short_board(folder) if kind == "short" else "shikoku"]


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "sampled": ("shikoku", {}),
    "no autoreset": ("shikoku", {"autoreset": False, "check": False, "reward": "margin"}),
    "cap": ("short", {"reward": "margin"}),
    "boards": ("three", {"observation": "uint8"}),
    "explicit": ("shikoku", {"chance": "explicit"}),
    "explicit boards": ("three", {"chance": "explicit"}),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_batch__equals_single_games_and_their_next_episodes(case: str, tmp_path: Path) -> None:
    kind, options = OPTIONS[case]
    boards, chance = boards_of(tmp_path, kind), options.get("chance", "sampled")
    autoreset, margin = options.get("autoreset", True), options.get("reward") == "margin"
    batch, rng = Batch(FEW, boards, **options), random.Random(0)
    seeds = seeds_of(7, FEW)
    games = (Game(boards[i % len(boards)], seed=s, chance=chance) for i, s in enumerate(seeds))
    reference = SingleGames(games, seeds, autoreset=autoreset, margin=margin)
    timestep, expected = batch.reset(seed=7), reference.first()
    counts: Counter[str] = Counter()
    for _ in range(50 if INTERPRETED else 600):
        if timestep.observation.dtype == np.uint8:
            timestep = timestep._replace(
                observation=(timestep.observation / SCALES).astype(np.float32)
            )
        assert_same(timestep, expected)
        assert batch.states.tobytes() == b"".join(game.states.tobytes() for game in reference.games)
        assert batch.episode_info["episode"].tolist() == reference.episodes
        rewards = np.array([rewards_of(game, margin) for game in reference.games], np.float32)
        assert np.array_equal(batch.rewards(all_of(batch)), rewards)
        for game, weights in zip(reference.games, batch.outcome_weights(), strict=True):
            odds = weights[weights > 0] / max(weights.sum(), 1)
            assert odds.tolist() == pytest.approx([p for _, p in game.outcomes()])
        counts["ends"] += timestep.terminated.sum()
        counts["in timestep"] += (timestep.next_player == 1 - timestep.player).sum()
        moves = random_moves(rng, batch, timestep)
        timestep, expected = batch.step(moves), reference.step(moves)
    assert [batch.boards_of(np.array([i])).tobytes() for i in range(FEW)] == [
        game.boards.tobytes() for game in reference.games
    ]
    assert counts["in timestep"] > 20
    assert INTERPRETED or counts["ends"] > 2


def test_step__accepts_any_integer_arrays() -> None:
    batch, other = Batch(3), Batch(3)
    actions = keyed_actions(batch, all_of(batch)) if batch.reset(seed=0) else None
    assert actions is not None
    expected = batch.step(actions)
    for moves in (actions.tolist(), actions.astype(np.uint8), np.repeat(actions, 2)[::2]):
        other.reset(seed=0)
        assert_same(other.step(moves), expected)


# Seeds and episodes


def test_reset__takes_one_seed_per_game() -> None:
    seeds = [7, 0, MAX_SEED, 7]
    batch = Batch(4)
    for argument in (seeds, np.array(seeds), np.array(seeds, np.uint64)):
        assert_same(batch.reset(seed=argument), single_games(seeds).first())
        assert batch.episode_info["seed"].tolist() == seeds
    for episode in range(1, 6):
        if episode == 3:
            batch.finish("random")  # begins it itself
            continue
        now = [episode_seed(seed, episode) for seed in seeds]
        assert_same(batch.reset(), single_games(now).first())
        assert batch.episode_info["seed"].tolist() == now
    assert_same(batch.reset(seed=seeds), single_games(seeds).first())
    assert batch.episode_info["episode"].tolist() == [0] * 4


def test_reset__without_a_seed_draws_one() -> None:
    batch, other = Batch(3), Batch(3)
    timestep, _ = batch.reset(), other.reset()
    now = batch.episode_info["seed"].tolist()
    assert_same(timestep, single_games(now).first())
    assert len({*now, *other.episode_info["seed"].tolist()}) == 6


def test_begin__starts_some_games() -> None:
    batch = Batch(4)
    batch.reset(seed=range(1, 5))
    for _ in range(30):
        batch.play("random")
    others = batch.states[[0, 3]].tobytes()
    batch.begin(np.array([2, 1]), np.array([77, 88]))
    assert batch.states[2].tobytes() == Game(seed=77).states.tobytes()
    assert batch.states[1].tobytes() == Game(seed=88).states.tobytes()
    assert batch.episode_info["seed"].tolist() == [1, 88, 77, 4]
    assert batch.episode_info["decisions"].tolist() == [30, 0, 0, 30]
    assert batch.states[[0, 3]].tobytes() == others
    batch.begin(np.array([2, 3]))
    assert batch.episode_info["seed"].tolist() == [1, 88, episode_seed(77, 1), episode_seed(4, 1)]
    batch.begin(np.array([3, 0]), 10, [position(round=7), position(round=9)])
    first, last = game_seed(10, 0), game_seed(10, 3)
    assert batch.episode_info["seed"].tolist() == [first, 88, episode_seed(77, 1), last]
    assert batch.states["round"][[3, 0]].tolist() == [7, 9]


def test_initialize__plays_no_chance() -> None:
    batch = Batch(3)
    batch.initialize(all_of(batch), 5)
    assert (batch.states["phase"] == Phase.SETUP).all()
    assert (batch.states["player"] == -1).all()
    batch.advance_to_decision(np.array([1]))
    assert batch.states[1].tobytes() == Game(seed=game_seed(5, 1)).states.tobytes()
    assert batch.states["phase"].tolist() == [Phase.SETUP, Phase.MOVE, Phase.SETUP]


def test_keys__differ_by_game_seat_and_decision() -> None:
    batch, keys, expected = Batch(50), [], np.empty(50, np.uint64)
    batch.reset(seed=0)
    for decision in range(50):
        now = batch.keys(all_of(batch))
        seeds = batch.episode_info["seed"].copy()
        agent_keys(seeds, batch.states["player"], np.full(50, decision), expected)
        assert np.array_equal(now, expected)
        keys += now.tolist()
        batch.play("random")
    assert len(set(keys)) == 2500
    assert not set(keys) & set(batch.luck["key"].tolist())
    batch.reset(seed=0)
    assert batch.keys(np.array([3, 1])).tolist() == [keys[3], keys[1]]


# Size, order, company, threads


def played(n: int, decisions: int, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Return all outputs of a batch of n games over `decisions` steps of each kind."""
    batch = Batch(n)
    every = np.arange(n)
    timesteps = {"reset": batch.reset(seed)}
    for _ in range(decisions):
        timesteps["step"] = batch.step(keyed_actions(batch, every))
    for bot in BOTS:
        for _ in range(decisions // 5):
            timesteps[bot] = batch.play(bot)
    seats = (every % 2).astype(np.int8)
    outputs = {"seen": batch.observe(every, seats), "keys": batch.keys(every)}
    timesteps["finish"] = batch.finish("random")
    batch.begin(every[::3].copy())
    explicit = Batch(n, chance="explicit", observation="uint8")
    explicit.reset(seed)
    for _ in range(decisions):
        timesteps["chance"] = explicit.play("random")
    outputs |= {"weights": explicit.outcome_weights(), "outcomes": explicit.sample_outcomes()}
    outputs["geometry"] = Batch(n, observation="geometry").reset(seed).observation
    outputs |= Batch(n, observation="afterstates").reset(seed).observation
    for batched in (batch, explicit):
        outputs |= {f"{batched is batch} {name}": x for name, x in batched.snapshot().items()}
        outputs[f"{batched is batch} masks"] = batched.masks(every)
        outputs[f"{batched is batch} rewards"] = batched.rewards(every)
    for kind, timestep in timesteps.items():
        outputs |= {f"{kind} {name}": x for name, x in zip(TimeStep._fields, timestep, strict=True)}
    return outputs


def assert_equal(one: dict[str, npt.NDArray[Any]], other: dict[str, npt.NDArray[Any]]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


@needs_threads
def test_threads__give_the_same_bytes() -> None:
    threads = numba.get_num_threads()
    parallel = played(MANY, 40)
    numba.set_num_threads(1)
    try:
        assert_equal(played(MANY, 40), parallel)
    finally:
        numba.set_num_threads(threads)
    few = played(9, 40)  # too few for threads
    assert_equal(few, {name: array[:9] for name, array in parallel.items()})


TESTS = Path(__file__).parent


def digest() -> str:
    """Return a line with the hash of each output of some games."""
    sums = {name: sha256(array.tobytes()).hexdigest() for name, array in played(4, 60).items()}
    return "".join(f"{name} {of}\n" for name, of in sums.items())


def test_interpreter__gives_the_same_bytes() -> None:
    script = "from test_batch import digest; print(digest(), end='')"
    own = digest()
    assert len(own.splitlines()) == 6 * len(TimeStep._fields) + 8 + 2 * 7
    assert own == run_script(script, TESTS, NUMBA_DISABLE_JIT="0" if INTERPRETED else "1")


# Compiled bots


@pytest.mark.parametrize("bot", BOTS)
def test_play__equals_the_agent_of_the_same_name(bot: str, tmp_path: Path) -> None:
    boards = ["shikoku", write_board(tmp_path / "other.toml", other_board_data())]
    inside, outside, agent = Batch(FEW, boards), Batch(FEW, boards), make(bot)
    timestep, expected = inside.reset(seed=2), outside.reset(seed=2)
    every, ended = all_of(outside), 0
    for _ in range(10 if INTERPRETED else 400):
        assert_same(timestep, expected)
        keys = outside.keys(every)
        actions = agent.act(outside.boards_of(every), outside.states, expected.legal, keys)
        timestep, expected = inside.play(bot), outside.step(actions)
        ended += timestep.terminated.sum()
    assert contents(inside) == contents(outside)
    assert INTERPRETED or ended > 0


@pytest.mark.parametrize("bot", BOTS)
@pytest.mark.parametrize("reward", ["win", "margin"])
def test_finish__equals_repeated_play(bot: str, reward: Any) -> None:
    at_once = Batch(FEW, autoreset=False, reward=reward)
    by_hand = Batch(FEW, autoreset=False, reward=reward)
    assert_same(at_once.reset(seed=4), by_hand.reset(seed=4))
    rewards = np.zeros((FEW, 2), np.float32)
    while not by_hand.over.all():
        timestep = by_hand.play(bot)
        rewards += timestep.reward
    final = at_once.finish(bot)
    assert np.array_equal(final.reward, rewards)
    assert final.terminated.all()
    assert (final.next_player == -1).all()
    assert (final.mover == -1).all()
    assert at_once.states.tobytes() == by_hand.states.tobytes()
    again = at_once.finish(bot)
    assert not again.terminated.any()
    assert not again.reward.any()
    assert at_once.states.tobytes() == by_hand.states.tobytes()


# Explicit chance


def test_sample_outcomes__equals_sampled_chance() -> None:
    batch = Batch(FEW, chance="explicit", autoreset=False)
    batch.reset(seed=3)
    games = [Game(seed=seed) for seed in seeds_of(3, FEW)]
    while not batch.over.all():
        moves = batch.sample_outcomes()
        at_chance = moves >= 0
        assert np.array_equal(at_chance, batch.outcome_weights().any(axis=1))
        decided = running(batch)[~at_chance[running(batch)]]
        for i in decided:
            assert batch.states[i].tobytes() == games[i].states.tobytes()
        moves[decided] = keyed_actions(batch, decided)
        for i in decided:
            games[i].play(int(moves[i]))
        batch.advance(running(batch), moves[running(batch)])
    assert batch.states.tobytes() == b"".join(game.states.tobytes() for game in games)
    assert (batch.sample_outcomes() == -1).all()
    assert not batch.outcome_weights().any()


@pytest.mark.parametrize("bot", BOTS)
def test_finish__gives_the_same_games_with_explicit_chance(bot: str) -> None:
    ends = []
    for chance in ("sampled", "explicit"):
        batch = Batch(FEW, chance=chance, autoreset=False)
        batch.reset(seed=0)
        timestep = batch.finish(bot)
        ends.append([batch.states.tobytes(), *(each.tobytes() for each in timestep[:6])])
    assert ends[0] == ends[1]


LAST_TILE: dict[str, Any] = {
    **{"phase": "REVEAL", "die": "artist", "left": [], "pending": 1, "origin": "A7"},
    "mine": {"artist": "A1"},
}


@pytest.mark.parametrize("autoreset", [False, True])
def test_step__ends_a_game_by_an_outcome(autoreset: bool) -> None:
    """The last tile of the last pick ends the game without a deciding player."""
    mine = LAST_TILE["mine"] | {"temple": 9, "garden": 2}
    at_cap = LAST_TILE | {"mine": LAST_TILE["mine"] | {"temple": 8}, "round": 200}
    places = [position(**LAST_TILE | {"mine": mine}), position(**at_cap), position()]
    batch = Batch(3, chance="explicit", autoreset=autoreset)
    games = [Game.from_dict(place, chance="explicit") for place in places]
    reference = SingleGames(games, range(3), autoreset=autoreset)
    assert_same(batch.reset(0, places), reference.first())
    moves = batch.sample_outcomes()
    moves[2] = Game.from_dict(places[2]).legal_actions()[0]
    timestep = batch.step(moves)
    assert_same(timestep, reference.step(moves))
    assert timestep.terminated.tolist() == [True, True, False]
    assert timestep.reward.tolist() == [[1, -1], [1, -1], [0, 0]]
    assert timestep.player.tolist() == [-1, -1, 0]


# Positions


def assert_continues_like(
    batch: Batch, timestep: TimeStep, games: Sequence[Game], seeds: Sequence[int]
) -> None:
    """Assert that a batch plays on like single games."""
    reference, rng = SingleGames(games, seeds), random.Random(0)
    expected = reference.first()
    for _ in range(20):
        assert_same(timestep, expected)
        moves = random_moves(rng, batch, timestep)
        timestep, expected = batch.step(moves), reference.step(moves)
    assert_same(timestep, expected)


@pytest.mark.parametrize("chance", ["sampled", "explicit"])
@pytest.mark.parametrize("argument", ["positions", "one position", "states", "one state"])
def test_reset__starts_from_positions_and_states(chance: Any, argument: str) -> None:
    walks = [random_walk(8 + seed, 40 + seed) for seed in range(1 if "one" in argument else 4)]
    places: Any = [walk.to_dict() for walk in walks]
    if "state" in argument:
        places = np.concatenate([walk.state for walk in walks])
    seeds = seeds_of(5, 4)
    games = [
        Game.from_dict(walks[i % len(walks)].to_dict(), seed=seed, chance=chance)
        for i, seed in enumerate(seeds)
    ]
    batch = Batch(4, chance=chance)
    timestep = batch.reset(5, places[0] if argument == "one position" else places)
    assert_continues_like(batch, timestep, games, seeds)


def test_reset__starts_the_next_episode_from_the_set_up() -> None:
    batch = Batch(2)
    batch.reset(0, position(left=["pilgrim"], round=200))
    timestep = batch.finish("random")
    assert timestep.terminated.all()
    seeds = [episode_seed(seed, 1) for seed in seeds_of(0, 2)]
    assert batch.states.tobytes() == b"".join(Game(seed=s).states.tobytes() for s in seeds)
    batch.reset(positions=position())
    assert batch.episode_info["episode"].tolist() == [2, 2]
    assert batch.states.tobytes() == 2 * Game.from_dict(position()).states.tobytes()


# Boards


def three_boards(folder: Path) -> list[Any]:
    short = short_board(folder, rounds=2)
    return ["shikoku", write_board(folder / "other.toml", other_board_data()), Board.load(short)]


# Snapshots


def in_the_middle(n: int, seed: int = 0, decisions: int = 60, **options: Any) -> Batch:
    batch = Batch(n, **options)
    batch.reset(seed=seed)
    for _ in range(decisions):
        batch.play("random")
    return batch


def test_restore__puts_some_games_into_others() -> None:
    batch, other = in_the_middle(6), in_the_middle(5, seed=100, decisions=7)
    some, into = np.array([4, 1, 2]), np.array([0, 4, 3])
    other.restore(batch.snapshot(some), into)
    kept = in_the_middle(5, seed=100, decisions=7)
    assert (other.timestep().mask[into] == batch.timestep().mask[some]).all()
    timestep, expected = other.play("random"), batch.play("random")
    reference = kept.play("random")
    for actual, right, own in zip(timestep, expected, reference, strict=True):
        assert np.array_equal(actual[into], right[some])
        assert np.array_equal(actual[[1, 2]], own[[1, 2]])
    own = [game_seed(seed, i) for seed, i in ((0, 4), (100, 1), (100, 2), (0, 2), (0, 1))]
    assert other.episode_info["seed"].tolist() == own
    other.finish("random")
    following = [episode_seed(seed, 1) for seed in own]
    assert other.episode_info["seed"].tolist() == following


@pytest.mark.parametrize("autoreset", [False, True])
def test_reset__has_the_result_of_a_game_that_a_bot_ends(autoreset: bool) -> None:
    batch, ended = Batch(1, autoreset=False), Batch(1, autoreset=autoreset)
    timestep = batch.reset(seed=2)
    while not timestep.terminated[0]:
        last, seat = batch.states.copy(), int(timestep.mover[0])
        timestep = batch.play("random")
    ended.set_bots([0], [[GREEDY, NO_BOT] if seat == 0 else [NO_BOT, GREEDY]])
    timestep = ended.reset(seed=2, positions=last)
    assert (timestep.terminated[0], timestep.reward.tolist()) == (True, [[-1, 1]])
    assert (ended.over[0], ended.episode_info["episode"][0]) == (not autoreset, autoreset)


def test_restore__keeps_bots() -> None:
    batch, other = Batch(2), in_the_middle(2)
    batch.set_bots(all_of(batch), np.array([[NO_BOT, GREEDY]] * 2))
    batch.reset(seed=0)
    other.restore(batch.snapshot())
    for _ in range(20):
        timestep = other.step(keyed_actions(other, all_of(other)))
        assert (timestep.mover == 0).all()


def test_restore__finds_the_same_board_at_another_index(tmp_path: Path) -> None:
    boards = three_boards(tmp_path)
    batch = in_the_middle(3, board=boards)
    other = in_the_middle(3, seed=9, decisions=3, board=boards[::-1])
    other.restore(batch.snapshot(), np.array([2, 1, 0]))
    for _ in range(20):
        timestep, expected = other.play("random"), batch.play("random")
        assert_same(TimeStep(*(each[::-1] for each in timestep)), expected)


def test_restore__leaves_other_games_to_begin() -> None:
    batch = Batch(3)
    batch.restore(in_the_middle(1).snapshot(), np.array([0, 2]))
    batch.advance(np.array([0, 2]), keyed_actions(batch, np.array([0, 2])))
    with pytest.raises(RuntimeError, match="game 1 has not begun"):
        batch.play("random")


# Errors


@pytest.mark.parametrize("action", [48, 49, -1, 64, UNKNOWN_MOVE])
def test_illegal_move__names_the_game_and_changes_nothing(action: int) -> None:
    batch = Batch(6)
    batch.reset(seed=0)
    moves = keyed_actions(batch, all_of(batch))
    moves[2] = action
    before = contents(batch)
    with pytest.raises(IllegalMove, match=rf"^game 2: illegal action {action}.*: legal are "):
        batch.step(moves)
    assert contents(batch) == before


def test_step__refuses_a_finished_game() -> None:
    batch = Batch(2, autoreset=False)
    batch.reset(seed=0)
    batch.finish("random")
    with pytest.raises(IllegalMove, match="game 0: illegal action 0: the game is over; game 1"):
        batch.step([0, 0])
    with pytest.raises(ValueError, match="game 1: nothing to decide at OVER"):
        batch.decide(make("random"), np.array([1, 0]))
    batch.begin(np.array([0]))
    with pytest.raises(IllegalMove, match=r"^game 1: illegal action 0: the game is over$"):
        batch.step([Game(seed=episode_seed(game_seed(0, 0), 1)).legal_actions()[0], 0])


@pytest.mark.parametrize(
    "step",
    [
        lambda batch: batch.step([0, 0, 0]),
        lambda batch: batch.play("random"),
        lambda batch: batch.finish("greedy"),
        lambda batch: batch.advance(np.array([1]), np.array([0])),
        lambda batch: batch.advance_to_decision(np.array([0, 1])),
        lambda batch: batch.decide(make("random"), np.array([0, 1])),
    ],
)
def test_steps__before_begin_are_refused(step: Callable[[Batch], Any]) -> None:
    batch = Batch(3)
    batch.begin(np.array([0, 2]), 5)
    with pytest.raises(RuntimeError, match="game 1 has not begun"):
        step(batch)


class FixedActions(Agent):
    """An agent with fixed actions."""

    def __init__(self, actions: Any) -> None:
        self.actions = actions

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        states["phase"] = 99  # a copy, so this has no effect
        return self.actions


def test_decide__plays_some_games() -> None:
    batch, other = in_the_middle(6, autoreset=False), in_the_middle(6, autoreset=False)
    some = np.array([5, 0, 3])
    actions = keyed_actions(batch, some)
    batch.decide(FixedActions(actions.tolist()), some)
    other.advance(some, actions)
    assert contents(batch) == contents(other)
