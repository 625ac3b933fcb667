# Weft's commands. `make demo` and `make test` need Python 3.11+ and nothing else: they set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow lint bench validate clean

demo: .venv/installed  ## a tablecloth falls and drapes: recording, certificate, picture, animation
	$(BIN)/weft run tablecloth -o out/tablecloth --overwrite
	$(BIN)/weft check out/tablecloth
	$(BIN)/weft render out/tablecloth -o out/tablecloth.png
	$(BIN)/weft render out/tablecloth -o out/tablecloth.webp
	@echo "open out/tablecloth.png (picture) and out/tablecloth.webp (animation)"

test: .venv/developed lint  ## lint, types, layers and the tests
	$(BIN)/pytest

slow: .venv/developed  ## the long physics and stress runs
	$(BIN)/pytest -m slow

lint: .venv/developed
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/developed  ## speed, as ratios measured in one run
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .[peers]
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

validate: .venv/developed  ## cloth against theory, as figures in out/validate
	$(BIN)/python -m weft.lab.validate out/validate

.venv/bin/python:
	$(PYTHON) -c "import sys; sys.exit('Weft needs Python 3.11 or newer; set PYTHON=...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/developed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .[dev]
	@touch $@ .venv/installed

clean:
	rm -rf .venv out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
