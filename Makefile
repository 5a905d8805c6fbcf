# make demo, make test, make check. Each creates .venv first, once, with nothing but a Python 3.11 or newer.
# make test-services also needs a PostgreSQL, a MariaDB and a Redis; make demo-celery the first and the last of them;
# make chaos needs the programs of these servers and of RabbitMQ, and starts its own.
# Written for GNU make 3.81, the one that macOS has.

# The Python to build .venv with. Empty: the first of CANDIDATES that will do.
PYTHON ?=
CANDIDATES = python3.13 python3.12 python3.11 python3

VENV = .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/installed
WITH_SERVICES = $(VENV)/installed-services
WITH_BROWSER = $(VENV)/installed-browser
# What every database has to pass: each of these tests runs on SQLite too, unless it is about locks of rows.
ON_SERVERS = $(wildcard tests/engine tests/celery tests/traps tests/worker tests/model tests/proof)
# Real Celery workers on a real broker: a cell of {PostgreSQL, MariaDB} x {Redis, RabbitMQ}, and the demo.
CELLS = $(wildcard tests/celery/live)
ON_CELERY = $(CELLS) $(wildcard tests/example/test_demo_on_celery.py)
# What to add to a pytest call, for example: make test PYTEST='-k sleep -x'
PYTEST =
# What to add to a benchmark, see its --help
BENCH =
# Of a campaign: so many seeds, or from one to another, for example SEEDS=500:700
SEEDS = 100
WITH_SEEDS = WORKFLOW_ENGINE_CHAOS_SEEDS=$(SEEDS)
EACH = sqlite postgresql mysql
# Where a campaign leaves its figures.
FIGURES = $(CURDIR)/build/figures
# Of live chaos: the cell, how long, and what the programs and the order of the faults are made from.
DATABASE = postgresql
BROKER = redis
SECONDS = 200
SEED = 1
# Of the state machine: so many examples, made from SEED too.
EXAMPLES = 2000

SHELL = /bin/sh
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK = 1

# Prints the interpreter itself, even when the one that runs belongs to a virtual environment (.venv may be active, and
# is about to be replaced). Fails below 3.11. A file on PATH proves nothing: a pyenv shim exists and yet fails.
PROBE = import sys; sys.version_info >= (3, 11) or sys.exit(1); print(getattr(sys, "_base_executable", sys.executable))

# .venv is built again when pyproject.toml is newer, when its Python no longer runs, and when PYTHON= names another one.
VENV_PYTHON := $(shell $(BIN)/python -c '$(PROBE)' 2>/dev/null </dev/null)
ifeq ($(VENV_PYTHON),)
STALE = stale
else
ifneq ($(PYTHON),)
ifneq ($(shell '$(PYTHON)' -c '$(PROBE)' 2>/dev/null </dev/null),$(VENV_PYTHON))
STALE = stale
endif
endif
endif

.PHONY: help demo demo-celery test test-browser test-services test-cells chaos chaos-cell chaos-servers chaos-interleave
.PHONY: chaos-crash chaos-model chaos-programs campaign bench-timers check lint clean stale

help:
	@echo "make demo           a small shop runs 200 orders through a workflow (SQLite, no server)"
	@echo "make demo-celery    the same on Celery, with PostgreSQL and Redis: example_project/settings_celery.py"
	@echo "make test           the tests (SQLite, no server), but for those in a browser"
	@echo "make test-browser   the admin in headless Chromium, which has to be installed"
	@echo "make test-services  the tests of the engine on PostgreSQL and on MariaDB, and of Celery workers with Redis"
	@echo "make test-cells     Celery workers on each of PostgreSQL and MariaDB with each of Redis and RabbitMQ"
	@echo "make chaos          Celery workers on private servers; everything is killed, stopped and cut off, in each of 4 cells"
	@echo "make chaos-cell     one of them: DATABASE=mariadb BROKER=rabbitmq SECONDS=200 SEED=1"
	@echo "make chaos-servers  the private servers alone are killed and started again"
	@echo "make chaos-crash    processes die at every failpoint, three deep; COMMITs break off; others come in between; SEEDS=20"
	@echo "make chaos-interleave  threads meet, one SQL statement at a time, in an order that each of SEEDS=100 decides"
	@echo "make chaos-programs    workers run workflows made by chance, are killed, stopped and cut off; SEEDS=100 too"
	@echo "make chaos-model    a state machine: people, senders, workers, crashes, clocks, a broker; EXAMPLES=2000 SEED=1"
	@echo "make campaign       all of these, and the figures into docs/RELIABILITY.md; SEEDS=20 takes hours"
	@echo "make bench-timers   how late are timers with Celery workers, PostgreSQL and Redis? BENCH='--broker rabbitmq --timers 100'"
	@echo "make check          everything a change must pass: format, lint, types, layers, migrations, tests with coverage"
	@echo "make lint           that, without the tests"
	@echo "make clean          removes .venv, caches, builds and the databases of the demo"
	@echo
	@echo "PYTHON=/path/to/python3 chooses the Python for .venv. PYTEST='-k sleep -x' is passed to pytest."

