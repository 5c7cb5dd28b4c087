"""Train a self-play agent: `python train.py --help`, as `tokaido train`."""

import sys

from tokaido_env.cli.train import main

if __name__ == "__main__":
    sys.exit(main())
