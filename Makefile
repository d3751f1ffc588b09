# Each target makes .venv when it is missing or out of date, and reuses it otherwise: nothing is installed outside the checkout,
# so it does not matter whether pip may install into the system's Python.

# `make PYTHON=python3.13 test` uses that interpreter, in an environment of its own.
VENV := .venv$(if $(filter command line environment,$(origin PYTHON)),-$(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])" 2>/dev/null))
INSTALLED := $(VENV)/installed
LOWEST := .venv-lowest
PACKAGE := .venv-package

# The first interpreter that is recent enough.
PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$candidate; break; fi; done)

.PHONY: demo test test-lowest test-torch lint docs leaderboard package bench attack mutate

# Estimate the mean of a real data set privately, and write the report to demo/.
demo: $(INSTALLED)
	$(VENV)/bin/quietbits demo --output demo

# Run all tests on three processes, of which one or another often waits for servers and workers that it has started, with one thread of
# linear algebra in each. Modules are compiled once, also where Python is told to write no bytecode: each worker would compile all tests anew,
# and each process that a test starts the whole package. Memory that arrays leave is kept for the next ones (glibc's two thresholds): given
# back to the system, it comes with a page fault for every 4 KiB.
test: $(INSTALLED)
	@echo "Testing on $$($(VENV)/bin/python --version), $(VENV)"
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=33554432 \
	$(VENV)/bin/pytest --quiet --numprocesses 3 --dist worksteal

# Install the lowest version of everything that pyproject.toml asks for, and run commands and the tests of three folders with it.
test-lowest: $(LOWEST)/installed
	@echo "Testing the lowest versions on $$($(LOWEST)/bin/python --version), $(LOWEST)"
	$(LOWEST)/bin/quietbits verify no-such-table.json; test $$? = 2
	$(LOWEST)/bin/quietbits demo --output $(LOWEST)/demo
	$(LOWEST)/bin/quietbits verify $(LOWEST)/demo/table.json
	$(LOWEST)/bin/quietbits account gaussian --noise-multiplier 1 --delta 1e-5 --rounds 10
	$(LOWEST)/bin/quietbits simulate cpsgd --clients 100 --dimension 8 --epsilon 4 --delta 1e-5
	OMP_NUM_THREADS=1 $(LOWEST)/bin/pytest --quiet --numprocesses 2 --dist worksteal tests/cli tests/design/tables tests/figures

$(LOWEST)/installed: pyproject.toml .ci/lowest_versions.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/lowest_versions.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(LOWEST)/installed

# Install torch, and test the models that are made of it.
TORCH ?= torch>=2.4
test-torch: $(INSTALLED)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest tests/analysis/training/test_torch_models.py tests/figures/test_papers_data.py tests/figures/test_trainings_on_papers_data.py

# Check style, docstrings, formatting and types. The link gives mypy the checkout under the package's name.
lint: $(INSTALLED)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	MYPYPATH=$(VENV)/mypy $(VENV)/bin/mypy --package quietbits

# Build the site into build/site, with warnings as errors. Figures and pages of mechanisms are computed; results that the code has not changed
# since are kept in build/site-results.
docs: $(VENV)/docs-installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m sphinx --builder html --jobs 2 --fail-on-warning --keep-going --quiet docs build/site
	@echo "The site is build/site/index.html"

# Plan the tasks of the leaderboard, and store the rows of all installed mechanisms with today's date. A killed run resumes.
leaderboard: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/quietbits plan docs/leaderboard/tasks.toml --output build/leaderboard
	PYTHONPATH=docs $(VENV)/bin/python -m generators.leaderboard build/leaderboard/results.parquet
	rm -r build/leaderboard

$(VENV)/docs-installed: $(INSTALLED)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $(VENV)/docs-installed

# Build the source distribution and, from it, the wheel; check what a package index would show; and run the wheel alone, without extras.
package:
	$(PYTHON) -m venv --clear $(PACKAGE)
	$(PACKAGE)/bin/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	$(PACKAGE)/bin/python -m build --outdir dist .
	$(PACKAGE)/bin/twine check --strict dist/*
	$(PACKAGE)/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(PACKAGE) && bin/quietbits design mvu --epsilon 1 --bits-in 2 --bits-out 1 --output table.json && bin/quietbits verify table.json
	du -sm $(PACKAGE)

# Run every benchmark; each prints its speed as a ratio to a named alternative. Packages that only benchmarks need are installed first, if
# they can be.
bench: $(INSTALLED)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' || echo "quietbits[bench] was not installed" >&2
	set -e; for benchmark in benchmarks/*.py benchmarks/long_runs/*.py; do echo "== $$benchmark"; OMP_NUM_THREADS=1 $(VENV)/bin/python "$$benchmark"; done

# Attack the package by random cases: docs/development/attack.md. Failed cases are written to attack/failures/ as tests.
SEED ?= 0
MINUTES ?= 10
attack: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m quietbits.attack --seed $(SEED) --minutes $(MINUTES)

# Put small faults into proofs and certificates, and report unnoticed faults: docs/development/attack.md. The same command goes on.
SHARE ?= 0.1
mutate: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m quietbits.attack.mutate --seed $(SEED) --minutes $(MINUTES) --share $(SHARE)

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "quietbits needs Python 3.11 or later: none was found; name one with make PYTHON=/path/to/python" >&2; exit 2; }
	@echo "Installing quietbits into $(VENV): about a minute, once"
	$(VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	mkdir -p $(VENV)/mypy && ln -sfn ../.. $(VENV)/mypy/quietbits
	touch $(INSTALLED)
