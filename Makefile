# Everything a contributor runs; `make help` lists it.
# What is needed is installed into .venv-* and build/ by the scripts; nothing outside the checkout is changed, but that
# root on Debian gets the packages of the tests: CONTRIBUTING.md lists them.

PYTHON ?= python3
# The comparison runs on the Python that most peers have wheels for.
BENCH_PYTHON ?= $(shell $(PYTHON) scripts/interpreters.py --prefer 3.12)
BENCH_OPTIONS ?=
PYTEST_OPTIONS ?=

.DEFAULT_GOAL := help
.PHONY: help demo tools test test-rust test-service test-python test-native test-receivers test-senders native matrix faults-ci faults full bench bench-pool bench-durability bench-native bench-quick bench-inference bench-service lint generated format wheels packages advisories site release sanitize loom fuzz clean check-tools

help: ## List these commands
	@if [ -t 1 ] && [ -z "$$NO_COLOR" ]; then bold=$$(printf '\033[1m'); name=$$(printf '\033[36m'); off=$$(printf '\033[0m'); fi; \
	printf '%slogspool%s: what you can make\n\n' "$$bold" "$$off"; \
	awk -v name="$$name" -v off="$$off" 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %s%-12s%s %s\n", name, $$1, off, $$2 }' $(MAKEFILE_LIST); \
	printf '\nPYTHON=%s chooses the interpreter; LOGSPOOL_PYTHONS="3.12 3.13t" those of the matrix.\n' '$(PYTHON)'

demo: check-tools ## Run a web service without and with logspool, then collect from 51 processes and ask
	@$(PYTHON) demo/run.py

# The Rust tests are built first, so what the other ones build is chosen to fit; see scripts/executables.py.
test: export LOGSPOOL_CARGO_SCOPE = workspace
test: test-rust test-service test-python test-native ## Run the tests of the core, of the service, of the C library and, on one interpreter, of the package

test-rust: check-tools
	@$(PYTHON) scripts/fmt_tools.py
	@LOGSPOOL_POSTGRES_BIN="$$($(PYTHON) scripts/postgres_tools.py)" && export LOGSPOOL_POSTGRES_BIN && \
	$(PYTHON) scripts/rust_tests.py

test-service: check-tools
	@$(PYTHON) scripts/service_tools.py
	@$(PYTHON) scripts/run_pytest.py --label service -- tests/service $(PYTEST_OPTIONS)

test-python: check-tools
	@$(PYTHON) scripts/monitor_tools.py
	@$(PYTHON) scripts/run_pytest.py --label test -- tests/python $(PYTEST_OPTIONS)
	@$(PYTHON) scripts/pure_tests.py

test-native: check-tools
	@$(PYTHON) scripts/native_tools.py
	@$(PYTHON) scripts/run_pytest.py --label native -- tests/native $(PYTEST_OPTIONS)

tools: check-tools ## Get the programs of others that the tests use (each test command also does this for its own)
	@$(PYTHON) scripts/service_tools.py
	@$(PYTHON) scripts/monitor_tools.py
	@$(PYTHON) scripts/native_tools.py
	@$(PYTHON) scripts/fault_tools.py

test-receivers: check-tools ## Test the sinks against real receivers: needs Go; builds them once
	@$(PYTHON) scripts/receiver_tools.py
	@LOGSPOOL_TOOLS=required $(PYTHON) scripts/run_pytest.py --label receivers -- tests/receivers $(PYTEST_OPTIONS)

test-senders: check-tools ## Send from all senders of docs/how-to/senders.md: needs Node.js, Go, Java and Maven, and root on Debian
	@$(PYTHON) scripts/service_tools.py --all
	@LOGSPOOL_SENDERS=all LOGSPOOL_TOOLS=required $(PYTHON) scripts/run_pytest.py --label senders -- tests/service/senders/test_survey.py

native: check-tools ## Fill target/native with headers and libraries for C and C++ (NATIVE="--target x86_64-unknown-linux-musl")
	@$(PYTHON) scripts/native_package.py $(NATIVE)

matrix: check-tools ## Build and test on the other interpreters found (LOGSPOOL_PYTHONS rules the list)
	@$(PYTHON) scripts/matrix.py

faults-ci: check-tools ## Run the fault scenarios (kills, forks, frozen output) in their short form
	@$(PYTHON) scripts/fault_tools.py
	@LOGSPOOL_FAULTS=ci $(PYTHON) scripts/run_pytest.py --label faults-ci -- tests/e2e $(PYTEST_OPTIONS)

faults: export LOGSPOOL_TEST_PROFILE = release
faults: check-tools ## Run the fault scenarios in full: long
	@$(PYTHON) scripts/fault_tools.py
	@LOGSPOOL_FAULTS=full $(PYTHON) scripts/run_pytest.py --label faults -- tests/e2e -m "not quiet" --timeout=3600 $(PYTEST_OPTIONS)
	@LOGSPOOL_FAULTS=full $(PYTHON) scripts/run_pytest.py --label faults-service -- tests/service --timeout=3600 $(PYTEST_OPTIONS)
	@$(PYTHON) scripts/native_tools.py
	@LOGSPOOL_FAULTS=full $(PYTHON) scripts/run_pytest.py --label faults-native -- tests/native $(PYTEST_OPTIONS)
	@LOGSPOOL_FAULTS=full LOGSPOOL_TEST_WORKERS=0 $(PYTHON) scripts/run_pytest.py --label faults-quiet -- tests/e2e -m quiet $(PYTEST_OPTIONS)

