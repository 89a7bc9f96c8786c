# Every target does its own set-up: `make demo` and `make test` work on a fresh clone.
# Needed on the machine: Python 3.11 or newer; for the tests also Java 17 with Maven and PostgreSQL.

PYTHON ?= $(firstword $(shell command -v python3.11 python3.12 python3.13 python3))
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STACK := $(BIN)/python -m tests.stack
ARGS ?=

.DEFAULT_GOAL := help
.SHELLFLAGS := -eu -c
.DELETE_ON_ERROR:

##@ Use it

.PHONY: demo
demo: $(STAMP) ## run the whole loop in one process on a simulated cluster; ARGS="--check" and so on
	@$(BIN)/decklog demo $(ARGS)

.PHONY: stack-up
stack-up: $(STAMP) ## start a real Kafka and PostgreSQL without Docker; settings go to .stack/env
	@$(STACK) up

.PHONY: stack-down
stack-down: $(STAMP) ## stop them and delete their data
	@$(STACK) down

##@ Work on it

.PHONY: setup
setup: $(STAMP) ## make .venv from the lock, fetch Kafka's jars, find or install PostgreSQL
	@$(STACK) prepare

.PHONY: test
test: setup ## run the tests; ARGS="-k words", ARGS=--require-services and so on
	@$(BIN)/pytest $(ARGS)

.PHONY: golden
golden: setup ## write the golden files anew: look at the difference before you commit it
	@$(BIN)/pytest -k golden --update-golden $(ARGS)

.PHONY: fmt
fmt: $(STAMP) ## format the code and fix what can be fixed
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: lint
lint: $(STAMP) ## check format, lint and the import contracts
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/lint-imports --no-logo

.PHONY: type
type: $(STAMP) ## check the types (mypy --strict)
	@$(BIN)/mypy $(TYPED)

.PHONY: docs
docs: setup ## generate the reference from the code; check links, commands and the glossary
	@$(BIN)/python -m decklog.events.document docs/reference
	@$(BIN)/python -m decklog.cli.document docs/reference
	@$(BIN)/pytest -q tests/architecture/test_docs.py $(ARGS)

.PHONY: bench
bench: setup ## measure speed and print JSON; ARGS="--openb DIR" takes the real trace
	@$(BIN)/python -m bench $(ARGS)

.PHONY: bench-core
bench-core: setup ## measure how fast the core decides and print JSON
	@$(BIN)/python -m bench core $(ARGS)

.PHONY: ci
ci: lint type ## what a merge needs: lint, types, import contracts, all tests with real services
	@$(MAKE) --no-print-directory test ARGS="--require-services $(ARGS)"

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies again and write both lock files
	@$(BIN)/pip install --quiet uv
	@$(COMPILE) -o requirements.lock
	@$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock

.PHONY: clean
clean: ## delete what the tools made: caches, builds, .venv, a running stack
	@test ! -x $(BIN)/python || $(STACK) down
	@rm -rf $(VENV) .cache .stack build dist .coverage* .hypothesis .import_linter_cache
	@rm -rf .mypy_cache .pytest_cache .ruff_cache

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

TYPED := $(wildcard services migrations tests bench)

COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-header --no-annotate

$(STAMP): requirements-dev.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "no python3 on the path: install Python 3.11" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV) with $(PYTHON)" >&2; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
