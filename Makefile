# `make demo` and `make test` need no preparation: scripts/setup.sh brings .venv, packages, Java and g++,
# and returns at once when nothing has changed. ARGS reaches pytest: make test ARGS="-k window -x"

# Not PYTHON: that one is the caller's, and names the Python that .venv is made from.
python := .venv/bin/python
ARGS ?=
DIST ?= dist

# Spark starts its Python workers with whatever `python3` is on the PATH unless told otherwise.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python

.PHONY: help setup demo test test-slow check show bench peers dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## .venv with every package, Java 17+ for Spark, g++ for simulators of circuits
	@scripts/setup.sh

demo: setup ## a band join on Spark: live, checked by the oracle; as a backfill, checked by Spark itself
	@.venv/bin/handfast demo

test: setup ## every claim's tests: a sample of the cases where there are many
	$(python) -m pytest -m "not slow and not more" -n 2 --dist loadfile --no-loadscope-reorder --durations=50 $(ARGS)

test-slow: setup ## the other cases, and the slow tests: hours
	$(python) -m pytest -m "slow or more" $(ARGS)

check: setup ## lint, format, types, import rule
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

show: setup ## what handfast promises, measured: name, figure, goal, pass or fail
	@$(python) -m tests.show

bench: setup peers ## every benchmark, results in benchmarks/results and docs/performance.md: hours, on a quiet machine
	@$(python) -m benchmarks $(ARGS)

peers: ## the stream engines that benchmarks compare with, each in an environment of its own
	@scripts/peers.sh

dist: setup ## wheel and source distribution, in dist/
	$(python) -m build --outdir $(DIST)

clean: ## remove caches and leftovers; .venv stays
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
