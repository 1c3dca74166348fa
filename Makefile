# SPDX-License-Identifier: Apache-2.0
# Everything is installed into .venv and nowhere else. `make help` lists what
# can be made.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
TESTS ?=
# Processes for the functional tests.
JOBS ?= 2
# Where demo-serve listens.
PORT ?= 8774

# The first Python that is new enough; PYTHON=... chooses another one.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)

# Without git, from an unpacked archive for example, pbr finds no version.
ifneq ($(shell git rev-parse --git-dir 2>/dev/null && echo yes),)
else
export PBR_VERSION ?= 0.0.0
endif
# Nova runs in native threads, and so do its tests.
export OS_NOVA_DISABLE_EVENTLET_PATCHING := true

INPUTS := pyproject.toml setup.cfg constraints.txt
RUN := $(VENV)/.stamp-run
LINT := $(VENV)/.stamp-lint
DOCS := $(VENV)/.stamp-docs

.PHONY: help venv demo demo-serve test test-unit test-functional lint format \
	docs samples stress fuzz test-nova-suite bench clean

help:
	@echo 'make demo             the whole story on real Nova, each step checked'
	@echo 'make demo-serve       the same cloud left listening on 127.0.0.1'
	@echo 'make test             unit, property and functional tests'
	@echo 'make lint             ruff, hacking, mypy, import-linter, reno'
	@echo 'make docs             the documentation, into doc/build/html'
	@echo 'make samples          etc/state_policy/*.sample anew'
	@echo 'make stress           reloads and races under load'
	@echo 'make fuzz             random requests against Nova with and without us'
	@echo "make test-nova-suite  Nova's own functional tests behind the filter"
	@echo 'make bench            what a request costs'

$(PY):
	@test -n '$(PYTHON)' || { echo 'state-policy needs Python 3.11 or newer;' \
		'name one with make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is older than Python 3.11' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN): $(PY) $(INPUTS)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[nova,test]'
	@touch $@

$(LINT): $(RUN)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[lint]'
	@touch $@

$(DOCS): $(RUN)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

venv: $(RUN) $(LINT) $(DOCS)

demo: $(RUN)
	$(PY) -m demo

demo-serve: $(RUN)
	$(PY) -m demo --serve --port $(PORT)

test: test-unit test-functional

test-unit: $(RUN)
	$(PY) -m pytest -q -n $(JOBS) tests/unit tests/property $(TESTS)

test-functional: $(RUN)
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal tests/functional \
		$(TESTS)

lint: $(LINT)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/flake8
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/reno --quiet lint

format: $(LINT)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(DOCS)
	$(VENV)/bin/sphinx-build -W --keep-going -q -b html \
		-d doc/build/doctrees doc/source doc/build/html
	@echo 'doc/build/html/index.html'

samples: $(RUN)
	$(VENV)/bin/oslo-config-generator \
		--config-file etc/state_policy/config-generator.conf
	$(VENV)/bin/oslopolicy-sample-generator \
		--config-file etc/state_policy/policy-generator.conf

stress: $(RUN)
	$(PY) -m pytest -q -m stress tests/stress tests/functional

fuzz: $(RUN)
	$(PY) -m pytest -q -m fuzz tests/property tests/functional

test-nova-suite: $(RUN)
	$(PY) -m tests.nova_suite

bench: $(RUN)
	$(PY) -m benchmarks.analysis

clean:
	rm -rf $(VENV) doc/build build dist *.egg-info .pytest_cache .mypy_cache \
		.ruff_cache .hypothesis .import_linter_cache .nova-suite
