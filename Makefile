PYTHON ?= python3
BIN := .venv/bin
ROOT ?= runs/demo

.PHONY: demo test test-slow check packages format clean

# The environment, made once; touched files decide whether it must be made again.
.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "csl_dist needs \
	Python 3.11 or later, but $(PYTHON) is $$($(PYTHON) --version 2>&1); name another one: \
	make PYTHON=python3.11" >&2; exit 2; }
	@echo "installing into .venv (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/.installed  ## the whole flow on the embedded dataset
	@$(BIN)/csl demo --root $(ROOT)

test: .venv/.installed  ## the tests, a worker for each core, and the slowest of them
	@$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder --durations 15

test-slow: .venv/.installed  ## tests that kill processes and build clusters, for minutes
	@$(BIN)/python -m pytest -q -m slow

check: .venv/.installed  ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

packages: .venv/.installed  ## known holes in installed packages; needs pip-audit and its database
	@$(BIN)/python -m pip_audit --skip-editable

format: .venv/.installed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf .venv runs