demo: $(INSTALLED)
	@$(BIN)/python manage.py demo

demo-celery: $(WITH_SERVICES)
	@$(BIN)/python manage.py demo --settings example_project.settings_celery

test: $(INSTALLED)
	@$(BIN)/python -m pytest -q $(PYTEST)
	@echo "Left out: the admin in a browser (make test-browser), real servers (make test-services)."

# $(call on_each,databases,variables,tests): the tests on one database after the other, and which of them failed.
define on_each
failed=; \
for engine in $(1); do \
  echo "== $$engine"; \
  $(2) WORKFLOW_ENGINE_TEST_ENGINE=$$engine $(BIN)/python -m pytest -q $(3) $(PYTEST) || failed="$$failed $$engine"; \
done; \
test -z "$$failed" || { echo "Failed on:$$failed." >&2; exit 1; }
endef

test-services: $(WITH_SERVICES)
	@failed=; \
	($(call on_each,postgresql mysql,,$(ON_SERVERS))) || failed=yes; \
	echo "== celery workers, postgresql and redis"; \
	WORKFLOW_ENGINE_TEST_ENGINE=postgresql $(BIN)/python -m pytest -q -m services $(ON_CELERY) $(PYTEST) \
	  || { echo "Failed on: celery workers." >&2; failed=yes; }; \
	test -z "$$failed"

test-cells: $(WITH_SERVICES)
	@$(call on_each,postgresql mysql,,-m "services or every_cell" $(CELLS))

test-browser: $(WITH_BROWSER)
	@$(BIN)/python -m pytest -q -m browser --ds=tests.browser.settings tests/browser $(PYTEST)

chaos-crash: $(WITH_SERVICES)
	@$(call on_each,$(EACH),$(WITH_SEEDS),$(addprefix tests/proof/test_,crash_matrix.py interruptions.py broken_commits.py))

chaos-interleave: $(WITH_SERVICES)
	@$(call on_each,postgresql mysql,$(WITH_SEEDS),tests/proof/interleavings)

# On SQLite, or where WORKFLOW_ENGINE_TEST_ENGINE says.
chaos-model: $(INSTALLED)
	@WORKFLOW_ENGINE_MODEL_EXAMPLES=$(EXAMPLES) WORKFLOW_ENGINE_MODEL_SEED=$(SEED) \
	  $(BIN)/python -m pytest -q tests/model/test_machine.py tests/model/test_sabotage.py $(PYTEST)

chaos-programs: $(WITH_SERVICES)
	@$(call on_each,$(EACH),$(WITH_SEEDS),tests/proof/random_programs)

# All of it, with the figures for the documentation; each part goes on after another one has failed.
campaign: $(WITH_SERVICES)
	@rm -rf $(FIGURES)
	@export WORKFLOW_ENGINE_CHAOS_FIGURES=$(FIGURES); \
	failed=; \
	($(call on_each,$(EACH),$(WITH_SEEDS),tests/proof)) || failed=yes; \
	$(MAKE) chaos-model || failed=yes; \
	$(MAKE) chaos || failed=yes; \
	$(BIN)/python -m tests.proof.report $(FIGURES) --into docs/RELIABILITY.md || failed=yes; \
	test -z "$$failed"

