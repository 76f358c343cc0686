# `make demo` and `make test` work on a fresh machine with Python ≥ 3.11 and make; everything they need goes into .venv.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PACKAGES := flows tasks steps_engine schemas
SOLVE := pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11
PEERS := dpmm==0.1.9
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
export STEPS_HOME ?= .steps

.PHONY: help setup demo check lint types doctests architecture test test-fast audit-privacy campaign bench bench-peers docs ui lock lock-upgrade lock-peers clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## build .venv with `steps` in it, from requirements.lock

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: export STEPS_HOME = .steps-demo
demo: setup ## the youth-voter release from end to end, embedded: no server, SQLite ledger, local folders
	scripts/demo.sh

check: lint types doctests architecture ## what can be said without running it: style, types, doctests, architecture; under two minutes

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict, over the four packages
	$(BIN)/mypy

doctests: setup ## the examples in docstrings
	$(BIN)/python -m pytest --doctest-modules $(PACKAGES)

architecture: setup ## layers, cycles, and the one place of noise and of the charge
	$(BIN)/python -m pytest tests/test_architecture.py

test: check ## check, then all tests with their coverage; installs Chromium and PostgreSQL first when it may
	scripts/system-packages.sh
	$(PYTEST) --cov --cov-report= --cov-fail-under=90

test-fast: setup ## the tests that take seconds
	$(PYTEST) -m "not (slow or whole or server or browser or postgres)"

audit-privacy: setup ## minutes of trials that try to catch a broken guarantee
	STEPS_AUDIT_TRIALS=40000 $(BIN)/python -m pytest -n 2 -k "audit or epsilon or control" tests/steps_engine

campaign: setup ## real processes killed, raced, starved and lied to for an hour at most; goes on where it was; ASKED="--minutes 30"
	$(BIN)/python -m tests.campaign $(ASKED)

bench: setup ## ratios against numpy, OpenDP, DuckDB, scikit-learn and statsmodels, measured in one run
	$(BIN)/python -m benchmarks

bench-peers: setup .cache/peers/ready ## distances of margins beside MST and AIM, on the coded files in DATA=FOLDER; hours
	$(BIN)/python -m benchmarks.peers $(DATA) $(ASKED)

.cache/peers/ready: requirements-peers.lock
	$(PYTHON) -c 'import sys; sys.exit("MST and AIM need Python 3.11: PYTHON=python3.11") if sys.version_info[:2] != (3, 11) else None'
	$(PYTHON) -m venv .cache/peers
	.cache/peers/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	touch $@

docs: setup ## the documentation as a site that opens from the file system, in .cache/site; links checked
	$(BIN)/python -m scripts.reference
	$(BIN)/zensical build --strict -f mkdocs.yml

ui: export STEPS_HOME = .steps-demo
ui: setup ## Prefect's server and a worker on loopback, with everything in prefect.yaml deployed
	scripts/ui.sh

lock: .cache/lock/bin/uv ## solve the dependencies: name, version and hash, without addresses; keeps the versions that still fit
	$< $(SOLVE) --all-extras $(UPGRADE) pyproject.toml --output-file requirements.lock

lock-upgrade: UPGRADE := --upgrade
lock-upgrade: lock ## the same with the newest versions

lock-peers: .cache/lock/bin/uv ## the same for what `make bench-peers` compares with: requirements-peers.lock
	echo $(PEERS) | $< $(SOLVE) - --output-file requirements-peers.lock

.cache/lock/bin/uv:
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/pip install --quiet --disable-pip-version-check uv

clean: ## remove what the targets above made, but never a ledger
	rm -rf .venv .cache .pytest_cache .hypothesis .ruff_cache build *.egg-info
