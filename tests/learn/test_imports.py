"""Imports of modules of tokaido_env.learn: settings no PyTorch, a network no trainer."""

from processes import run_script

SCRIPT = """
import sys
from tokaido_env.learn import settings, run_folder, opponent_pool, checkpoint_rating
assert "torch" not in sys.modules
from tokaido_env.learn import network, checkpoint, run, selfplay, alphazero
assert not {"stable_baselines3", "sb3_contrib"} & {*sys.modules}
"""


def test_a_module_loads_no_more_than_it_needs() -> None:
    run_script(SCRIPT)
