# The everyday commands. `make demo` and `make test` need nothing but Python 3.11 to 3.13 and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# faiss-gpu in place of faiss-cpu: make setup EXTRAS=gpu,dev
EXTRAS ?= cpu,dev
comma := ,
READY := $(VENV)/.ready-$(subst $(comma),-,$(EXTRAS))
# Bytecode is kept even where the environment says not to: every process that the tests start would compile the packages again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo studio test test-slow test-all lint format bench pictures messages clean

help:
	@echo "make demo     the main job end to end on a bundled sample, in the terminal (some minutes)"
	@echo "make studio   open the studio in a browser"
	@echo "make test     the quick tests, on two cores (some minutes)"
	@echo "make test-slow what make test leaves out: slow tests, then those in a browser"
	@echo "make test-all all tests"
	@echo "make lint     ruff, mypy, import-linter and the limits of files and functions"
	@echo "make format   ruff's formatter"
	@echo "make bench    the speed table: each measure with its limit (an hour on two cores)"
	@echo "make pictures the pictures of the README and the first page, taken in Chromium (some minutes the first time)"
	@echo "make messages bring the interface's translations into step with the code"
	@echo "make clean    remove what was built; the environment and your data stay"

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Python 3.11, 3.12 or 3.13 is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@

demo: $(READY)
	$(BIN)/tailormt demo

studio: $(READY)
	$(BIN)/tailormt studio --open

PARALLEL := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder
# The browser's tests have a process of their own: an event loop of Playwright's runs in it to the end.
BROWSER := $(PARALLEL) tests/browser

test: $(READY)
	$(PARALLEL) -m "not slow and not browser"

test-slow: $(READY)
	$(PARALLEL) -m "slow and not browser"
	$(BROWSER)

test-all: $(READY)
	$(PARALLEL) -m "not browser"
	$(BROWSER)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python bench/code_size.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python bench/speed.py --threads 1

pictures: $(READY)
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_pictures.py --every build/pictures

messages: $(READY)
	$(BIN)/python -m studio.i18n.extract

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-out
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
