# Two commands do everything on a machine with Python 3.11+ and Java 17: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install demo test check format fuzz tpch tpcds chaos crash clean

install: $(STAMP)

$(STAMP): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "spark-trickle needs Python 3.11 or newer; hint: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv (once)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[postgres]' -r requirements-dev.txt
	@touch $(STAMP)

demo: install          ## the tour: two tables, three stream tables, a change, a refresh, a proof
	@$(BIN)/python examples/demo.py

# Spark's first start downloads Delta's jars; two processes must not do that at the same time.
.venv/.jars: $(STAMP)
	@echo "Downloading Delta's jars (once)…"
	@$(BIN)/trickle --home .venv/.first-start sql "SELECT 1" > /dev/null
	@touch $@

test: install .venv/.jars  ## pure tests first, then those with Spark
	$(BIN)/python -m pytest tests/pure tests/catalog
	$(BIN)/python -m pytest tests/spark -n 2

check: install         ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: install          ## random edits and random queries, more than CI has time for
	$(BIN)/python -m tests.spark.fuzz
	$(BIN)/python -m tests.spark.random_run

tpch: install          ## TPC-H at scale 0.01: 22 stream tables, three edit cycles, checked against Spark
	$(BIN)/python -m tests.spark.tpch

tpcds: install         ## TPC-DS on tiny tables: 99 stream tables, three edit cycles, checked against Spark
	$(BIN)/python -m tests.spark.tpcds

chaos: install         ## daemons killed by SIGKILL while a writer commits; every version is compared with its query
	$(BIN)/python -m tests.spark.chaos
	$(BIN)/python -m tests.spark.chaos --two --postgres
	$(BIN)/python -m tests.spark.chaos --two --far --postgres

crash: install         ## real processes killed by SIGKILL at every step of a refresh
	TRICKLE_TEST_ALL_KILLS=1 $(BIN)/python -m pytest tests/spark/test_crash.py -k real

clean:
	rm -rf .venv .trickle .cache .mypy_cache .ruff_cache .pytest_cache
