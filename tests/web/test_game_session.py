"""Tests of web/game_session.py: play, undo, advice and records."""

from dataclasses import replace

import numpy as np
import pytest

from tokaido_env import Batch, IllegalMove
from tokaido_env.agents import make
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.rng import episode_seed
from tokaido_env.record import RESIGNED, Forfeit, Record, RecordError, replay
from tokaido_env.render.scene import scenes_of
from tokaido_env.web.game_session import HUMAN, Session


def play_choices(session: Session, choices: int, rng: np.random.Generator) -> None:
    """Make random choices for people and play everything else, up to the next choice."""
    while session.waits_for != "nobody":
        if session.waits_for == "agent":
            session.play_agent_move()
        elif session.waits_for == "chance":
            labels, odds = zip(*session.game.outcomes(), strict=True)
            session.play(labels[rng.choice(len(labels), p=odds)])
        elif session.is_forced:
            session.play(session.game.legal_labels()[0])
        elif choices == 0:
            return
        else:
            choices -= 1
            session.play(str(rng.choice(session.game.legal_labels())))


@pytest.mark.parametrize("seats", [(HUMAN, "greedy"), ("greedy", HUMAN)])
def test_undo__and_the_same_choices_bring_the_same_outcomes(seats: tuple[str, str]) -> None:
    session, rng = Session(seats, seed=3), np.random.default_rng(0)
    play_choices(session, 0, rng)
    stood = []
    for _ in range(12):
        choice = session.game.legal_labels()[-1]
        stood.append((session.game.events(), choice))
        session.play(choice)
        play_choices(session, 0, rng)
    after = session.game.events()
    for events, _ in reversed(stood):
        assert session.undo()
        assert session.game.events() == events
    assert not session.undo()
    for _, choice in stood:
        session.play(choice)
        play_choices(session, 0, rng)
    assert session.game.events() == after


def test_session__plays_the_game_of_its_seed() -> None:
    seed = episode_seed(8, 0)
    session = Session((HUMAN, "greedy"), seed=seed)
    play_choices(session, 1000, np.random.default_rng(1))
    assert session.game.is_over
    assert session.waits_for == "nobody"
    record = session.record()
    assert (record.seed, record.players) == (seed, (HUMAN, "greedy"))
    replay(record)
    batch, greedy = Batch(1, autoreset=False), make("greedy")
    batch.reset(seed=[8])
    for event in (event for event in record.events if event in IDS):  # chance follows from the seed
        if batch.states["player"][0] == 0:
            batch.step([IDS[event]])
        else:
            assert LABELS[int(batch.decide(greedy, batch.all_games)[0])] == event
    assert batch.over[0]


def test_physical_game__takes_outcomes_and_undoes_each() -> None:
    session = Session((HUMAN, "greedy"), chance="explicit")
    assert session.waits_for == "chance"
    rng = np.random.default_rng(2)
    play_choices(session, 5, rng)
    assert session.record().seed is None
    events = session.game.events()
    assert events[-1] not in session.game.legal_labels()
    undone = 0
    while session.undo():  # one by one, never to an agent's decision
        undone += 1
        assert session.waits_for in ("chance", "human")
        assert session.game.events() == events[: len(session.game.events())]
    assert session.game.events() == []
    assert undone > sum(event not in IDS for event in events)


@pytest.mark.parametrize("chance", ["sampled", "explicit"])
def test_from_record__resumes_the_game(chance: str) -> None:
    session = Session((HUMAN, "greedy"), seed=5, chance=chance)  # type: ignore[arg-type]
    play_choices(session, 10, np.random.default_rng(3))
    again = Session.from_record(session.record(), (HUMAN, "greedy"))
    assert again.game == session.game
    assert again.game.events() == session.game.events()
    for one in (session, again):
        play_choices(one, 1000, np.random.default_rng(4))
    if chance == "sampled":  # with explicit chance, agents get new random keys
        assert again.record() == session.record()
    whole = again.game.events()
    assert again.undo()
    assert again.waits_for in ("human", "chance")  # not an agent, which would decide the same again
    assert again.game.events() == whole[: len(again.game.events())]


@pytest.mark.parametrize("player", [0, 1])
def test_advise__has_the_agents_values_and_probabilities(player: int) -> None:
    session = Session((HUMAN, HUMAN), seed=2)
    rng = np.random.default_rng(0)
    while session.game.player != player:
        play_choices(session, 1, rng)
    game, agent = session.game, make("champion")
    key = np.zeros(1, np.uint64)  # a forward pass is not random
    mask = np.array([game.legal_mask], np.uint64)
    shares, values = agent.judge(game.boards, game.state, mask, key)
    assert values is not None
    advice = session.advice_task("champion")()
    assert advice[0].win_probability is not None
    ordered = sorted(shares[0].tolist(), reverse=True)
    assert [move.preference for move in advice] == pytest.approx(ordered[:3])
    assert advice[0].label == game.label(int(shares[0].argmax()))
    assert session.advice_task("greedy")()[0].win_probability is None


def test_scenes_and_log__are_those_of_the_game() -> None:
    session, rng = Session((HUMAN, "greedy"), seed=4), np.random.default_rng(1)
    play_choices(session, 7, rng)
    play_choices(session, 3, rng)
    session.undo()
    play_choices(session, 2, rng)
    undone = True
    while undone:  # up to the start
        played, names = session.game.trajectory(), ("human", "greedy")
        again = scenes_of(played.board, played.states, played.events, None, names)
        assert session.scenes == list(again)
        assert [one.event for one in session.log] == session.game.events()
        undone = session.undo()
    assert session.game.start_position is None


def test_resign__loses_and_can_be_undone() -> None:
    session = Session((HUMAN, "greedy"), seed=3)
    play_choices(session, 4, np.random.default_rng(0))
    session.resign()
    assert (session.waits_for, session.resigned) == ("nobody", 0)
    kept = session.record()
    with pytest.raises(IllegalMove, match="human resigns"):
        session.play(session.game.legal_labels()[0])
    assert (kept.winner, kept.end, kept.forfeit) == (1, "forfeit", Forfeit(0, RESIGNED))
    assert session.status_text() == "human resigns: greedy wins"
    assert replay(Record.from_json(kept.to_json())).labels() == kept.events
    again = Session.from_record(kept, session.names)
    assert again.record() == kept
    assert again.undo()
    assert (again.waits_for, again.record().forfeit) == ("human", None)
    with pytest.raises(IllegalMove, match="no human player is to move"):
        Session(("greedy", HUMAN), chance="explicit").resign()


def test_session__refuses_invalid_inputs_without_a_change() -> None:
    with pytest.raises(ValueError, match="seats: expected two, got 1"):
        Session((HUMAN,))
    session = Session((HUMAN, "greedy"), seed=7)
    events = session.game.events()
    with pytest.raises(IllegalMove, match="legal are"):
        session.play("merchant:X")
    with pytest.raises(IllegalMove, match="no agent is to move"):
        session.play_agent_move()
    assert session.game.events() == events
    while session.waits_for == "human":
        session.play(session.game.legal_labels()[0])
    with pytest.raises(IllegalMove, match="cannot play: greedy takes a die"):
        session.play(session.game.legal_labels()[0])
    with pytest.raises(IllegalMove, match="no player is to move"):
        Session(chance="explicit").advice_task("greedy")()
    lost = replace(session.record(), forfeit=Forfeit(1, "time"), end="forfeit", winner=0)
    with pytest.raises(
        RecordError, match=r"cannot resume the game, it is over: greedy forfeits \(time\)"
    ):
        Session.from_record(lost, (HUMAN, "greedy"))
