# Every target sets up what it needs: `make test` and `make demo` work on a bare machine with Python 3.11 or newer.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# one more than two cores: tests that start processes wait for them
JOBS ?= 3
STAMP := $(VENV)/.set-up
DOCS_STAMP := $(VENV)/.set-up-docs
BENCH_STAMP := $(VENV)/.set-up-bench
# MLX has wheels for Linux and for Macs with Apple silicon; its extra is empty elsewhere
EXTRAS := dev,torch,mlx,jax,lsp,mpi,tables,plot,models,serve
FAST := tests/tensor tests/test_face.py tests/test_imports.py tests/test_trees.py tests/test_declarations.py \
	tests/test_registry.py tests/lint/test_guidelines.py tests/autodiff/test_backward.py tests/behaviour/test_promotion.py
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help setup test test-fast test-pythons test-jax test-long lint tables format demo bench docs docs-test docs-version figures gallery dist docs-serve clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv and install everything that this platform has

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found; say which: make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[$(EXTRAS)]'
	$(BIN)/python -m compileall -q src/ember_ml # as pip does for a wheel; without it each import compiles
	@touch $@

test: setup ## the whole suite, 20 examples per property
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long" $(ARGS)

test-fast: setup ## a part of every subject, in under a minute
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not long" -k "not compiled" $(FAST) $(ARGS)

test-pythons: setup ## the tests on each other Python that is found (3.12, 3.13, 3.14), without PyTorch
	$(BIN)/python utils/test_pythons.py -n $(JOBS) $(ARGS)

test-jax: setup ## the whole suite on JAX, 20 examples per property; what it compiles is kept for the next run
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long" --backends jax -k jax $(ARGS)

test-long: setup ## 200 examples per property, fuzz and stress runs
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lint: setup ## ruff, pyright, mypy, import-linter, emberlint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python utils/check_public_types.py
	$(BIN)/lint-imports
	$(BIN)/python utils/check_imports.py
	$(BIN)/python utils/make_tables.py --check
	$(BIN)/emberlint src tests examples

tables: setup ## write the files that only repeat public names: stubs, the linter's and the tests' tables of ops
	$(BIN)/python utils/make_tables.py

format: setup ## put the code into its one form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: setup ## one training run that changes backends on its way, beside the same run on each alone
	OMP_NUM_THREADS=1 $(BIN)/ember-ml demo --picture ember-demo.png # its matrices are small: threads that wait for each other cost more

$(BENCH_STAMP): $(STAMP)
	$(INSTALL) -e '.[bench]'
	@touch $@

bench: $(BENCH_STAMP) ## what a call costs, beside the native call and Keras
	$(BIN)/python benchmarks/op_overhead.py
	$(BIN)/python benchmarks/large_ops.py
	$(BIN)/python benchmarks/neural.py
	$(BIN)/python benchmarks/distributed.py
	$(BIN)/python benchmarks/random_numbers.py
	$(BIN)/ember-ml bench

$(DOCS_STAMP): $(STAMP)
	$(INSTALL) -e '.[docs]'
	@touch $@

docs: $(DOCS_STAMP) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

docs-test: docs ## build the documentation and walk it in a browser (needs Chromium: apt-get install chromium)
	$(BIN)/python utils/walk_site.py site $(ARGS)

docs-version: $(DOCS_STAMP) ## add the site to the branch gh-pages as VERSION (such as 0.1), with a switch between versions
	@test -n "$(VERSION)" || { echo "say which: make docs-version VERSION=0.1"; exit 1; }
	EMBER_ML_DOCS_VERSIONS=mike $(BIN)/mike deploy --update-aliases $(VERSION) latest
	$(BIN)/mike set-default latest

figures: setup ## bring the figures of benchmarks/measured.json into the pages and charts
	$(BIN)/python utils/figures.py

gallery: setup ## run the examples and keep what they print and show, for the pages of the gallery (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python utils/make_gallery.py $(ARGS)

dist: $(DOCS_STAMP) ## build wheel and sdist; try the wheel in empty environments, with NumPy alone and each backend, and the sdist's tests
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python utils/try_dist.py dist $(ARGS)

docs-serve: $(DOCS_STAMP) ## serve the documentation on this machine
	$(BIN)/mkdocs serve

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-3.* site build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .emberlint_cache
