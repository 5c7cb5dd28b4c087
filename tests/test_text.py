"""Tests of `tokaido_env.text`, with scripted players and all kinds of answers."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from prompt_reader import listed, reads_and_answers

from tokaido_env import Game, record
from tokaido_env.agents import make
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import play_match
from tokaido_env.text import (
    TextAgent,
    TextFormat,
    TextPlayer,
    make_prompt,
    parse_answer,
    play_by_text,
)

LISTED = TextFormat("listed")
LEGAL = ["pilgrim", "pilgrim:wave", "merchant:C3", "merchant:stay", "artist:A1"]
PILGRIM, ARTIST = '{"action": "pilgrim"}', '{"action": "artist:A1"}'


class Scripted:
    """Answers with the last legal action."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, prompt: str) -> str:
        self.asked += 1
        return json.dumps({"action": listed(prompt)[-1]})


class Sloppy:
    """Answers with extra text, in capitals, and often with an illegal action first."""

    def __init__(self, seed: int, wrong: float) -> None:
        self.rng, self.wrong, self.mistakes = np.random.default_rng(seed), wrong, 0

    def __call__(self, prompt: str) -> str:
        legal = listed(prompt)
        if self.rng.random() < self.wrong:
            self.mistakes += 1
            return str(self.rng.choice(['{"action": "fly"}', "I pass.", '{"action": 3}', "{"]))
        label = str(self.rng.choice(legal)).upper().replace(":", " : ")
        thought = f'{{"plan": "{{not json"}} Well {{"action": "fly"}}, no: {{"action": "{label}"}}!'
        return f"Let me think.\n{thought}\n```"


def test_play_by_text__retries_and_forfeits() -> None:
    forfeits = refused = 0
    kinds: Counter[str] = Counter()
    for seed in range(10):
        one = Sloppy(seed, 0.25)
        form = TextFormat("listed", rules=False, history=0, retries=2)
        transcript = play_by_text([TextPlayer(one, form, "sloppy"), "random"], seed)
        assert transcript.record.players == ("sloppy:legal=listed", "random")
        assert sum(transcript.refused(0).values()) == one.mistakes
        assert transcript.refused(1) == {"illegal": 0, "unreadable": 0}
        kinds += transcript.refused(0)
        tries = [each.event for each in transcript.exchanges]
        assert max(map(tries.count, tries)) <= form.retries + 1
        wrong = [each.event for each in transcript.exchanges if each.parsed.label is None]
        assert (transcript.forfeit is not None) == (max(map(wrong.count, wrong)) == 3)
        if transcript.forfeit is not None:
            kept = transcript.record
            assert (kept.winner, kept.end) == (1, "forfeit")
            assert (kept.forfeit.seat, kept.forfeit.reason) == (0, "illegal")  # type: ignore[union-attr]
            record.replay(record.Record.from_json(kept.to_json()))
        forfeits += transcript.forfeit is not None
        refused += one.mistakes
    assert 0 < forfeits < 10
    assert refused > 30
    assert 10 < kinds["illegal"] < kinds["unreadable"]  # one kind of wrong answer and three


def test_play_by_text__keeps_and_resumes_a_game_that_an_exception_ended() -> None:
    class Failing(Scripted):
        def __call__(self, prompt: str) -> str:
            if self.asked == 20:
                raise KeyboardInterrupt
            return super().__call__(prompt)

    with pytest.raises(KeyboardInterrupt) as raised:
        play_by_text([TextPlayer(Failing(), LISTED), "random"], 4)
    kept = raised.value.transcript  # type: ignore[attr-defined]
    assert len(kept.exchanges) == 20
    whole = play_by_text([TextPlayer(Scripted(), LISTED), "random"], 4)
    assert play_by_text([TextPlayer(Scripted(), LISTED), "random"], 4, resume=kept) == whole
    for seats, seed, transcript in (("greedy", 4, kept), ("random", 5, kept)):
        with pytest.raises(ValueError, match="resume: expected seed, board hash, players and end"):
            play_by_text([TextPlayer(Scripted(), LISTED), seats], seed, resume=transcript)
    with pytest.raises(ValueError, match="resume: expected"):
        play_by_text([TextPlayer(Scripted(), LISTED), "random"], 4, resume=whole)


@pytest.mark.parametrize("board", ["shikoku", "family:2000003"])
def test_prompts__suffice_to_play_legally(board: str) -> None:
    """A player that reads its prompts only, as a language model does, is never refused."""
    for seed in range(1):
        readers = [TextPlayer(reads_and_answers), TextPlayer(reads_and_answers)]
        transcript = play_by_text(readers, seed, board)
        assert transcript.record.end == "triggers"
        assert transcript.refused(0) == transcript.refused(1) == {"illegal": 0, "unreadable": 0}


