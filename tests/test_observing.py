"""What is shown of games, the same through every API: vectors, the board's block, entities."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from alone import Recorder, random_legal
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test, seed_test
from positions import shikoku_data, write_board

from tokaido_env import Batch, Game, env, raw_env
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.core.entities import (
    ENTITY_SHAPES,
    board_entities,
    encode_entities_of_game,
    entity_arrays,
)
from tokaido_env.core.observation import N_FEATURES, SCALES, encode_game
from tokaido_env.gym import TokaidoDuoEnv, TokaidoDuoVectorEnv
from tokaido_env.spaces import observation_space
from tokaido_env.versus import Versus

POOL = "family:train/5"
FORMS: list[dict[str, Any]] = [
    {"observation": "float32", "see_board": True},
    {"observation": "uint8", "see_board": True},
    {"observation": "entities"},
]
WITH_FORMS = pytest.mark.parametrize("form", FORMS, ids=lambda form: form["observation"])


def expected(boards: Any, states: Any, seat: int, form: dict[str, Any]) -> Any:
    """What a seat of one game should see, from the encoders of one: `BOARD` (1,), `STATE` (1,)."""
    seat = max(seat, 0)
    flat = np.empty(N_FEATURES, np.float32)
    if form["observation"] == "entities":
        (row,) = board_entities(boards)
        encode_entities_of_game(boards, states, 0, seat, flat, row)
        return {name: each.tolist() for name, each in entity_arrays(row).items()}
    encode_game(boards, states, 0, seat, flat)
    if form["observation"] == "uint8":
        flat = np.rint(flat * SCALES)
    return [*flat.tolist(), *board_blocks(boards, form["observation"])[0].tolist()]


def plain(seen: Any) -> Any:
    return (
        {n: each.tolist() for n, each in seen.items()} if isinstance(seen, dict) else seen.tolist()
    )


def one(seen: Any, game: int) -> Any:
    return plain(
        {n: each[game] for n, each in seen.items()} if isinstance(seen, dict) else seen[game]
    )


def check_batch(batch: Batch, seen: Any, seats: npt.NDArray[Any]) -> None:
    for i in range(len(batch)):
        boards = batch.boards[batch.slots["board"][i] :][:1]
        form = {"observation": batch_form(seen)}
        assert one(seen, i) == expected(boards, batch.states[i : i + 1], int(seats[i]), form)


def batch_form(seen: Any) -> str:
    return "entities" if isinstance(seen, dict) else str(seen.dtype)


@pytest.fixture
def short(tmp_path: Path) -> list[Path]:
    """Boards on which games end soon, unlike each other."""
    faces = ([1, 2, 2, 3, 3, 4], [1, 1, 2, 2, 3, 4], [2, 2, 2, 2, 2, 4])
    paths = []
    for i, pilgrim in enumerate(faces):
        data = shikoku_data() | {"max_rounds": 2 + i, "name": f"short_{i}"}
        data["dice"]["pilgrim"]["faces"] = pilgrim
        paths.append(write_board(tmp_path / f"short_{i}.toml", data))
    return paths


# Batch


@WITH_FORMS
@pytest.mark.parametrize("copied", [True, False])
def test_a_batch_shows_each_game_on_its_board(form: dict[str, Any], copied: bool) -> None:
    """Also where boards are drawn anew, games are begun again, restored or put elsewhere."""
    batch = Batch(7, POOL, copy=copied, **form)
    turn = batch.reset(seed=5)
    boards = {tuple(batch.slots["board"].tolist())}
    check_batch(batch, turn.observation, turn.mover)
    before = batch.snapshot()
    for ply in range(420):
        turn = batch.play("random")
        if ply % 20 == 0:
            check_batch(batch, turn.observation, turn.mover)
        boards.add(tuple(batch.slots["board"].tolist()))
    assert len(boards) > 3
    assert (batch.slots["episode"] > 0).any()
    batch.restore({name: each[::-1] for name, each in before.items()})
    turn = batch.play("greedy")
    check_batch(batch, turn.observation, turn.mover)
    batch.begin(np.array([1, 4]), seed=np.array([70, 71]))
    turn = batch.play("greedy")
    check_batch(batch, turn.observation, turn.mover)
    for seats in (np.zeros(7, np.int8), np.ones(7, np.int8)):
        check_batch(batch, batch.observe(batch.all_games, seats), seats)


def test_threads_and_numbers_of_games_make_no_difference() -> None:
    """As many as are shown by more than one thread, and those of them that one thread shows."""
    for form in FORMS:
        batch = Batch(1100, POOL, **form)
        turn = batch.reset(seed=0)
        some = np.arange(3, 1100, 200)
        few = batch.observe(some, turn.mover[some])
        for j, i in enumerate(some.tolist()):
            assert one(few, j) == one(turn.observation, i)


# Adapters, game by game on a pool


SEEDS = (11, 12, 13)


class Script:
    """A game on the board that its seed draws, played at random."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        game = self.game = Game(POOL, seed=seed)
        self.moments: list[tuple[int, int, Any, Any]] = []
        while not game.is_over:
            assert game.player is not None
            action = rng.choice(game.legal_actions())
            self.moments.append((game.player, action, game.boards, game.states.copy()))
            game.play(action)

    def of(self, seat: int) -> Iterator[tuple[int, Any, Any]]:
        """The actions of a seat and where it chose them."""
        for player, action, boards, states in self.moments:
            if player == seat:
                yield action, boards, states