full: export LOGSPOOL_TEST_PROFILE = release
full: check-tools ## Run every check in its full size, hours, and keep the counts (FULL="--steps faults,suite")
	@$(PYTHON) scripts/full_sizes.py $(FULL)

bench: check-tools ## Compare with other loggers, and with stock logging as people configure it: results in bench/runs
	@code=0; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/compare.py $(BENCH_OPTIONS) || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/configurations.py || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/thread_handler.py || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/exceptions_beside_loop.py || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/reconfiguration.py || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/rules.py || code=$$?; \
	$(PYTHON) bench/pythons.py || code=$$?; \
	exit $$code

bench-quick: check-tools ## The same with few records, to see that it runs; judges no times
	@code=0; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/compare.py --quick $(BENCH_OPTIONS) || code=$$?; \
	$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/configurations.py --quick || code=$$?; \
	exit $$code

bench-pool: check-tools ## Compare the thread pool with others (BENCH_PYTHONS="3.12 3.13t": one after the other)
	@code=0; for python in $(or $(BENCH_PYTHONS),"$(BENCH_PYTHON)"); do \
		$(PYTHON) bench/prepare.py --python "$$python" -- bench/pool.py $(BENCH_OPTIONS) || code=$$?; \
	done; exit $$code

bench-durability: check-tools ## Measure what the durability modes cost, and recovery beside cp
	@$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/durability.py $(BENCH_OPTIONS)

bench-service: check-tools ## Compare the service with the plainest things that do the same work
	@$(PYTHON) bench/prepare.py --python "$(BENCH_PYTHON)" -- bench/service.py $(BENCH_OPTIONS)

bench-inference: check-tools ## Measure what loggers cost an inference server (BENCH_OPTIONS="--quick", or "--gpu")
	@$(PYTHON) bench/prepare.py --set inference --python "$(BENCH_PYTHON)" -- bench/inference $(BENCH_OPTIONS)

bench-native: check-tools ## Compare the C++, Nim and Rust fronts with other loggers
	@$(PYTHON) scripts/native_tools.py
	@$(PYTHON) bench/native.py

lint: check-tools ## Check form, warnings, stubs, pages, imports, names and words
	@$(PYTHON) scripts/lint.py

generated: check-tools ## Write the pages and the signature that are made from tables of the core
	@"$$($(PYTHON) scripts/environment.py --python $(PYTHON) | tail -n 1)" scripts/generated_pages.py

format: check-tools ## Bring Rust and Python sources into form
	@$(PYTHON) scripts/format.py

wheels: check-tools ## Build a wheel and try it where nothing else is (WHEELS="--all --target all --service" builds all of them)
	@$(PYTHON) scripts/wheels.py $(WHEELS)

site: check-tools ## Build the site of the pages into build/site/public; a warning is an error (SITE="--into FOLDER")
	@$(PYTHON) scripts/build_site.py $(SITE)

release: check-tools ## Make the release VERSION=0.2.0 and publish nothing (RELEASE=--dry-run shows what it would do)
	@$(PYTHON) scripts/release.py "$(VERSION)" $(RELEASE)

packages: check-tools ## Make .deb, .rpm and container image of the service out of its wheels, and try them (root on Debian)
	@$(PYTHON) scripts/packages.py $(PACKAGES)

advisories: check-tools ## Compare Cargo.lock with RustSec's advisories (LOGSPOOL_ADVISORIES: a copy), and check licences
	@$(PYTHON) scripts/advisories.py

sanitize: check-tools ## Run the tests of the core under AddressSanitizer, ThreadSanitizer and Miri, and C++ programs
	@scripts/sanitize.sh address
	@scripts/sanitize.sh thread
	@scripts/sanitize.sh miri
	@scripts/sanitize.sh native

fuzz: check-tools ## Feed the decoders of the service with random bytes (SECONDS=60 for each)
	@PYTHON="$(PYTHON)" scripts/fuzz.sh $(or $(SECONDS),60)

loom: check-tools ## Run the concurrency models, and show that each weakened ordering breaks one
	@$(PYTHON) scripts/loom_models.py

clean: ## Remove all that the other commands made
	rm -rf build target dist .venv-* .pytest_cache .ruff_cache .mypy_cache .hypothesis python/logspool/*.so

check-tools:
	@command -v cargo >/dev/null || { echo "error: cargo is missing: install Rust 1.89 or later (rustup)" >&2; exit 1; }
	@wanted=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml); found=$$(cargo --version | cut -d' ' -f2); \
	printf '%s\n%s\n' "$$wanted" "$$found" | sort -CV || { echo "error: Rust $$found is too old: install Rust $$wanted or later (rustup)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "error: a C compiler is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { echo "error: $(PYTHON) is no Python 3.10 or later: set PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import pip, venv' 2>/dev/null || { echo "error: $(PYTHON) lacks pip or venv: apt-get install python3-pip python3-venv" >&2; exit 1; }