def test_make_prompt__contains_rules_position_and_question() -> None:
    game, phases = Game(seed=3), set()
    while not game.is_over:
        phases.add(game.phase.name)
        game.play(game.legal_actions()[-1])
        if game.rounds % 4 or game.is_over:
            continue
        prompt = make_prompt(game, LISTED)
        assert listed(prompt) == game.legal_labels()
        assert prompt.startswith("Tokaido Duo, for two players")
        assert str(game) in prompt
        assert f"You are player_{game.player}." in prompt
        for label in game.legal_labels():  # its form is named, with the same first word
            assert label.partition(":")[0] in prompt.partition("Labels of actions:")[2]
        bare = make_prompt(game, TextFormat(rules=False, history=0))
        assert "Legal actions" not in bare
        assert "Tokaido Duo, for two players" not in bare
        assert "Last events" not in bare
        assert "refused" not in bare
    assert {"MOVE", "EFFECT"} <= phases
    with pytest.raises(ValueError, match="expected a game at a decision, got one at OVER"):
        make_prompt(game)


def test_make_prompt__has_a_retry_text_for_each_kind_of_refused_answer() -> None:
    game, form = Game(seed=3), TextFormat(rules=False, history=0)
    illegal = make_prompt(game, form, 'I fly. {"action": "merchant:C9"}')
    assert "refused: merchant:C9 is no legal action here. Choose another action." in illegal
    assert "It ended in" not in illegal
    unreadable = make_prompt(game, form, "x" * 5_000 + "so I take the \x1b[2J pilgrim")
    assert "refused: expected a JSON block" in unreadable
    end = unreadable.partition("It ended in:\n")[2].splitlines()
    assert end[0].endswith("so I take the \\x1b[2J pilgrim")
    assert len(end[0]) == 303  # three characters more for the escape
    assert end[1].endswith('must be a block like {"action": "LABEL"}')
    assert "It ended in:\n(nothing)\n" in make_prompt(game, form, "")


def test_make_prompt__contains_the_last_events() -> None:
    game = Game(seed=3)
    for _ in range(20):
        game.play(game.legal_actions()[-1])
    last_events = (
        make_prompt(game, TextFormat(history=5)).split("Last events:\n")[1].split("\n\n")[0]
    )
    assert last_events.count("- ") == 5
    everything = make_prompt(game, TextFormat(history=1000)).split("Last events:\n")[1]
    assert everything.split("\n\n")[0].count("\n- ") + 1 == len(game.events())
    assert everything.split("\n\n")[0].endswith(last_events)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ('{"action": "artist:A1"}', "artist:A1"),
        ('so: {"action": "ARTIST : a1"} done', "artist:A1"),
        ('{"action": "artist"}', "artist:A1"),
        ('{"action": "pilgrim"}', "pilgrim"),
        ('{"action": "pilgrim:w"}', "pilgrim:wave"),
        ('{"Action": "pilgrim"}', "pilgrim"),
        (f"{PILGRIM} I keep it: {PILGRIM}", "pilgrim"),
        (f'The form is {{"action": "LABEL"}}. {PILGRIM}', "pilgrim"),
        (f"```json\n{PILGRIM}\n```\nIt **ends** at the temple. {{'sure': 0.9}}", "pilgrim"),
        (f"artist:A1 is not as good.\n{PILGRIM} So pilgrim.", "pilgrim"),
        ('{"action": "pilgrim:wave"}, that is pilgrim:wave', "pilgrim:wave"),
        ('{"name": "play", "arguments": {"action": "pilgrim"}}', "pilgrim"),
        ('{"a": {"action": "pilgrim"}}', "pilgrim"),
        ('{"action": "pilgrim", "not": {"action": "artist:A1"}}', "pilgrim"),
        ('{"action": "merchant"}', None),  # one of two
        ('{"action": "a"}', None),  # a letter of a list, perhaps
        ('{"action": ""}', None),
        ("artist:A1", None),
        ("[" * 50_000, None),
        ("x" * 1_000_000 + '{"action": "pilgrim"}', "pilgrim"),
        ('{"action": "\\ud800\\u0000\\u001b[2J"}', None),
        ("{'action': 'pilgrim'}", "pilgrim"),
        ("{“action”: “merchant:C3”}", "merchant:C3"),
        ('{"action": "pilgrim",}', "pilgrim"),
        ('{action: "pilgrim"}', "pilgrim"),
        ('{"action": "pilgrim"', "pilgrim"),
        ("{'why': 'it\\'s {best}', 'action': 'pilgrim',}", "pilgrim"),
        ('{"plan": "{\'action\': \'artist:A1\'}", "action": "pilgrim"}', "pilgrim"),
        (None, None),
        (b'{"action": "pilgrim"}', None),
    ],
)
def test_parse_answer__reads_answers_as_documented(answer: object, label: str | None) -> None:
    parsed = parse_answer(answer, LEGAL)
    assert parsed.label == label
    assert (parsed.error == "") == (label is not None)
    assert len(parsed.error) < 400
    assert parsed.error.isprintable()


REASONING = [
    ("<think>", "</think>"),
    ("", "</think>"),  # models that begin within their reasoning
    ("<think>", "</think><think>Yes.</think>"),
    ("<THINKING>", "</THINKING>"),
    ('<thought mode="long">', "</thought >"),
    ("<reasoning>", "</reasoning>"),
    ("<ant_thinking>", "</ant_thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|><|begin_of_solution|>"),
]


