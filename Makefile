PYTHON ?= python3
BIN := .venv/bin
ROOT ?= runs/demo

.PHONY: demo test test-slow check docs locked hashes packages format clean

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

docs: .venv/.installed  ## the site, into site/; a broken link is an error
	@$(BIN)/python docs/config_reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

# torch comes as another build for each kind of machine, with its own hash, and is pinned by version alone.
locked:  ## the environment, where pip compares every file but torch's with constraints-hashes.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --require-hashes -r constraints-hashes.txt
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch .venv/.installed

.venv-tools/.installed:
	@$(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/pip install -qq --disable-pip-version-check uv pip-audit
	@touch $@

hashes: .venv-tools/.installed  ## writes constraints-hashes.txt anew after a change of constraints.txt
	@grep -vE '^torch(vision)?==' constraints.txt | .venv-tools/bin/uv pip compile -q - --no-deps --generate-hashes \
	  --no-annotate --no-header --python-version 3.11.0 -o constraints-hashes.txt

packages: .venv-tools/.installed  ## known holes in the pinned packages, where their database can be reached
	@$(PYTHON) cluster/holes.py .venv-tools/bin/pip-audit constraints-hashes.txt

format: .venv/.installed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-tools runs