# The servers are private ones, on 127.0.0.1, and gone afterwards.
chaos: chaos-servers
	@failed=; \
	for cell in 'postgresql redis' 'postgresql rabbitmq' 'mariadb redis' 'mariadb rabbitmq'; do \
	  $(MAKE) chaos-cell DATABASE=$${cell% *} BROKER=$${cell#* } || failed="$$failed, $$cell"; \
	done; \
	test -z "$$failed" || { echo "Failed$$failed." >&2; exit 1; }

chaos-servers: $(WITH_SERVICES)
	@$(BIN)/python -m pytest -q -m services tests/servers $(PYTEST)

chaos-cell: $(WITH_SERVICES)
	@$(BIN)/python -m tests.celery.chaos --database $(DATABASE) --broker $(BROKER) --seconds $(SECONDS) --seed $(SEED)

bench-timers: $(WITH_SERVICES)
	@$(BIN)/python -m tests.benchmarks.timers $(BENCH)

check: lint
	@echo "== tests, with branch coverage"
	@$(BIN)/python -m pytest -q --cov --cov-branch $(PYTEST)

lint: $(INSTALLED)
	@echo "== format"
	@$(BIN)/ruff format --check --quiet .
	@echo "== rules"
	@$(BIN)/ruff check --quiet .
	@echo "== types"
	@$(BIN)/mypy --no-error-summary
	@echo "== layers"
	@$(BIN)/lint-imports --no-logo
	@echo "== migrations"
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@DJANGO_SETTINGS_MODULE=tests.settings_other_auto_field $(BIN)/python -m django makemigrations --check --dry-run

clean:
	rm -rf $(VENV) $(VENV)-* build dist htmlcov .coverage .coverage.* example_project/var/*
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

stale:

$(INSTALLED): pyproject.toml $(STALE)
	@found=; unable=; \
	for candidate in $(if $(PYTHON),'$(PYTHON)',$(CANDIDATES)); do \
	  python=$$("$$candidate" -c '$(PROBE)' 2>/dev/null </dev/null) || continue; \
	  test -n "$$python" || continue; \
	  if "$$python" -c 'import ensurepip, venv' 2>/dev/null </dev/null; then found=$$python; break; fi; \
	  test -n "$$unable" || unable=$$python; \
	done; \
	if test -z "$$found" && test -n "$$unable"; then \
	  version=$$("$$unable" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "Python $$version ($$unable) cannot create a virtual environment: its venv or ensurepip module is missing." >&2; \
	  echo "On Debian and Ubuntu: sudo apt install python$$version-venv" >&2; \
	  echo "Or name another Python that has both: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; \
	  exit 1; \
	fi; \
	if test -z "$$found" && test -n '$(PYTHON)'; then \
	  echo "PYTHON=$(PYTHON) does not run, or is older than 3.11." >&2; \
	  exit 1; \
	fi; \
	if test -z "$$found"; then \
	  echo "No Python 3.11 or newer runs here. Tried: $(CANDIDATES)." >&2; \
	  echo "Install one (Debian and Ubuntu: sudo apt install python3 python3-venv)," >&2; \
	  echo "or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; \
	  exit 1; \
	fi; \
	version=$$("$$found" -c 'import platform; print(platform.python_version())'); \
	echo "Creating $(VENV) with Python $$version ($$found). This happens once and takes about a minute."; \
	rm -rf $(VENV) && \
	"$$found" -m venv $(VENV) && \
	$(BIN)/python -m pip install -qq -e '.[dev]' && \
	touch $(INSTALLED)

$(WITH_BROWSER): $(INSTALLED)
	@echo "Adding Playwright to $(VENV); the browser is the system's Chromium (Debian and Ubuntu: sudo apt install chromium)."
	@$(BIN)/python -m pip install -qq -e '.[dev,browser]'
	@touch $(WITH_BROWSER)

$(WITH_SERVICES): $(INSTALLED)
	@echo "Adding Celery and the drivers of PostgreSQL and MariaDB to $(VENV)."
	@$(BIN)/python -m pip install -qq -e '.[dev,services]' || { \
	  echo "If mysqlclient is what failed: it is compiled, with the headers of MariaDB's client." >&2; \
	  echo "On Debian and Ubuntu: sudo apt install gcc pkg-config libmariadb-dev python3-dev" >&2; \
	  exit 1; \
	}
	@touch $(WITH_SERVICES)