@pytest.mark.parametrize(("start", "end"), REASONING)
def test_parse_answer__reads_nothing_of_reasoning(start: str, end: str) -> None:
    thoughts = f"We could do {PILGRIM}"
    assert parse_answer(f"{start}{thoughts}? No.{end} {ARTIST}", LEGAL).label == "artist:A1"
    for answer in (
        f"{start}{thoughts}? No.{end} I choose artist:A1.",
        f"{ARTIST} {start}{thoughts}.{end}",
        *([f"{start}{thoughts}", f"{start}{'x' * 30_000}{thoughts}"] if start else []),
    ):
        assert parse_answer(answer, LEGAL).kind == "unreadable"


@pytest.mark.parametrize(
    "answer",
    [
        f"{ARTIST} or {PILGRIM}",
        f"[{ARTIST}, {PILGRIM}]",
        f'{{"actions": [{ARTIST}, {PILGRIM}]}}',
        f"```json\n{ARTIST}\n```\nBetter:\n```json\n{PILGRIM}\n```",
        f"{{'action': 'pilgrim'}} or {ARTIST}",
        "{'action': 'pilgrim'} or {'why': 'near', 'action': 'artist:A1'}",
        f'{{x}}: {PILGRIM} first, then {{"why": 1, "action": "artist:A1"}}',
        '{"action": "artist:A1", "action": "pilgrim"}',
        '{"action": "artist:A1" or "pilgrim"}',
        '{"action": ["artist:A1", "pilgrim"]}',
        f'{PILGRIM}. No: {{"action": "artist:A9"}}',
        f'{PILGRIM} {{"action": 3}}',
        f'{PILGRIM} {{"action": fly}}',
        f'{PILGRIM} {{"action": "art',
        f'{PILGRIM} {{"ACTION": "artist:A1"}}',
    ],
)
def test_parse_answer__refuses_ambiguous_answers(answer: str) -> None:
    parsed = parse_answer(answer, LEGAL)
    assert (parsed.label, parsed.kind) == (None, "unreadable")
    assert parsed.error.isprintable()


def test_parse_answer__reads_nothing_from_a_copy_of_the_prompt() -> None:
    game = Game(seed=3)
    for form in (TextFormat(), LISTED):
        prompt = make_prompt(game, form, "no")
        assert parse_answer(prompt, game.legal_labels()).label is None


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ("pilgrim", "got none in its last 20,000 characters"),
        ('{"move": "pilgrim", "why": 1}', "got one with the key 'move', 'why'"),
        ("{}", "got one with no key"),
        ('{"action": 3}', "got the action 3, not one text"),
        ('{"action": "pilg', 'got one that is not JSON: {"action": "pilg'),
        ('{"action": "pilgrim"}' + "x" * 20_000, "got none in its last 20,000 characters"),
        ("{'action': 'fly'}", "fly is no legal action"),
    ],
)
def test_parse_answer__names_the_true_cause(answer: str, cause: str) -> None:
    assert parse_answer(answer, LEGAL).error.endswith(cause)


@pytest.mark.parametrize("board", ["shikoku", "family:test/2"])
def test_text_agent__plays_matches(board: str) -> None:
    one = Scripted()
    agent = as_agent(TextAgent(TextPlayer(one, LISTED)))
    match = play_match(agent, make("random"), 4, 1, board)
    assert one.asked > 0
    assert 0 <= match.score <= 1
    game = Game(board, seed=2)
    while len(game.legal_actions()) < 2:
        game.play(game.legal_actions()[0])
    assert agent.choose(game) == game.legal_actions()[-1]
    failed = r"agent .text:legal=unlisted.: game 1 of 2.*expected a JSON block"
    agent = as_agent(TextAgent(TextPlayer(lambda prompt: "no")))
    with pytest.raises(AgentFailed, match=failed):
        play_match(agent, make("random"), 2, 1, board)


def test_play_by_text__numbers_the_second_of_two_players_of_one_name() -> None:
    players = [TextPlayer(Scripted(), LISTED), TextPlayer(Scripted(), LISTED)]
    name = players[0].spec
    assert play_by_text(players, 4).record.players == (name, f"{name} 2")
    assert play_by_text([players[0], players[0]], 4).record.players == (name, name)


def test_play_by_text__checks_players_and_their_form() -> None:
    with pytest.raises(ValueError, match="players: expected two, got 1"):
        play_by_text(["greedy"], 0)
    with pytest.raises(TypeError, match="players: expected a list of two, got 'greedy'"):
        play_by_text("greedy", 0)
    with pytest.raises(TypeError, match="respond: expected a function of a prompt, got 'greedy'"):
        TextPlayer("greedy")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="form: expected a TextFormat, got 'listed'"):
        TextPlayer(str, "listed")  # type: ignore[arg-type]
    wrong: list[dict[str, Any]] = [{"legal": "some"}, {"history": -1}, {"retries": "2"}]
    for options in wrong:
        with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
            TextFormat(**options)
