# Needs make and a python3 only; Python 3.11 or newer is looked for on PATH and under pyenv.
# The work is done by `python3 -m tests.harness`.

PYTHON ?= python3
ROWS ?= 1000000
QUEUES ?= 8
HARNESS = $(PYTHON) -m tests.harness

.PHONY: help demo test sweep clusters soak chaos bench bench-admin screenshots docs lint audit
.PHONY: messages package snapshot servers servers-stop clean

help:
	@echo "make demo          the reports project on SQLite, from empty to finished reports"
	@echo "make test          the whole suite on SQLite, MariaDB, PostgreSQL and MySQL;"
	@echo "                   make test ARGS='--databases sqlite --pythons newest -- -k claim'"
	@echo "make sweep         every statement of a job's life, broken with every error and by killing"
	@echo "                   the process, and many random histories; minutes for each database;"
	@echo "                   make sweep DATABASES=sqlite,postgres"
	@echo "make clusters      workers on Galera and on MySQL Group Replication, nodes killed;"
	@echo "                   make clusters CLUSTERS=galera"
	@echo "make soak          does a worker grow over 100 000 jobs? On MariaDB, or on DATABASE_URL;"
	@echo "                   make soak JOBS=5000"
	@echo "make chaos         is anything lost, doubled or stuck when workers, children and servers are"
	@echo "                   killed and frozen? Ten minutes a database;"
	@echo "                   make chaos CHAOS_DATABASES=mysql CHAOS_SECONDS=60 CHAOS_JOBS=1500 CHAOS_SEED=7"
	@echo "make bench         how fast is it, beside hand-written loops and other queues? Hours;"
	@echo "                   make bench DATABASES=postgres SCENARIOS=drain,peers PAIRS=5 JOBS=10000;"
	@echo "                   with ADD=1 the other rows of the last run stay"
	@echo "make bench-admin   is each page of the admin there within a second, in under 15 queries, at"
	@echo "                   1 000 000 jobs? On MariaDB and PostgreSQL, or on DATABASE_URL;"
	@echo "                   make bench-admin ROWS=50000 QUEUES=1000"
	@echo "make screenshots   the pictures in docs/screenshots, taken by the browser tests"
	@echo "make docs          the documentation as HTML in docs/_build/html; warnings are errors"
	@echo "make lint          ruff, mypy, pyright, import contracts, bandit, missing migrations"
	@echo "make audit         known vulnerabilities in what it is installed with; asks a service"
	@echo "make messages      new texts into the catalogues of translations, compiled; it fails while"
	@echo "                   one is not translated"
	@echo "make package       wheel and sdist in dist: built, looked into, and tried where there is"
	@echo "                   nothing else, on the oldest and the newest Python and Django"
	@echo "make snapshot      keep what this version writes, in tests/upgrade, before it is released"
	@echo "make servers       start throwaway servers and print the variables that name them"
	@echo "make servers-stop  stop them, and whatever a killed run left behind"
	@echo "make clean         stop servers; remove environments, caches and databases made here"

demo:
	@$(HARNESS) venv
	@.venv/bin/python testproject/manage.py demo

test:
	@$(HARNESS) test $(ARGS)

sweep:
	@LEASEQUEUE_SWEEP=whole $(HARNESS) test --pythons newest \
	  $(if $(DATABASES),--databases $(DATABASES)) -- -o timeout=1800 tests/sweep tests/model

clusters:
	@$(HARNESS) clusters $(if $(CLUSTERS),--clusters $(CLUSTERS)) $(ARGS)

soak:
	@$(HARNESS) soak --jobs $(or $(JOBS),100000)

chaos:
	@$(HARNESS) chaos $(if $(CHAOS_DATABASES),--databases $(CHAOS_DATABASES)) \
	  $(if $(CHAOS_SECONDS),--seconds $(CHAOS_SECONDS)) \
	  $(if $(CHAOS_JOBS),--jobs $(CHAOS_JOBS)) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED))

bench:
	@$(HARNESS) bench $(if $(DATABASES),--databases $(DATABASES)) $(if $(ADD),--add) -- \
	  $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(if $(PAIRS),--pairs $(PAIRS)) \
	  $(if $(JOBS),--jobs $(JOBS)) $(if $(SILENCE),--silence $(SILENCE))

screenshots:
	LEASEQUEUE_SCREENSHOTS=$(CURDIR)/docs/screenshots \
	$(HARNESS) test --databases mariadb --pythons newest -- tests/browser

bench-admin:
	@$(HARNESS) bench-admin --rows $(ROWS) --queues $(QUEUES) $(ARGS)

docs:
	@$(HARNESS) venv --extras docs
	@.venv/bin/sphinx-build -W --keep-going -n -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint:
	@$(HARNESS) venv --extras dev
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/pyright --pythonpath .venv/bin/python
	.venv/bin/lint-imports
	.venv/bin/bandit --quiet --configfile pyproject.toml --recursive django_leasequeue testproject
	.venv/bin/python testproject/manage.py makemigrations --check --dry-run

audit:
	@$(HARNESS) venv --extras dev
	.venv/bin/python -m pip install -q pip-audit
	.venv/bin/pip-audit --local --skip-editable

messages:
	@$(HARNESS) venv --extras dev
	@.venv/bin/python -m tests.messages

package:
	@$(HARNESS) package

snapshot:
	@$(HARNESS) venv --extras dev
	@PYTHONPATH=testproject .venv/bin/python -m tests.upgrade

servers:
	@$(HARNESS) servers start

servers-stop:
	@$(HARNESS) servers stop

clean: servers-stop
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf build dist docs/_build testproject/*.sqlite3*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
