# make train      set up, train about five minutes, evaluate, rate on the ladder
# make test       set up, check, run the tests
# make test-long  the same rules walk over many more games: make test-long GAMES=20000
# make fuzz       damaged input of every kind: make fuzz N=100000
# make kills      commands that are killed and go on: make kills N=100
# make certify-rllib  RLlib, in an environment of its own: its check, and our tests of it
# make bench      print the speeds of this machine

PYTHON ?= python3
RUN ?= runs/first
GAMES ?= 20000
N ?= 10000
kills: N = 100
PY := .venv/bin/python

RLLIB := .venv-rllib/bin/python

.PHONY: setup train test test-long fuzz kills certify-rllib check bench browser

setup: .venv/ready

# A PyTorch that is already in .venv is kept, whatever its version.
.venv/ready: pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) -c "import torch" 2>/dev/null \
	  && grep -v "^torch==" constraints.txt > .venv/constraints.txt \
	  || cp constraints.txt .venv/constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check \
	  -c .venv/constraints.txt -e ".[train,dev]"
	touch $@

train: setup
	if [ -f $(RUN)/config.toml ]; then $(PY) train.py --resume $(RUN); \
	else $(PY) train.py --run $(RUN) --preset quick; fi
	$(PY) evaluate.py policy:$(RUN) random greedy --games 1000
	$(PY) evaluate.py rate policy:$(RUN)

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# The tests of pages need a browser; without one they are skipped.
browser:
	command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	  || echo "no chromedriver: tests in a browser are skipped"

test: check browser
	$(PY) -m pytest -q -n auto --dist loadgroup
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest -q -n auto tests/core/test_rules.py tests/core/test_reference.py

test-long: setup
	$(PY) -m pytest -q -n auto tests/core/test_reference.py --games $(GAMES)

fuzz: setup
	$(PY) tests/fuzz.py $(N)

kills: setup
	$(PY) benchmarks/kills.py --kills $(N)

# RLlib asks for a version of Gymnasium of its own; all else is as in .venv.
.venv-rllib/ready: pyproject.toml constraints.txt
	test -x $(RLLIB) || $(PYTHON) -m venv .venv-rllib
	$(RLLIB) -c "import torch" 2>/dev/null && own="gymnasium|torch" || own="gymnasium"; \
	  grep -vE "^($$own)==" constraints.txt > .venv-rllib/constraints.txt
	$(RLLIB) -m pip install --quiet --disable-pip-version-check \
	  -c .venv-rllib/constraints.txt -e ".[rllib,train]" pytest
	touch $@

certify-rllib: .venv-rllib/ready
	$(RLLIB) -m tokaido_env certify
	$(RLLIB) -m pytest -q tests/test_readme.py tests/test_adapters.py \
	  tests/test_rllib.py tests/tools/test_tune_with_ray.py

bench: setup
	$(PY) -m tokaido_env bench
