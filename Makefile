# Two commands set everything up on a fresh machine: `make all` (the main job at smoke scale) and `make test`.
# The first Python that serves; else `python3`, which workflow/machine.py then refuses in a clear line.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do $$p workflow/machine.py 2>/dev/null && echo $$p && exit; done; echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= all

.PHONY: all env test test-all bench lint schema docs lock clean

all: env
	$(BIN)/snakemake --cores $(CORES) all

# The environment: pinned versions, this package and those in extras (comparisons, the papers' rival systems) in editable form, and
# without its own dependencies two packages that carry Concorde and LKH-3 prebuilt (only for Linux on x86_64, LKH-3 up to Python 3.12; elsewhere others stand in).
env: $(VENV)/.ready

# Pins without hashes: any build of torch serves, and pip takes what the machine's index has.  `make env HASHES=yes` takes
# the files of requirements.lock alone.
# pip takes one core: the other meanwhile makes bytecode, compiles kernels and solvers and counts networks, by what is
# installed first.  Bytecode of what no job imports is left to whoever does.
FIRST = torch numba pydantic pyyaml safetensors scipy vrplib
PIP = $(BIN)/python -m pip install --no-compile --quiet --constraint constraints.txt
COMPILE = $(BIN)/python -m compileall -qq -x '/tests?/|site-packages/(ml4co_kit|mypyc?|networkx|pip|pygments|setuptools)/'
PARTS = neuroute.networks.kernels neuroute.solvers neuroute_systems.edge_maps neuroute.pipeline.plan
PREPARE = for part in $(PARTS); do PYTHONPATH=src:extras/systems/src:extras/compare/src $(BIN)/python -m $$part; done

EXTRAS = --editable extras/compare --editable extras/systems

$(VENV)/.ready: pyproject.toml extras/compare/pyproject.toml extras/systems/pyproject.toml constraints.txt
	@$(PYTHON) workflow/machine.py
	$(PYTHON) -m venv $(VENV)
ifdef HASHES
	$(BIN)/python -m pip install --no-compile --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --no-compile --quiet --no-deps --editable . $(EXTRAS)
	$(PREPARE) || true
else
	$(PIP) $(FIRST)
	{ $(COMPILE) $(VENV)/lib/python*/site-packages/torch; $(PREPARE); } & \
		$(PIP) --editable '.[dev]' $(EXTRAS); installed=$$?; \
		$(PIP) --no-deps --only-binary ml4co-kit ml4co-kit \
			|| echo "note: no prebuilt Concorde for this machine; another solver stands in: neuroute doctor"; \
		$(PIP) --no-deps --only-binary LKHpy LKHpy \
			|| echo "note: no prebuilt LKH-3 for this machine and Python; another solver stands in: neuroute doctor"; \
		wait; exit $$installed
endif
	$(COMPILE) -j 0 $(VENV)/lib || true  # of files for other Pythons there is none
	$(BIN)/snakemake -n all > /dev/null 2>&1 || true  # fills what planning keeps beside the bytecode
	touch $@

test: env
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: env
	$(BIN)/python -m pytest -n auto --dist loadfile

bench: $(VENV)/.bench
	$(BIN)/python bench/bench.py

$(VENV)/.bench: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]' && touch $@ \
		|| echo "note: rl4co cannot be installed here; its rows are left out"

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python workflow/lint.py

schema: env
	$(BIN)/neuroute schema

# The site, in build/site; built offline, once the packages are there.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

$(VENV)/.docs: $(VENV)/.ready docs/constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --constraint docs/constraints.txt --editable '.[docs]'
	touch $@

# Versions are chosen in uv.lock, by pyproject.toml (`uv lock --upgrade` takes newer ones): the two files for pip follow.
# Needs uv, and the network.
EXPORT = uv export --quiet --frozen --no-emit-workspace --no-annotate
lock:
	uv lock
	$(EXPORT) --output-file requirements.lock
	$(EXPORT) --extra slurm --extra storage --no-header --no-hashes | sed -E '/^(nvidia|cuda|triton)/d; s/ ;.*//' > build.pins
	sed -i '/^[^#]/d' constraints.txt && cat build.pins >> constraints.txt && rm build.pins

clean:
	git clean -fdXq results .snakemake
