# The same commands for people and for CI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests start many processes of Python, which load modules faster from bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-benchmarks test-torch check bench dist clean

# `plot` is all the demo needs; `test` contains it.
$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot]"
	touch $@

$(VENV)/.test: pyproject.toml reproduce/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]" --editable ./reproduce
	touch $(VENV)/.demo $@

# Other libraries to compare with; one of them is compiled on installation.
$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,bench]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/bifactor demo --output demo.html

test: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Tests of the benchmarks; rivals that are not installed are skipped.
test-benchmarks: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 tests/benchmarks

# torch has an environment of its own: the other tests must not need it.
$(VENV)-torch/.test: pyproject.toml
	test -x $(VENV)-torch/bin/python || $(PYTHON) -m venv $(VENV)-torch
	$(VENV)-torch/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test,torch]"
	touch $@

test-torch: $(VENV)-torch/.test
	$(VENV)-torch/bin/python -m pytest --numprocesses 2 tests/test_libraries.py tests/kernels/test_entries_torch.py

# The site has an environment of its own too. Examples of the gallery are run; a warning is an error.
.PHONY: docs docs-serve
$(VENV)-docs/.docs: pyproject.toml
	test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

docs: $(VENV)-docs/.docs
	$(VENV)-docs/bin/python -m sphinx --fail-on-warning --keep-going --quiet --jobs 2 docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-serve: docs
	$(VENV)-docs/bin/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py
	$(BIN)/python .ci/shape.py

$(VENV)-dist/.tools:
	test -x $(VENV)-dist/bin/python || $(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check "build>=1.2" "twine>=6.1"
	touch $@

# A wheel and a source archive, checked, and the wheel installed into an empty environment and used.
dist: $(VENV)-dist/.tools
	rm -rf dist
	$(VENV)-dist/bin/python -m build
	$(VENV)-dist/bin/python -m twine check --strict dist/*
	$(PYTHON) .ci/smoke.py dist/*.whl

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks --output bench.json

clean:
	rm -rf $(VENV) $(VENV)-torch $(VENV)-dist demo.html bench.json build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(VENV)-docs demo.html docs/_build docs/gallery docs/api/generated
