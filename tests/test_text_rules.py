"""The prompt states every rule: a table of rules, by their number, and sentences of the prompt."""

import re
from pathlib import Path

import pytest

from tokaido_env import Board, Game
from tokaido_env.text import TextFormat, make_prompt
from tokaido_env.text_rules import rules_text

RULES_PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "rules.md"

# Rules that the text board of each position shows, or that say how a state is kept.
SHOWN = {"R1.1", "R1.3", "R1.5", "R1.8", "R4.6"}

SENTENCES = {
    "R1.2": ["The boutiques of the coastal towns", "are drawn at random before the game and stay"],
    "R1.4": ["the sides of the wave tiles are drawn at random"],
    "R1.6": ["Pegs begin at 1"],
    "R1.7": ["hidden paintings (three of two icons and two of the others at the start)"],
    "R1.9": [
        "All is open, except the order of the hidden paintings and what the next roll or draw"
    ],
    "R2.1": [
        "the leader, the other player and the leader again each take one die that is left",
        "move their own character of that die by exactly its number",
        "The move is mandatory",
    ],
    "R2.2": ["player_0 leads round 1; then the lead alternates"],
    "R2.3": ["No space may be entered twice in one move; the space where the move begins counts"],
    "R2.4": ["Then they may use the place, or pass"],
    "R3.1": ["It moves from area to neighbouring area; artists may share an area", "next to A"],
    "R3.2": ["Then it paints, or gives, or neither"],
    "R3.3": [
        "as other characters, of both players, are in the area, on its stations and in its towns",
        "A coastal town belongs to two areas, a mountain town to every area that it borders",
    ],
    "R3.4": ["They join the back of your easel, in random order"],
    "R3.5": ["give away the front painting of your easel, if the area shows its icon"],
    "R3.6": ["a tenth painting given"],
    "R3.7": ["artists may share an area. Without a full move it stays: no effect"],
    "R4.1": [
        "It moves along routes from town to town, and may pass through occupied towns",
        "Two merchants may share a mountain town",
        "It cannot end in a coastal town that holds a pilgrim, also your own, or the other",
    ],
    "R4.2": ["or the other merchant. Without a full move it stays: no effect"],
    "R4.3": [
        "draw as many wares from the bag as its number",
        "You keep 5 at most, and return the excess, wares of your choice",
    ],
    "R4.4": [
        "sell one or more wares of its boutique's kind, each for its price; they return to the bag"
    ],
    "R4.5": [
        "10 coins become a gold slab at once, again while 10 are left, up to six slabs",
        "A slab is never changed back. Coins beyond the sixth slab are kept",
        "a sixth gold slab",
    ],
    "R5.1": [
        "It walks clockwise from station to station; occupied stations count as steps",
        "If the last one holds another character, it goes on to the next empty station, and only",
    ],
    "R5.2": ["coastal town: gain the price of its boutique in coins"],
    "R5.3": [
        "your peg there moves up by one",
        "temple ends at 9, garden at 6",
        "A temple peg at 9, a garden peg at 6",
    ],
    "R5.4": ["take the hot spring token, from the board or from the opponent, unless you hold it"],
    "R5.5": [
        "take a wave tile of your choice from the board; if none is left there, one of your choice "
        "from the opponent"
    ],
    "R6.1": ["or pass, for example to avoid the end of the game"],
    "R6.2": ["A decision with one legal action is made for you"],
    "R7.1": [
        "tranquil, one step fewer, never fewer than 1 (no use with a 1); hasty, one step more"
    ],
    "R7.2": [
        "proficient, paint reveals one more, also when no other character is there",
        "a gift may match the icon of the area where the move began, or of any on a way of its len",
    ],
    "R7.3": [
        "crafty, every ware of a sale brings one coin more",
        "robust, draw one ware more, and keep 6 while you hold the tile",
    ],
    "R7.4": ["A player who loses robust with 6 wares returns one at once"],
    "R7.5": ["The holder may use it or not, from the moment it is taken"],
    "R8.1": [
        "If you held it before you took the die, then after the move and its effect you may move "
        "the same character by the same die once more, and use that place",
        "Not after a stay",
        "not with the die that gained it",
    ],
    "R8.2": ["The token returns to the board before this second move"],
    "R8.3": ["once per die"],
    "R9.1": ["of either player, makes the round the last: its three dice are still used"],
    "R9.2": [
        "faith (number of the temple slot times number of the garden slot) + commerce (by gold "
        "slabs) + culture (by paintings given)",
        "The higher total wins",
    ],
    "R9.3": ["Tied totals: more coins win", "Coins tied too: both players share the victory"],
    "R9.4": ["Wares, coins and other paintings score nothing"],
    "R10.1": ["Without such an end round 200 is the last, and scored in the same way"],
}
# What an illegal answer costs is no rule of the game.
COST = [
    "An answer that names no legal action is refused",
    "You are asked again, at most 2 times for a decision",
    "Then you forfeit: the other player wins, whatever the points",
]


@pytest.fixture(scope="module")
def prompt() -> str:
    return " ".join(make_prompt(Game(seed=3)).split())


def test_rules_text__has_the_sentences_of_every_rule(prompt: str) -> None:
    numbered = set(re.findall(r"^- (R\d+\.\d+) ", RULES_PAGE.read_text(encoding="utf-8"), re.M))
    assert SENTENCES.keys() | SHOWN == numbered
    assert not SENTENCES.keys() & SHOWN
    for rule, sentences in (SENTENCES | {"cost": COST}).items():
        for sentence in sentences:
            assert sentence in prompt, rule


@pytest.mark.parametrize("name", ["shikoku", "shikoku_remix", "family:2000003"])
def test_rules_text__has_the_tables_of_the_board(name: str) -> None:
    board = Board.load(name)
    text = rules_text(board, retries=2)
    for title, numbers in {
        "Commerce with 0 to 6 gold slabs": board.commerce,
        "Culture with 0 to 10 paintings given": board.culture,
        "Temple slots 1 to 9": board.temple,
        "Garden slots 1 to 6": board.garden,
    }.items():
        assert f"\n{title}: {' '.join(map(str, numbers))}\n" in text
    for character, faces in zip(("pilgrim", "merchant", "artist"), board.faces, strict=True):
        assert f"{character} {' '.join(map(str, faces))}" in text
    assert all(f"{a}-{b}" in text for a, b in board.routes)
    assert all(f"{i} {kind}" in text for i, kind in enumerate(board.stations))
    assert f"round {board.max_rounds} is the last," in text


def test_rules_text__states_the_retries_of_the_format() -> None:
    assert "You are asked again" not in rules_text(Board.load(), retries=0)
    prompt = make_prompt(Game(seed=3), TextFormat(retries=5))
    assert "at most 5 times for a decision" in prompt
