# Two commands set everything up on a fresh machine: `make all` (the main job at smoke scale) and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= all

.PHONY: all env test test-all bench lint schema clean

all: env
	$(BIN)/snakemake --cores $(CORES) all

# The environment: pinned versions, this package in editable form, Concorde's prebuilt extension (its package's own
# dependencies are not wanted, hence --no-deps).
env: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 12) else "error: Python 3.11 or 3.12 is needed, this is " + sys.version.split()[0] + "; run: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps ml4co-kit
	touch $@

test: env
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: env
	$(BIN)/python -m pytest -n auto --dist loadfile

bench: env
	$(BIN)/python bench/bench.py

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

schema: env
	$(BIN)/neuroute schema

clean:
	git clean -fdXq results .snakemake
