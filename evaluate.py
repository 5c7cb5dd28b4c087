"""Run `tokaido evaluate` from a checkout: `python evaluate.py --help`."""

import sys

from tokaido_env.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
