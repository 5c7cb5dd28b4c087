"""Tests of `tokaido_env.text`, with scripted players and all kinds of answers."""

import json

import numpy as np
import pytest
from prompt_reader import listed, reads_and_answers

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import play_match
from tokaido_env.text import TextAgent, TextError, TextFormat, make_prompt, parse_answer

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


@pytest.mark.parametrize("board", ["shikoku", "family:2000003"])
def test_prompts__suffice_to_play_legally(board: str) -> None:
    """An agent that reads its prompts only, as a language model does, is never refused."""
    agent = TextAgent(reads_and_answers, TextFormat(retries=0))
    game, rng = Game(board, seed=0), np.random.default_rng(0)
    while not game.is_over:
        game.play(agent.choose(game, rng))
    assert game.record().end == "triggers"


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
    ('<thought mode="long">', "</thought >"),
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
        '{"action": "pilgrim", "not": {"action": "artist:A1"}}',
        f"```json\n{ARTIST}\n```\nBetter:\n```json\n{PILGRIM}\n```",
        f"{{'action': 'pilgrim'}} or {ARTIST}",
        f'{{x}}: {PILGRIM} first, then {{"why": 1, "action": "artist:A1"}}',
        '{"action": "artist:A1", "action": "pilgrim"}',
        '{"action": "artist:A1" or "pilgrim"}',
        '{"action": ["artist:A1", "pilgrim"]}',
        f'{PILGRIM}. No: {{"action": "artist:A9"}}',
        f'{{"action": "draw", "other": {PILGRIM}}}',
        f'{PILGRIM} {{"action": 3}}',
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


@pytest.mark.parametrize("board", ["shikoku", "family:test/2"])
def test_text_agent__plays_matches(board: str) -> None:
    one = Scripted()
    match = play_match(as_agent(TextAgent(one, LISTED)), make("random"), 4, 1, board)
    assert one.asked > 0
    assert 0 <= match.score <= 1
    failed = r"agent .text:legal=unlisted.: game 1 of 2.*expected a JSON block"
    with pytest.raises(AgentFailed, match=failed):
        play_match(as_agent(TextAgent(lambda prompt: "no")), make("random"), 2, 1, board)


def test_text_agent__asks_again_after_refused_answers() -> None:
    asked: list[str] = []
    game, answers = Game(seed=3), iter(["no", '{"action": "fly"}', PILGRIM])

    def respond(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    assert TextAgent(respond).choose(game, np.random.default_rng(0)) == "pilgrim"
    assert ["answer was refused" in prompt for prompt in asked] == [False, True, True]
    with pytest.raises(TextError, match="expected a JSON block"):
        TextAgent(lambda prompt: "no").choose(game, np.random.default_rng(0))
    for wrong in ({"legal": "some"}, {"history": -1}, {"retries": "2"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            TextFormat(**wrong)  # type: ignore[arg-type]
