# `make demo` and `make test` do all the setup on a fresh machine. `make test-all` also runs the slow tests.
PYTHON ?= python3
JOBS ?= 2
# Numbers of parallel tests and of exercises that are proved in parallel; more than two, because they also wait.
TESTERS ?= 3
PROVERS ?= 4
# Rooms whose tests need no sandbox, for the fast loop.
ROOMS := clock common course exercise expect hardware intake judging learner reports runner wire
# Few exercises with every kind of task. With the examples of the documentation, which tests verify, they use every check
SAMPLE := a2 c4 e4 g2
# The quick files of the rooms that start workers
QUICK := $(patsubst %,batch/test_%.py,changes database grade late names overrides) \
  $(patsubst %,cli/test_%.py,console docs) $(patsubst %,sandbox/test_%.py,calls confine keeper tiers)
# Number of future terms to prove the course for. Before a term, and after changed checks: make SEEDS=20 verify
SEEDS ?= 1
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv takes a fifth of pip's time, but ignores pip's settings. If it finds no packages, pip is tried.
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The environment keeps its Python until a command names another one: make PYTHON=python3.13 test-fast
ifneq ($(and $(filter file,$(origin PYTHON)),$(wildcard $(VENV)/.installed-*)),)
PYTHON := $(shell $(BIN)/python -c 'import sys; print(sys._base_executable)')
endif
INSTALLED := $(VENV)/.installed-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# Only Linux has a sandbox. Elsewhere the examples, which are our own code, run without one.
ISOLATION ?= $(if $(filter Linux,$(shell uname -s)),auto,none)

.PHONY: demo test pytest test-all test-slow test-fast lint verify docs pictures install lock bench dist clean

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	@[ ! -e $(VENV) ] || [ -f $(VENV)/pyvenv.cfg ] || { echo "$(VENV) is there and no environment of Python's"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --constraint requirements.lock uv
	$(UV_INSTALL) --compile-bytecode -r requirements.lock || $(PIP_INSTALL) -r requirements.lock
	$(UV_INSTALL) --no-deps --editable . || $(PIP_INSTALL) --no-deps --editable .
	@# Workers write no bytecode, so without this line each worker would compile the grader's modules again.
	$(BIN)/python -m compileall -q grader
	@touch $@

demo: install
	$(BIN)/shardlings grade examples/submissions --out graded -j $(JOBS) --isolation $(ISOLATION)
	@echo "Open graded/index.html"

# What a change of the core can break on this machine: style, types, all tests that are not slow, a sample of the course.
# Lint runs beside the tests, because pyright uses one core.
test: install
	$(MAKE) -j 2 lint pytest
	$(BIN)/shardlings verify -j $(PROVERS) --isolation $(ISOLATION) $(SAMPLE)

pytest: install
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup --no-loadscope-reorder -m "not slow" --ignore tests/wings

test-all: test verify test-slow

# The slow tests, with those of all wings and all sandboxes
test-slow: install
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup --no-loadscope-reorder -m "slow and not by_hand" --durations 25

test-fast: install
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup --no-loadscope-reorder -m "not slow" --hypothesis-profile quick $(addprefix tests/,$(ROOMS) $(QUICK))

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python docs/words.py

# In the sandbox, so that each right program of the course is graded once under the filter of system calls. The cache
# knows which exercises were proved, for example in `make test`, and had no problem with this grader, course and machine.
verify: install
	$(BIN)/shardlings verify -j $(PROVERS) --seeds $(SEEDS) --isolation $(ISOLATION)
	$(BIN)/shardlings mutants -j $(PROVERS) --seeds $(SEEDS)

# Build site/. All links are checked, and warnings are errors.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

# Pictures for the documentation and the statements. The picture of a report needs chromium.
pictures: install
	$(BIN)/python docs/clock_pictures.py
	$(BIN)/python docs/module_pictures.py
	$(BIN)/python docs/import_pictures.py
	$(BIN)/python docs/report_picture.py
	$(BIN)/shardlings grade examples/submissions --out graded -j $(JOBS) --isolation $(ISOLATION)
	$(BIN)/python docs/class_picture.py graded

lock: install
	$(BIN)/uv pip compile --universal --no-annotate --no-header --python-version 3.11 --group dev --extra nbgrader \
	  --upgrade --quiet -o requirements.lock pyproject.toml

# Packages come from the last commit, so that uncommitted changes in exercises/ are left out.
dist: install
	rm -rf build dist
	mkdir build
	git archive HEAD | tar -x -C build
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist build
	$(BIN)/twine check dist/*.whl dist/*.tar.gz

# Writes docs/performance.md, bench/performance.md and bench/performance.json. The other scripts in bench/ answer questions of their own.
bench: install
	$(BIN)/python bench/performance.py

clean:
	rm -rf .venv .venvs build dist graded site .pytest_cache .ruff_cache .hypothesis
