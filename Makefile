# Each target is one documented command, printed as it runs; nobody needs make.
#   make setup   .venv with everything            make demo   stand-ins, a minute of load, a verdict
#   make test    the test suite                   make check  linters, types, tests
#   make live    real MCP servers (npm, PyPI)     make ui     Locust's web form, on http://localhost:8089
.DEFAULT_GOAL := help
.PHONY: help setup demo test check ui live live-setup clean

VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The first Python on the PATH that starts and is new enough for the lab.
SUITS := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for each in python3 python python3.14 python3.13 python3.12 python3.11; do \
	"$$each" -c "$(SUITS)" 2>/dev/null && command -v "$$each" && break; done)

help:
	@sed -n '1,/^\.DEFAULT/{/^#/s/^# \{0,1\}//p;}' Makefile

setup: $(READY)
	@echo "$(VENV) is ready"

$(READY): requirements.txt requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "make setup: no Python 3.11 or newer on the PATH;" \
		"install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c "$(SUITS)" || { echo "make setup: $(PYTHON) is not Python 3.11 or newer;" \
		"name another: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@began=$$(date +%s); set -ex; \
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt; \
	touch $(READY); set +x; \
	echo "make setup took $$(( $$(date +%s) - began )) s"

demo: $(READY)
	$(BIN)/python -m lab demo

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest

ui: $(READY)
	LOCUST_HEADLESS=false $(BIN)/python -m locust -f multi.py --web-host 127.0.0.1

live-setup: $(READY)
	$(BIN)/python -m lab matrix --install

live: live-setup
	$(BIN)/python -m pytest -m live tests/live

clean:
	rm -rf $(VENV) .live .emulate .ci/work .mypy_cache .pytest_cache .ruff_cache
