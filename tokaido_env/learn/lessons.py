"""Settings that learning from a search needs, whoever plays and whoever learns."""

from __future__ import annotations

from dataclasses import dataclass

from tokaido_env.agents.policy import Sizes
from tokaido_env.agents.registry import Parameter
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.checks import check_seed
from tokaido_env.learn.boards import BOARD_MEANING, SEEING, SEEING_MEANING
from tokaido_env.learn.declared import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    Declared,
    RunError,
    setting,
)
from tokaido_env.learn.settings import check_width


@dataclass(frozen=True)
class SearchSettings(Declared):
    """What is learnt on, how wide the network is, and how self-play strays from the search.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = setting(0, Parameter(int), "of games and network, 0 to 2**53 - 1")
    board: str = setting("shikoku", TEXT, BOARD_MEANING)
    see_board: str = setting("auto", SEEING, SEEING_MEANING)
    learning_rate: float = setting(
        1e-3, RATE, "of Adam, falling to nothing in each round as a cosine"
    )
    width: int = setting(256, COUNT, "units of the network's first layer, a multiple of 8")
    sampled: float = setting(0.26, SHARE, "share of decisions drawn by visits, for variety")
    uniform: float = setting(
        0.04, SHARE, "share of decisions drawn from all legal actions, for variety"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        check_width(self.width)
        if self.sampled + self.uniform > 1:
            shares = f"{self.sampled:g} + {self.uniform:g}"
            raise RunError(f"sampled + uniform: expected at most 1, got {shares}")

    @property
    def pool(self) -> BoardPool:
        """The boards that are played on."""
        return BoardPool.load(self.board)

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        return Sizes.of_width(self.width)