class Replayer:
    """Plays what a seat played in a script, and after it what is lowest."""

    def __init__(self, script: Script, seat: int) -> None:
        self.rest = iter([action for action, *_ in script.of(seat)])

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        (mask,) = legal.tolist()
        return np.array([next(self.rest, (mask & -mask).bit_length() - 1)], np.int64)


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed {seed}", scope="module")
def script(request: pytest.FixtureRequest) -> Script:
    return Script(request.param)


def test_the_scripts_are_on_several_boards() -> None:
    assert len({BoardPool.load(POOL).of_seed(seed).name for seed in SEEDS}) > 1


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2]], ids=lambda form: form["observation"])
@pytest.mark.parametrize("make", [env, raw_env])
def test_pettingzoo_shows_the_same(script: Script, form: dict[str, Any], make: Any) -> None:
    names = {"float32": "dict", "entities": "entities"}
    e = make(POOL, **form | {"observation": names[form["observation"]]})
    e.reset(seed=script.game.seed)
    for player, action, boards, states in script.moments:
        assert e.agent_selection == f"player_{player}"
        for seat, agent in enumerate(e.possible_agents):
            told = e.observe(agent)
            assert plain(told["observation"]) == expected(boards, states, seat, form)
            assert told["action_mask"].any() == (seat == player)
        assert e.state().tolist() == expected(boards, states, 0, FORMS[0])
        e.step(action)


@WITH_FORMS
@pytest.mark.parametrize("seat", [0, 1])
def test_gymnasium_shows_the_same(script: Script, form: dict[str, Any], seat: int) -> None:
    e = TokaidoDuoEnv(Replayer(script, 1 - seat), seat=seat, board=POOL, **form)
    seen, _ = e.reset(seed=script.game.seed)
    for action, boards, states in script.of(seat):
        assert plain(seen) == expected(boards, states, seat, form)
        seen, *_ = e.step(action)
    game = script.game
    assert plain(seen) == expected(game.boards, game.states, seat, form)


@pytest.mark.parametrize("form", FORMS[:2], ids=lambda form: form["observation"])
@pytest.mark.parametrize("seat", [0, 1])
def test_stable_baselines_shows_the_same(script: Script, form: dict[str, Any], seat: int) -> None:
    sb3 = pytest.importorskip("tokaido_env.sb3")
    opponent = Replayer(script, 1 - seat)
    e = sb3.TokaidoVecEnv(1, opponent, script.game.seed, board=POOL, seat=seat, **form)
    (seen,) = e.reset()
    for action, boards, states in script.of(seat):
        assert seen.tolist() == expected(boards, states, seat, form)
        assert e.observation_space.contains(seen)
        (seen,), _, _, (info,) = e.step(np.array([action]))
    game = script.game
    assert info["terminal_observation"].tolist() == expected(game.boards, game.states, seat, form)


def test_openspiel_shows_the_same(script: Script) -> None:
    """On the board of the game: a game of OpenSpiel has one."""
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("tokaido_env.openspiel")
    params = {"board": script.game.board.name, "see_board": True}
    state = pyspiel.load_game("tokaido_duo", params).new_initial_state()
    moments = iter(script.moments)
    for event in script.game.record().events:
        if not state.is_chance_node():
            player, _, boards, states = next(moments)
            for seat in (0, 1):
                assert state.observation_tensor(seat) == expected(boards, states, seat, FORMS[0])
            assert state.current_player() == player
        player = state.current_player()
        actions = [a for a, _ in state.chance_outcomes()] if state.is_chance_node() else None
        actions = state.legal_actions() if actions is None else actions
        labels = [state.action_to_string(player, action) for action in actions]
        state.apply_action(actions[labels.index(event)])
    assert state.is_terminal()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_openspiels_game_is_told_by_its_text() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("tokaido_env.openspiel")
    game = pyspiel.load_game("tokaido_duo(see_board=True)")
    assert game.observation_tensor_shape() == [N_FEATURES + N_BOARD_FEATURES]
    assert pyspiel.load_game(str(game)).get_parameters()["see_board"] is True
    assert pyspiel.load_game("tokaido_duo").observation_tensor_shape() == [N_FEATURES]
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


# The libraries' own tests


@pytest.mark.filterwarnings(
    "ignore:Observation is not a NumPy array:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action mask numpy array is all zeros:UserWarning",
)
@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize(
    "form", [{"observation": "entities"}, {"see_board": True}], ids=["entities", "board"]
)
def test_pettingzoos_tests(make: Any, form: dict[str, Any]) -> None:
    made = make(POOL, **form)
    api_test(made, num_cycles=200)
    made.reset(seed=1)
    assert made.state_space.contains(made.state())
    assert made.observation_space("player_0").contains(made.observe("player_0"))
    seed_test(lambda: make(POOL, **form), num_cycles=100)


