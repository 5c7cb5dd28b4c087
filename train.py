"""Train an agent by self-play; the same as `tokaido train`: see `python train.py --help`."""

import sys

from tokaido_env.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
