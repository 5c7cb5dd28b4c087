"""Tests of `SingleAgentBatch`: every transition runs between the learner's decisions."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from learner_games import CountingAgent, Ints, LearnerGame, random_legal_actions
from positions import other_board_data, position, write_board

from tokaido_env import IllegalMove
from tokaido_env.agents import Agent, make
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.observation import FEATURES
from tokaido_env.core.rng import episode_seed, game_seed
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.single_agent import EndedGames, SingleAgentBatch

SEAT = next(feature.start for feature in FEATURES if feature.name == "seat")

# Game i is against "random" if i is even, else "greedy".
OPPONENTS: dict[str, Callable[[], list[Agent]]] = {
    "in the kernel": lambda: [make("random"), make("greedy")],
    "outside": lambda: [CountingAgent("random"), CountingAgent("greedy")],
    "mixed": lambda: [
        make("random"),
        CountingAgent("greedy"),
        CountingAgent("random"),
        make("greedy"),
    ],
}


def walk(versus: SingleAgentBatch, steps: int, seed: int = 0) -> Iterator[tuple[Ints, EndedGames]]:
    """Play random actions; yield the actions and the ended games of each step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        actions = random_legal_actions(versus.masks(), rng)
        yield actions, versus.step(actions)


def facts(versus: SingleAgentBatch) -> list[Any]:
    """Return all readable attributes of the games."""
    outputs = [versus.observe(), versus.masks(), versus.seats, versus.player, versus.done]
    return [array.tolist() for array in (*outputs, *results(versus))]


def results(versus: SingleAgentBatch) -> tuple[Any, ...]:
    return versus.reward, versus.terminated, versus.truncated


def comparable(ended: EndedGames) -> list[Any]:
    """Return the ended games' fields as lists, in their order."""
    order = np.argsort(ended.games)
    return [array[order].tolist() for array in ended]


def contents(versus: SingleAgentBatch) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in versus.snapshot().items()}


def finish(versus: SingleAgentBatch, steps: int = 2000) -> None:
    """Play random actions until some game has ended."""
    for _ in walk(versus, steps):
        if versus.done.any():
            return
    raise AssertionError("no game has ended")


def check_game(versus: SingleAgentBatch, i: int, alone: LearnerGame) -> None:
    """Check that game `i` equals the reference game."""
    assert versus.seats[i] == alone.seat
    assert versus.observe()[i].tolist() == alone.observation()
    assert np.flatnonzero(versus.masks()[i]).tolist() == alone.game.legal_actions()


def check_end(versus: SingleAgentBatch, ended: EndedGames, j: int, alone: LearnerGame) -> None:
    """Check the fields of the `j`-th ended game against the reference game."""
    assert alone.game.is_over
    assert ended.observation[j].tolist() == alone.observation()
    assert (ended.seat[j], ended.seed[j]) == (alone.seat, alone.seed)
    assert (ended.length[j], versus.boards[ended.board[j]]) == (alone.length, alone.game.board)


# Transitions


@pytest.mark.parametrize(
    ("kind", "seat", "reward", "boards"),
    [
        ("in the kernel", "alternate", "win", ["shikoku"]),
        ("outside", "alternate", "win", ["shikoku"]),
        ("mixed", "alternate", "margin", ["shikoku"]),
        ("in the kernel", 1, "win", ["short"]),
        ("mixed", 0, "margin", ["short", "shorter"]),
    ],
    ids=str,
)
def test_step__runs_to_the_learners_next_decision(
    kind: str, seat: Any, reward: Any, boards: list[Any], short: Path, tmp_path: Path
) -> None:
    """Seats, rewards, observations, masks and ends, over several episodes of six games.

    On the short boards, handed out in turn, games end at the cap, and points decide (R10.1).
    """
    shorter = write_board(tmp_path / "other.toml", other_board_data() | {"max_rounds": 1})
    pool = [{"short": short, "shorter": shorter}.get(name, name) for name in boards]
    n, base = 6, 53
    opponents = OPPONENTS[kind]()
    versus = SingleAgentBatch(n, opponents, reward=reward, seat=seat, board=pool)

    def begin(i: int, episode: int) -> LearnerGame:
        own = (i + episode) % 2 if seat == "alternate" else seat
        seed = int(episode_seed(game_seed(base, i), episode))
        opponent = opponents[i % len(opponents)]
        return LearnerGame(seed, own, opponent, board=pool[i % len(pool)])

    versus.reset(base)
    games, episodes, moments = [begin(i, 0) for i in range(n)], [0] * n, Counter[str]()
    for i in range(n):
        check_game(versus, i, games[i])
    for actions, ended in walk(versus, 420 if boards == ["shikoku"] else 60):
        for i in range(n):
            own, alone = games[i].seat, games[i]
            alone.play(int(actions[i]))
            assert versus.reward[i] == pytest.approx(alone.reward(reward))
            assert versus.terminated[i] == alone.game.is_over
            assert not versus.truncated[i]
            assert alone.game.is_over == (i in ended.games)
            if alone.game.is_over:
                check_end(versus, ended, ended.games.tolist().index(i), alone)
                moments += alone.moments
                episodes[i] += 1
                games[i] = begin(i, episodes[i])
            assert versus.player[i] == (NO_PLAYER if i in ended.games else own)
            check_game(versus, i, games[i])
        assert not versus.done.any()
    assert min(episodes) >= 2
    if boards == ["shikoku"]:
        assert moments["learner again"] > 100
        assert moments["opponent again"] > 100
        assert moments["learner returns"] > 0
        assert moments["opponent returns"] > 0


