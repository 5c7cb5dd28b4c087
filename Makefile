# make train      set up, train about three minutes, evaluate, rate on the ladder
# make test       set up, run the linters and the fast tests: some minutes
# make test-all   run all tests: before a merge or a release, and for every change in CI
# make test-long  compare the rules with the reference in many games: make test-long GAMES=20000
# make fuzz       run damaged files of every format: make fuzz N=10000
# make kills      kill commands and resume them: make kills N=100
# make certify-rllib  run RLlib's check and our tests of it, in a separate environment
# make certify-all    check every library in four environments; run the recipes
# make test-cuda  compile the GPU code and test it, in a separate environment
# make test-pufferlib  run PufferLib's recipe, in a separate environment of 7 GB
# make docs       build the site in docs/_build/html: pages, API and executed notebooks
# make golden     make the derived files again that take seconds
# make release-check  run all release checks that need no forge: make release-check TAG=v0.1.0
# make bench      print the speeds of this machine

PYTHON ?= python3
RUN ?= runs/first
GAMES ?= 20000
N ?= 10000
kills: N = 100
PY := .venv/bin/python

RLLIB := .venv-rllib/bin/python
SEPARATE := .venv-others .venv-rllib .venv-agilerl
RELEASE_TOOLS := twine==7.0.0 "readme_renderer[md]==46.0" check-jsonschema==0.39.0 mlcroissant==1.1.1 pyarrow==26.0.1

.PHONY: setup train test test-all test-long test-cuda test-pufferlib fuzz kills certify-rllib certify-all check bench browser docs golden \
  release-check

setup: .venv/ready

# An installed PyTorch in .venv is kept, in any version.
.venv/ready: pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) -c "import torch" 2>/dev/null \
	  && grep -v "^torch==" constraints.txt > .venv/constraints.txt \
	  || cp constraints.txt .venv/constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check \
	  -c .venv/constraints.txt -e ".[train,dev]"
	touch $@

train: setup
	if [ -f $(RUN)/config.toml ]; then $(PY) -m tokaido_env train --resume $(RUN); \
	else $(PY) -m tokaido_env train --run $(RUN); fi
	$(PY) -m tokaido_env evaluate policy:$(RUN) random greedy --games 1000
	$(PY) -m tokaido_env rate policy:$(RUN)

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# Tests of pages need a browser; without one they are skipped.
browser:
	command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; } \
	  || echo "no chromedriver: tests in a browser are skipped"

# A file's tests run in one process, which makes its fixtures once. A test that hangs fails with its
# stack. Tests marked `alone` follow; without Ray there are none, which is pytest's status 5.
TESTS := $(PY) -m pytest -q -n auto --dist loadfile --durations 30
INTERPRETED := NUMBA_DISABLE_JIT=1 $(TESTS) tests/core/test_rules.py tests/core/test_reference.py

test: check browser
	$(TESTS) -m "not slow and not alone" --timeout 600
	$(INTERPRETED) -m "not slow" --games 10

test-all: check browser
	$(TESTS) -m "not alone" --timeout 1200
	$(PY) -m pytest -q -m alone tests/arena --timeout 1200 || test $$? = 5
	$(INTERPRETED)

test-long: setup
	$(PY) -m pytest -q -n auto tests/core/test_reference.py --games $(GAMES)

fuzz: setup
	$(PY) tests/fuzz.py $(N)
	NUMBA_BOUNDSCHECK=1 $(PY) tests/fuzz.py $(N) --seed 1

kills: setup
	$(PY) benchmarks/kills.py --kills $(N)

# Libraries that need other versions, in separate environments: HOLDS lists the packages, OWN the
# packages to which constraints.txt does not apply there.
.venv-rllib/ready: HOLDS := ".[rllib,train]" pytest
.venv-rllib/ready: OWN := gymnasium
.venv-others/ready: HOLDS := ".[train,torchrl,openspiel,minari]" \
  textarena==0.7.4 tianshou==2.0.1 skrl==2.1.1 supersuit==3.11.0 shimmy==2.0.1 jax optax pytest
.venv-others/ready: OWN := pandas|filelock
.venv-agilerl/ready: HOLDS := ".[train,minari]" agilerl==2.58.0 peft pytest
.venv-agilerl/ready: OWN := pettingzoo|tensordict|torchrl|pandas
# NVIDIA's compiler takes 430 MB, so it is not in .venv.
.venv-cuda/ready: HOLDS := ".[cuda,policies]" pytest
# It needs a PyTorch of its own, with CUDA's libraries.
.venv-pufferlib/ready: HOLDS := ".[policies]" pufferlib-core==3.0.23 pytest
.venv-pufferlib/ready: OWN := torch

.venv-%/ready: pyproject.toml constraints.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -c "import torch" 2>/dev/null && own="$(OWN)|torch" || own="$(OWN)"; \
	  grep -vE "^($$own)==" constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c $(@D)/constraints.txt -e $(HOLDS)
	touch $@

test-cuda: .venv-cuda/ready
	.venv-cuda/bin/python -m pytest -q tests/test_cuda.py

test-pufferlib: .venv-pufferlib/ready
	.venv-pufferlib/bin/python -m pytest -q tests/test_recipes.py -k pufferlib

certify-rllib: .venv-rllib/ready
	$(RLLIB) tests/conformance/certify.py
	$(RLLIB) -m pytest -q tests/test_readme.py tests/test_rllib.py tests/test_recipes.py

# Without an environment that cannot be installed, the others still run.
certify-all: setup
	-$(MAKE) --keep-going $(SEPARATE:%=%/ready)
	$(PY) tests/conformance/certify.py .venv $(SEPARATE)
	for each in $(SEPARATE); do \
	  $$each/bin/python -m pytest -q tests/test_recipes.py tests/test_buffers.py tests/test_readme.py \
	  -k "recipe or buffers or libraries" || exit 1; done

# In .venv: the API pages import the package, and the notebooks run in it.
.venv/docs: .venv/ready
	$(PY) -m pip install --quiet --disable-pip-version-check \
	  -c .venv/constraints.txt -e ".[train,dev,docs]"
	touch $@

docs: .venv/docs
	$(PY) -m sphinx -b html -n -W --keep-going -j auto docs docs/_build/html

golden: setup
	$(PY) benchmarks/golden.py

# Checkers of formats, in a separate environment: they need other versions.
.venv-release/ready: Makefile
	test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	.venv-release/bin/pip install --quiet --disable-pip-version-check \
	  $(RELEASE_TOOLS)
	touch $@

release-check: setup .venv-release/ready
	$(PY) benchmarks/release_check.py $(if $(TAG),--tag $(TAG))

bench: setup
	$(PY) benchmarks/bench.py
