# `make demo` and `make test` work on a fresh machine with Python ≥ 3.11 and make; everything they need goes into .venv.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
DEMO := examples/youth-voter
export STEPS_HOME ?= .steps

.PHONY: help setup demo test test-fast audit-privacy bench ui lock lint clean

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

test: setup ## all tests; installs Chromium and PostgreSQL first when it may
	scripts/system-packages.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-fast: setup ## the tests that take seconds
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not (slow or server or browser or postgres)"

audit-privacy: setup ## minutes of trials that try to catch a broken guarantee
	STEPS_AUDIT_TRIALS=40000 $(BIN)/python -m pytest -n 2 -k "audit or epsilon or control" tests/steps_engine

bench: setup ## ratios against numpy, OpenDP, DuckDB, scikit-learn and statsmodels, measured in one run
	$(BIN)/python -m benchmarks

ui: export STEPS_HOME = .steps-demo
ui: setup ## Prefect's server and a worker on loopback, with everything in prefect.yaml deployed
	scripts/ui.sh

.PHONY: docs
docs: setup ## the documentation as a site that opens from the file system, links checked: .cache/site/index.html
	$(BIN)/python -m scripts.reference
	$(BIN)/python -m zensical build --strict

lock: ## solve the dependencies anew: name, version and hash, without addresses
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/pip install --quiet --disable-pip-version-check uv
	.cache/lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--python-version 3.11 --extra dask --extra test --upgrade pyproject.toml --output-file requirements.lock

lint: setup ## ruff
	$(BIN)/ruff check .

clean: ## remove what the targets above made, but never a ledger
	rm -rf .venv .cache .pytest_cache .hypothesis .ruff_cache build *.egg-info