def test_opponents__decide_in_batches() -> None:
    opponent = CountingAgent()
    versus = SingleAgentBatch(50, opponent)
    versus.reset(0)
    for _ in walk(versus, 20):
        pass
    assert opponent.decisions > 10 * opponent.calls > 0


# Seats


def seats_of(seat: Any, seed: Any, n: int) -> list[int]:
    versus = SingleAgentBatch(n, "random", seat=seat)
    versus.reset(seed)
    assert versus.observe()[:, SEAT].tolist() == versus.seats.tolist()
    return versus.seats.tolist()


def test_random_seats__follow_from_the_seed_and_are_fair() -> None:
    seats = seats_of("random", 0, 200)
    assert 80 <= sum(seats) <= 120
    assert seats_of("random", 0, 200) == seats
    own = [game_seed(0, i) for i in range(150, 200)]
    assert seats_of("random", own, 50) == seats[150:]
    assert seats_of("random", 1, 200) != seats


def test_random_seats__of_later_episodes_follow_from_their_seeds(short: Path) -> None:
    versus = SingleAgentBatch(8, "random", seat="random", board=short)
    versus.reset(0)
    outputs = [end for _, ended in walk(versus, 40) for end in zip(*ended, strict=True)]
    assert {seat for _, _, seat, *_ in outputs} == {0, 1}
    assert len(outputs) > 16
    assert all(seats_of("random", [seed], 1) == [seat] for _, _, seat, seed, *_ in outputs)


# Without autoreset


def test_reset__clears_results() -> None:
    """Also if the opponent ends the game before the learner's first decision."""
    nearly = {"temple": 8, "garden": 6, "gold": 6, "pilgrim": 3}
    over = position(lead=0, left=["pilgrim"], dice=(1, 1, 1), mine=nearly, end_triggered=True)
    for opponent in (make("greedy"), CountingAgent("greedy")):
        versus = SingleAgentBatch(1, opponent, seat=1, autoreset=AutoresetMode.DISABLED)
        versus.reset(0, over)
        assert versus.batch.over[0]
        assert versus.done[0]
        assert not any(each.any() for each in results(versus))
        with pytest.raises(RuntimeError, match="game 0 has ended or not begun: call reset"):
            versus.step([0])


# Illegal actions


@pytest.mark.parametrize("action", [IDS["discard:fan"], N_ACTIONS, -1, 2**40])
@pytest.mark.parametrize("kind", ["mixed"])
def test_step__refuses_illegal_actions(kind: str, action: int) -> None:
    versus = SingleAgentBatch(4, OPPONENTS[kind]())
    versus.reset(0)
    for _ in walk(versus, 3):
        pass
    before, outputs = contents(versus), facts(versus)
    actions = random_legal_actions(versus.masks(), np.random.default_rng(0))
    actions[2] = action
    with pytest.raises(IllegalMove, match=f"game 2: illegal action {action}.*: legal are "):
        versus.step(actions)
    assert contents(versus) == before
    assert facts(versus) == outputs


# Opponents


def test_set_opponents__repeats_a_sequence() -> None:
    versus = SingleAgentBatch(5, ["random", "greedy"])
    assert [opponent.spec for opponent in versus.opponents] == [
        *["random", "greedy", "random", "greedy", "random"]
    ]
    versus.set_opponents("greedy")
    assert [opponent.spec for opponent in versus.opponents] == ["greedy"] * 5
    first, second = CountingAgent(), CountingAgent()
    versus.set_opponents([first, second], np.array([4, 1, 0]))
    assert [versus.opponents[i] for i in (4, 1, 0)] == [first, second, first]
    assert [versus.opponents[i].spec for i in (2, 3)] == ["greedy"] * 2