@WITH_FORMS
def test_gymnasiums_checker_has_nothing_to_say(
    form: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = gymnasium.make("tokaido_env:TokaidoDuo-v0", board=POOL, **form)
    check_env(made.unwrapped)


@WITH_FORMS
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_the_vector_environment_shows_what_single_ones_show(
    form: dict[str, Any], mode: AutoresetMode, short: list[Path]
) -> None:
    """On a pool, and on boards where many games end in one step."""
    for board in (POOL, short[1]):
        options: dict[str, Any] = {"opponent": Recorder("random"), "board": board, **form}
        native = TokaidoDuoVectorEnv(4, autoreset_mode=mode, **options)
        singles = [lambda options=options: TokaidoDuoEnv(**options)] * 4
        sync = SyncVectorEnv(singles, autoreset_mode=mode)
        assert native.single_observation_space == sync.single_observation_space
        assert native.observation_space == sync.observation_space
        told, also = native.reset(seed=3), sync.reset(seed=3)
        rng, ends = np.random.default_rng(0), 0
        for _ in range(60):
            assert plain(told[0]) == plain(also[0])
            assert native.observation_space.contains(told[0])
            actions = random_legal(native.action_masks(), rng)
            told, also = native.step(actions), sync.step(actions)
            done = told[2] | told[3]
            for game in np.flatnonzero(done):
                ends += 1
                if mode == AutoresetMode.SAME_STEP:
                    last = [infos["final_obs"][game] for infos in (told[4], also[4])]
                    assert plain(last[0]) == plain(last[1])
            if done.any() and mode == AutoresetMode.DISABLED:
                told, also = (
                    each.reset(options={"reset_mask": done.copy()}) for each in (native, sync)
                )
        assert ends > 5 or board == POOL


def test_versus_shows_the_last_of_games_that_end_together(short: list[Path]) -> None:
    """Some by an illegal action, some by the cap: one array or one of each name."""
    for form in FORMS:
        versus = Versus(6, "random", board=short, seat=0, illegal="terminate", **form)
        versus.reset(seed=0)
        rng, kinds = np.random.default_rng(1), set()
        for _ in range(30):
            actions = random_legal(versus.masks(), rng)
            actions[rng.random(6) < 0.1] = -1
            ended = versus.step(actions)
            shown = list(ended.observation.values()) if form == FORMS[2] else [ended.observation]
            assert {len(each) for each in shown} == {len(ended.games)}
            kinds.add(len(ended.games))
        assert len(kinds) > 3


# Spaces and refusals


@WITH_FORMS
def test_spaces_are_as_narrow_as_what_is_shown(form: dict[str, Any]) -> None:
    space: Any = observation_space(**form)
    if form["observation"] == "entities":
        assert {name: each.shape for name, each in space.spaces.items()} == ENTITY_SHAPES
        return
    assert space.shape == (N_FEATURES + N_BOARD_FEATURES,)
    assert (space.dtype, space.low.max()) == (np.dtype(form["observation"]), 0)
    assert space.high.max() == (1 if form["observation"] == "float32" else 255)


MAKERS: dict[str, Any] = {
    "Batch": lambda **options: Batch(2, **options),
    "Versus": lambda **options: Versus(2, "random", **options),
    "gymnasium": lambda **options: TokaidoDuoEnv("random", **options),
    "vector": lambda **options: TokaidoDuoVectorEnv(2, "random", **options),
    "pettingzoo": env,
    "raw": raw_env,
    "space": observation_space,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_entities_have_the_board_already(make: Any) -> None:
    message = (
        "^see_board: expected False with observation='entities', which have the board already$"
    )
    with pytest.raises(ValueError, match=message):
        make(observation="entities", see_board=True)
    for wrong in ("yes", None, 2, np.array([True])):
        with pytest.raises(ValueError, match=r"^see_board: expected one of True, False, got"):
            make(see_board=wrong)


def test_what_shows_nothing_shows_no_board() -> None:
    with pytest.raises(
        ValueError, match=r"^see_board: expected False with observation=None, nothing"
    ):
        Batch(2, observation=None, see_board=True)
    quiet = Batch(2, observation=None)
    assert quiet.reset(seed=0).observation is None
    assert quiet.observe(quiet.all_games, [0, 1]).shape == (2, N_FEATURES)


def test_stable_baselines_takes_no_entities_and_openspiel_no_texts() -> None:
    sb3 = pytest.importorskip("tokaido_env.sb3")
    with pytest.raises(ValueError, match="observation: expected one of 'float32', 'uint8', got"):
        sb3.TokaidoVecEnv(2, "random", 0, observation="entities")
    pyspiel = pytest.importorskip("pyspiel")
    pytest.importorskip("tokaido_env.openspiel")
    with pytest.raises(Exception, match="see_board"):
        pyspiel.load_game("tokaido_duo", {"see_board": "maybe"})
