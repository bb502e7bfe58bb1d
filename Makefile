# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
JOBS ?= 2
# Tests at a time, and exercises proved at a time: they wait, too
TESTERS ?= 3
PROVERS ?= 3
# The loop: tests of the rooms that need no sandbox
ROOMS := clock common course exercise expect hardware intake judging learner reports runner wire wings/leaderboard wings/predict wings/similar
# The quick files of the rooms that start workers
QUICK := $(patsubst %,batch/test_%.py,changes database grade late names overrides) \
  $(patsubst %,cli/test_%.py,console docs imports options) $(patsubst %,sandbox/test_%.py,calls confine keeper tiers)
# Terms to prove the course for; before a term, and after a change of checks: make SEEDS=20 verify
SEEDS ?= 1
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A fifth of pip's time. It reads none of pip's settings: where it finds no packages, pip may.
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The environment keeps its Python until a command names another one: make PYTHON=python3.13 test-fast
ifneq ($(and $(filter file,$(origin PYTHON)),$(wildcard $(VENV)/.installed-*)),)
PYTHON := $(shell $(BIN)/python -c 'import sys; print(sys._base_executable)')
endif
INSTALLED := $(VENV)/.installed-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# Elsewhere than on Linux there is no sandbox; the examples are ours, so they may run without one.
ISOLATION ?= $(if $(filter Linux,$(shell uname -s)),auto,none)

.PHONY: demo test test-fast lint verify docs pictures install lock bench dist clean

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	@[ ! -e $(VENV) ] || [ -f $(VENV)/pyvenv.cfg ] || { echo "$(VENV) is there and no environment of Python's"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --constraint requirements.lock uv
	$(UV_INSTALL) --compile-bytecode -r requirements.lock || $(PIP_INSTALL) -r requirements.lock
	$(UV_INSTALL) --no-deps --editable . || $(PIP_INSTALL) --no-deps --editable .
	@touch $@

demo: install
	$(BIN)/shardlings grade examples/submissions --out graded -j $(JOBS) --isolation $(ISOLATION)
	@echo "Open graded/index.html"

test: lint verify
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup --no-loadscope-reorder

test-fast: install
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup --no-loadscope-reorder -m "not slow" $(addprefix tests/,$(ROOMS) $(QUICK))

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python docs/words.py

verify: install
	$(BIN)/shardlings verify --no-store -j $(PROVERS) --seeds $(SEEDS)
	$(BIN)/shardlings mutants -j $(PROVERS) --seeds $(SEEDS)

# site/: every link is followed, warnings are errors
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

# Pictures of the documentation and of statements; the report's needs chromium
pictures: install
	$(BIN)/python docs/clock_pictures.py
	$(BIN)/python docs/report_picture.py
	$(BIN)/shardlings grade examples/submissions --out graded -j $(JOBS) --isolation $(ISOLATION)
	$(BIN)/python docs/class_picture.py graded

lock: install
	$(BIN)/uv pip compile --universal --no-annotate --no-header --python-version 3.11 --group dev --extra nbgrader \
	  --upgrade --quiet -o requirements.lock pyproject.toml

# As committed: what somebody wrote into exercises/ is in no package.
dist: install
	rm -rf build dist
	mkdir build
	git archive HEAD | tar -x -C build
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist build
	$(BIN)/twine check dist/*.whl dist/*.tar.gz

# docs/performance.md and build/bench.json; the other scripts in bench/ answer questions of their own
bench: install
	$(BIN)/python bench/performance.py

clean:
	rm -rf .venv .venvs build dist graded site .pytest_cache .ruff_cache .hypothesis