def test_set_opponents__works_during_games() -> None:
    """Between compiled and Python opponents: each game equals the reference with that change."""
    versus = SingleAgentBatch(4, "random", seat=0)
    versus.reset(range(20, 24))
    games = [LearnerGame(20 + i, 0, make("random")) for i in range(4)]
    changes: dict[int, tuple[list[Any], list[int]]] = {
        5: ([CountingAgent("greedy"), CountingAgent("random")], [1, 2]),
        10: ([make("greedy")], [0, 1]),
        15: ([CountingAgent("random")], [0, 1, 2, 3]),
        20: ([make("greedy"), make("random"), CountingAgent("greedy")], [3, 0, 2]),
    }
    rng = np.random.default_rng(0)
    for step in range(30):
        if step in changes:
            before = versus.observe()
            opponents, chosen = changes[step]
            versus.set_opponents(opponents, np.array(chosen), when="now")
            assert np.array_equal(versus.observe(), before)
            for j, i in enumerate(chosen):
                games[i].opponent = opponents[j % len(opponents)]
        actions = random_legal_actions(versus.masks(), rng)
        assert len(versus.step(actions).games) == 0
        for i in range(4):
            games[i].play(int(actions[i]))
            check_game(versus, i, games[i])
    assert all(sum(alone.moments.values()) for alone in games)


def test_set_opponents__lets_running_games_keep_theirs(short: Path) -> None:
    """Each game equals the reference against the opponent assigned when it began."""
    coming: list[Any] = [make("random")] * 4
    versus = SingleAgentBatch(4, coming[0], seat=0, board=short)
    versus.reset(range(20, 24))
    games = [LearnerGame(20 + i, 0, coming[i], board=short) for i in range(4)]
    episodes, changed = [0] * 4, 0
    rng = np.random.default_rng(0)
    for step in range(60):
        if step % 7 == 3:
            kind, chosen = ("greedy", "random")[step % 2], np.flatnonzero(rng.random(4) < 0.6)
            opponent: Any = make(kind) if step % 3 else CountingAgent(kind)
            playing = versus.opponents
            versus.set_opponents(opponent, chosen)
            assert versus.opponents == playing
            for i in chosen.tolist():
                coming[i] = opponent
                changed += 1
        actions = random_legal_actions(versus.masks(), rng)
        ended = versus.step(actions).games.tolist()
        for i in range(4):
            games[i].play(int(actions[i]))
            assert (i in ended) == games[i].game.is_over
            if i in ended:
                episodes[i] += 1
                games[i] = LearnerGame(episode_seed(20 + i, episodes[i]), 0, coming[i], board=short)
                assert versus.opponents[i] is coming[i]
            assert versus.observe()[i].tolist() == games[i].observation()
    assert min(episodes) > 2
    assert changed > 10


def test_set_opponents__is_undone_with_a_failed_step(short: Path) -> None:
    """An opponent that fails in its first game is to play it again after the error."""
    versus = SingleAgentBatch(2, "random", seat=1, board=short)
    versus.reset([0, 1])
    breaking, rng = Breaking(give_up, 0), np.random.default_rng(0)
    versus.set_opponents(breaking, np.array([0]))
    while True:
        actions = random_legal_actions(versus.masks(), rng)
        before, playing = contents(versus), versus.opponents
        ended, failure = attempt(versus, actions)
        if failure is not None:
            break
        assert ended is not None
    assert isinstance(failure, OverflowError)
    assert (contents(versus), versus.opponents) == (before, playing)
    breaking.right = 10**9
    assert versus.step(actions).games.tolist() == [0]
    assert versus.opponents[0] is breaking


class Breaking(CountingAgent):
    """Plays like random for a number of calls, then fails."""

    spec = "breaking"

    def __init__(self, wrong: Callable[[Ints], Any], calls: int) -> None:
        super().__init__("random")
        self.wrong, self.right = wrong, calls

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        actions = super().act(boards, states, legal, keys)
        return actions if self.calls <= self.right else self.wrong(actions)


def give_up(actions: Ints) -> Ints:
    raise OverflowError("out of ideas")


FAULTS: list[tuple[Callable[[Ints], Any], type[Exception], str]] = [
    (lambda a: a + 49, IllegalMove, r"agent 'breaking': game \d: illegal action \d+: legal are"),
    (lambda a: a[1:], ValueError, r"agent 'breaking': moves: expected integers of shape \(\d,\)"),
    (give_up, OverflowError, "out of ideas"),
]


def attempt(versus: SingleAgentBatch, actions: Ints) -> tuple[EndedGames | None, Exception | None]:
    try:
        return versus.step(actions), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize(("wrong", "error", "message"), FAULTS)
def test_step__restores_all_games_if_an_opponent_fails(
    short: Path, wrong: Callable[[Ints], Any], error: type[Exception], message: str
) -> None:
    """At any point of a step, also after other games have started their next episodes."""

    def begin(first: Agent) -> SingleAgentBatch:
        others = [make("greedy"), CountingAgent("random"), make("random")]
        versus = SingleAgentBatch(9, [first, *others], board=short)
        versus.reset(0)
        return versus

    undisturbed, failures = begin(make("random")), 0
    outputs = [(comparable(ended), facts(undisturbed)) for _, ended in walk(undisturbed, 9)]
    for calls in range(3, 23):
        versus, rng = begin(Breaking(wrong, calls)), np.random.default_rng(0)
        for expected in outputs:
            actions = random_legal_actions(versus.masks(), rng)
            before = contents(versus), facts(versus)
            ended, failure = attempt(versus, actions)
            if failure is not None:
                assert isinstance(failure, error)
                assert re.search(message, str(failure))
                assert (contents(versus), facts(versus)) == before
                failures += 1
                versus.set_opponents("random", np.array([0, 4, 8]), when="now")
                ended = versus.step(actions)
            assert ended is not None
            assert (comparable(ended), facts(versus)) == expected
    assert failures > 10
    assert sum(len(ended[0]) for ended, _ in outputs) > 9


def test_reset__restores_all_games_if_an_opponent_fails() -> None:
    versus = SingleAgentBatch(2, ["random", Breaking(give_up, 0)], seat=1)
    for _ in range(2):
        with pytest.raises(OverflowError, match="out of ideas"):
            versus.reset(0)
        with pytest.raises(RuntimeError, match="game 0 has ended or not begun: call reset"):
            versus.step([0, 0])
    versus.set_opponents("random")
    versus.reset(0)
    for _ in walk(versus, 5):
        pass
    versus.set_opponents(Breaking(give_up, 0), when="now")
    before, outputs = contents(versus), facts(versus)
    with pytest.raises(OverflowError, match="out of ideas"):
        versus.reset()
    assert contents(versus) == before
    assert facts(versus) == outputs


@pytest.mark.parametrize(
    ("kind", "other", "autoreset"),
    [*zip(OPPONENTS, [*OPPONENTS][1:] + [*OPPONENTS][:1], AutoresetMode, strict=True)],
)
def test_restore__continues_identically(kind: str, other: str, autoreset: AutoresetMode) -> None:
    """With any opponents: a snapshot contains the games, but not their opponents."""

    def begin(kind: str) -> SingleAgentBatch:
        return SingleAgentBatch(5, OPPONENTS[kind](), seat="random", autoreset=autoreset)

    def go_on(versus: SingleAgentBatch) -> list[Any]:
        outputs, rng = [], np.random.default_rng(1)
        for _ in range(200):
            if versus.done.any() and autoreset == AutoresetMode.DISABLED:
                versus.reset(games=np.flatnonzero(versus.done))
            ended = versus.step(random_legal_actions(versus.masks(), rng))
            outputs.append((comparable(ended), facts(versus)))
        return outputs

    versus = begin(kind)
    versus.reset(3)
    if autoreset == AutoresetMode.SAME_STEP:
        for _ in walk(versus, 70):
            pass
    else:
        finish(versus)
    snapshot, now = versus.snapshot(), facts(versus)[:5]
    outputs = []
    for each in (versus, versus, begin(kind), begin(other)):
        each.restore(snapshot)
        assert facts(each)[:5] == now
        outputs.append(go_on(each))
    assert outputs[0] == outputs[1] == outputs[2] == outputs[3]
    assert any(ended[0] for ended, _ in outputs[0])
    decisions = sum(getattr(agent, "decisions", 0) for agent in each.opponents)
    assert (decisions > 0) == (other != "in the kernel")


# Beginning


def test_step__before_the_first_reset_is_refused() -> None:
    for illegal in ("raise", "terminate"):
        versus = SingleAgentBatch(2, "random", illegal=illegal)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="game 0 has ended or not begun: call reset"):
                versus.step([0, -1])
        versus.reset(0, games=np.array([0]))
        with pytest.raises(RuntimeError, match="game 1 has ended or not begun: call reset"):
            versus.step([0, 0])
