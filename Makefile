# One command per chore; `make help` lists them. A fresh machine needs Python 3.11+, cargo and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Cargo profile of everything that is built here: optimised, without link-time optimisation, so that
# the extension, the Rust tests and clippy share what they compile. A release is made otherwise, below.
PROFILE ?= fast
# The extension of daily work has what the tests bring along, so that both are made of the same compiled crates.
AS_TESTED := same-as-tests
# Where a benchmark finds the start scripts of other gateways; without the folder they are left out.
PEERS_DIR ?= ../shared/peers
BENCH_FLAGS ?=
# How long each fuzz test looks, in seconds: beside all other tests, and when that is all that is run (`make test-fuzz`).
QUICK_FUZZ_SECONDS ?= 1
FUZZ_SECONDS ?= 300
# The provider behind a load run, a crate of its own.
UPSTREAM := benches/load/upstream/Cargo.toml

# A release is compiled twice: the first build writes down what a day in small runs (benches/training.py), the second is laid
# out by that. Where the compiler's own llvm-profdata is missing it is compiled once, and said so.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
LLVM_PROFDATA ?= $(shell rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata
LEARNT := target/learnt/profile
# What that day does not reach is compiled for speed all the same.
LAID_OUT := -Cprofile-use=$(CURDIR)/$(LEARNT) -Cllvm-args=-pgso=false
# The target is named, though it is this machine's, so that build scripts and macros are not compiled like it.
release = rm -f $(VENV)/.stamp-core-*; \
	PIP_QUIET=1 RUSTFLAGS="$(if $(wildcard $(LLVM_PROFDATA)),$(LAID_OUT))" \
	$(BIN)/maturin $(1) --profile release --target $(HOST)

CORE_SOURCES := Cargo.toml Cargo.lock $(wildcard rust/*/Cargo.toml) $(shell find rust -name '*.rs')
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Tests that run over either store; the others have files of their own, or nothing that is stored.
ON_POSTGRESQL := $(addprefix tests/contract/,oauth tools test_access_tokens.py test_account.py test_audit.py test_auth.py test_board.py \
	test_gate.py test_keys.py test_link.py test_second_factor.py test_set_up.py test_settings.py test_sign_on_settings.py test_token_limits.py) \
	tests/unit/python/backups tests/unit/python/tasks tests/unit/python/webhooks tests/integration/test_first_owner.py tests/integration/test_races.py
# Tests of a running gateway that are true of several nodes behind a balancer as well; what looks at one worker's own is marked
# `one_node`. The others start gateways for themselves, or look at what is each worker's own all through (docs/how-to/share-limits.md).
ON_CLUSTER := tests/contract $(addprefix tests/integration/test_, \
	accounts.py acp.py agent_skills.py auto_families.py bad_inference_bodies.py board_pages.py board_tools.py bodies.py \
	broken_streams.py chat.py client_gone.py coding_tools.py control_repeats.py combo_rules.py combos.py compression.py credentials.py \
	dialect_faults.py edge.py embeddings.py forms.py framing.py gateway_events.py groups.py guardrail_routes.py \
	guardrails.py held_back_bodies.py idempotency.py ip_filter.py job_webhooks.py key_fields.py limits.py model_fit.py \
	model_lists.py model_names.py nodelay.py oidc.py outbound_proxies.py path_confusion.py policy_matrix.py powers.py \
	price_tiers.py progress.py provider_sign_in.py public_links.py races.py raw_outputs.py realtime.py reasoning_cache.py \
	relayed_faults.py resilience.py response_cache.py session_leases.py silence.py slow_reader.py socket.py socket_faults.py \
	tool_clients.py unit_prices.py unpriced_models.py video_money.py webhooks.py)
EXTRAS := --extra browser --extra postgresql --extra telemetry --extra vectors
LOCK_ONE := $(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes \
	--exclude-newer "7 days" --custom-compile-command "make lock" --system-certs
LOCK := $(LOCK_ONE) --universal

# Three processes share the tests, since they wait as often as they compute. Each runs whole files and keeps its gateways from file
# to file (tests/support/gateway_pool.py); files that use one gateway run in one process (tests/support/spread.py). Tests that
# fail run once more alone: on a full machine a process that waits for its turn looks like one that hangs.
SIDE_BY_SIDE := PYTHONHASHSEED=0 $(BIN)/pytest -n 3 --dist loadfile --durations 30 --durations-min 3
ALONE := $(BIN)/pytest --last-failed --last-failed-no-failures none
# An instance of two nodes has a dozen processes: fewer of them side by side.
OVER_NODES := PYTHONHASHSEED=0 $(BIN)/pytest -n 2 --dist loadfile --durations 10 --durations-min 3
QUICK_FOLDERS := tests/unit tests/contract tests/integration
# What a front does itself is tested over the native one too; `make test-native` runs everything there. Only the files
# that have such tests are collected.
NATIVE_ALWAYS := -m "both_fronts and not slow" $(shell grep -rl --include='*.py' both_fronts tests/integration | sort)

export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Use

.PHONY: run
run: $(VENV)/.stamp-run $(VENV)/.stamp-core-$(PROFILE) ## Build everything into .venv and start fairlead with the stand-in provider.
	$(BIN)/fairlead serve --demo

.PHONY: build
build: $(LEARNT) ## Make the wheel and the source archive in dist/ (compiled twice: some ten minutes).
	$(call release,build --sdist --out dist)

##@ Work

.PHONY: develop
develop: $(VENV)/.stamp-dev $(VENV)/.stamp-core-$(PROFILE) ## Build the extension in place and install every tool into .venv.

.PHONY: test
test: $(VENV)/.stamp-test $(VENV)/.stamp-node $(VENV)/.stamp-core-$(PROFILE) ## Run every test but the slow ones, Rust and Python.
	cargo test --workspace --lib --tests --features fairlead-py/$(AS_TESTED) --profile $(PROFILE) --locked
	FAIRLEAD_FUZZ_SECONDS=$(QUICK_FUZZ_SECONDS) $(BIN)/pytest -n 4 --dist load tests/fuzz
	$(SIDE_BY_SIDE) $(QUICK_FOLDERS) || $(ALONE) $(QUICK_FOLDERS)
	$(SIDE_BY_SIDE) --front native $(NATIVE_ALWAYS) || $(ALONE) --front native $(NATIVE_ALWAYS)

.PHONY: test-native
test-native: $(VENV)/.stamp-test $(VENV)/.stamp-node $(VENV)/.stamp-core-$(PROFILE) ## Run the contract and integration tests over the native front.
	$(SIDE_BY_SIDE) --front native tests/contract tests/integration || $(ALONE) --front native tests/contract tests/integration

.PHONY: test-cluster
test-cluster: $(VENV)/.stamp-test $(VENV)/.stamp-node $(VENV)/.stamp-core-$(PROFILE) ## Run the tests of management, keys, identity and OAuth over PostgreSQL, those of callers over two nodes of two workers behind HAProxy, and those of several nodes and their faults.
	$(SIDE_BY_SIDE) --store postgresql $(ON_POSTGRESQL) || $(ALONE) --store postgresql $(ON_POSTGRESQL)
	$(OVER_NODES) --store cluster $(ON_CLUSTER) || $(ALONE) --store cluster $(ON_CLUSTER)
	$(BIN)/pytest -m 'slow or not slow' tests/integration/test_postgresql.py tests/integration/test_node_jobs.py tests/integration/test_cluster.py tests/integration/test_lost_messages.py tests/integration/test_balanced_nodes.py tests/integration/test_balanced_instance.py tests/integration/test_roles.py tests/integration/test_two_controls.py
	$(BIN)/pytest -m 'slow or not slow' tests/integration/test_cluster_faults.py tests/integration/test_network_faults.py

.PHONY: test-slow
test-slow: $(VENV)/.stamp-test $(VENV)/.stamp-node $(VENV)/.stamp-coding-tools $(VENV)/.stamp-clients $(VENV)/.stamp-core-$(PROFILE) ## Run the slow tests alone: wheel and archive, crash runs, large streams.
	$(BIN)/pytest -m slow

.PHONY: newest
newest: $(VENV)/.stamp-test $(VENV)/.stamp-node $(VENV)/.stamp-core-$(PROFILE) ## Run the SDKs' tests with the newest published SDKs instead of the pinned ones.
	$(BIN)/python tests/support/newest.py

.PHONY: pictures
pictures: $(VENV)/.stamp-test $(VENV)/.stamp-core-$(PROFILE) ## Take the pictures of the documentation anew, of demo instances; needs Chromium.
	FAIRLEAD_DOCS_IMAGES=docs/images $(BIN)/pytest -q -m 'slow or not slow' -k pictures_for_the_documentation tests/integration

.PHONY: test-fuzz
test-fuzz: $(VENV)/.stamp-test $(VENV)/.stamp-core-$(PROFILE) ## Look for inputs that break the readers, for FUZZ_SECONDS each (1 in `make test`).
	FAIRLEAD_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/pytest -n 4 --dist load tests/fuzz

.PHONY: test-all
test-all: test test-native test-fuzz test-slow ## Run every test, over both fronts.

.PHONY: check
check: check-python check-rust ## Hold the code to its style: linters, types, arrows between rooms, fresh documents.

.PHONY: advisories
advisories: ## Check the Rust dependencies against the newest advisories; needs a network and cargo-deny (cargo install cargo-deny --locked).
	cargo deny check

.PHONY: check-style
check-style: $(VENV)/.stamp-dev $(VENV)/.stamp-core-$(PROFILE)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fairlead._core

.PHONY: check-python
check-python: check-style
	$(BIN)/pytest -q -p no:cacheprovider tests/unit/python/test_arrows.py tests/unit/python/test_documents.py tests/unit/python/test_locks.py \
		tests/contract/test_description.py

.PHONY: check-rust
check-rust: | $(BIN)/python
	cargo fmt --all --check
	cargo fmt --manifest-path $(UPSTREAM) --check
	cargo clippy --workspace --all-targets --profile $(PROFILE) --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" \
		cargo doc --workspace --no-deps --document-private-items --profile $(PROFILE) --locked --quiet
	cargo clippy --manifest-path $(UPSTREAM) --all-targets --release --locked --target-dir target/upstream -- -D warnings

.PHONY: format
format: $(VENV)/.stamp-dev ## Lay out the code as `make check` wants it.
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	cargo fmt --all
	cargo fmt --manifest-path $(UPSTREAM)

.PHONY: bench
bench: $(VENV)/.stamp-test $(LEARNT) ## Measure: the Rust core alone, then whole gateways side by side (needs nginx and wrk).
	$(call release,develop --quiet)
	$(BIN)/pytest benches/micro --benchmark-enable --benchmark-only --benchmark-columns=min,median,iqr,rounds
	PEERS_DIR=$(PEERS_DIR) $(BIN)/python benches/load/run.py $(BENCH_FLAGS)
	$(BIN)/python benches/load/issuer.py
	$(BIN)/python benches/load/oauth.py
	$(BIN)/python benches/load/webhooks.py --keep
	$(BIN)/python benches/extract.py
	$(BIN)/python benches/load/crawl.py
	$(BIN)/python benches/translate.py
	$(BIN)/python benches/idle.py

.PHONY: reference
reference: $(VENV)/.stamp-run $(VENV)/.stamp-core-$(PROFILE) ## Write the reference pages that come from the code: routes, settings, tools and commands.
	$(BIN)/python -m fairlead.control.api_reference docs/reference/api.md
	$(BIN)/python -m fairlead.control.settings_reference docs/reference/settings.md
	$(BIN)/python -m fairlead.gateway.providers.reference docs/reference/providers.md
	$(BIN)/python -m fairlead.control.tools_reference docs/reference/tools.md
	$(BIN)/python -m fairlead.cli.reference docs/reference/command-line.md
	$(BIN)/python -m fairlead.coding_tools.reference docs/reference/tools-for-coding.md
	$(BIN)/python -m fairlead.control.scopes_reference docs/reference/scopes.md
	$(BIN)/python -m tests.support.field_readers docs/reference/fields.md
	$(BIN)/python -m fairlead.tasks.envelope docs/reference/agent-envelope.schema.json
	$(BIN)/python -m fairlead.scrape.routers docs/reference/scraping-openapi.json

.PHONY: lock
lock: | $(BIN)/uv ## Pin every Python dependency by hash, nothing younger than a week.
	$(LOCK) pyproject.toml --extra standin --group build --output-file requirements/run.txt
	$(LOCK) pyproject.toml --extra standin $(EXTRAS) --group build --group test \
		--constraint requirements/run.txt --output-file requirements/test.txt
	$(LOCK) pyproject.toml --extra standin $(EXTRAS) --group build --group test --group check \
		--constraint requirements/test.txt --output-file requirements/dev.txt
	$(LOCK_ONE) --group tools --output-file requirements/tools.txt
	$(LOCK_ONE) --group clients --output-file requirements/clients.txt
	$(LOCK_ONE) --group installer --constraint requirements/dev.txt --output-file requirements/pip.txt

.PHONY: clean
clean: ## Remove what was built; leave .venv and results alone.
	rm -rf target dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -f $(VENV)/.stamp-core-* python/fairlead/*.so
	find python tests benches -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## List these commands.
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- how the above comes about ----

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fairlead needs Python 3.11 or newer; name one with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: | $(BIN)/python
	$(PIP) install uv

# The pip of a fresh environment may be years old, and pip 23 refuses a locked list as soon as a newer version of one of its
# packages is published: google-auth[requests] is to it another package than google-auth, and not pinned.
$(VENV)/.stamp-pip: requirements/pip.txt | $(BIN)/python
	$(PIP) install --require-hashes -r $<
	touch $@

# Each list holds the one before it, with the same versions.
$(VENV)/.stamp-run $(VENV)/.stamp-test $(VENV)/.stamp-dev: $(VENV)/.stamp-%: requirements/%.txt | $(VENV)/.stamp-pip
	$(PIP) install --require-hashes -r $<
	touch $@

# npm's clients are judges in some tests, and coding tools in others, which skip and say so where there is no npm.
$(VENV)/.stamp-node: tests/support/node/package-lock.json tests/support/node/.npmrc | $(BIN)/python
	if command -v npm >/dev/null; then cd tests/support/node && npm ci --silent; fi
	touch $@

# Frameworks pin older SDKs than the tests use, hence an environment of their own.
$(VENV)/.stamp-clients: requirements/clients.txt requirements/pip.txt | $(BIN)/python
	$(PYTHON) -m venv $(VENV)/clients
	for list in pip clients; do \
		$(VENV)/clients/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/$$list.txt || exit 1; \
	done
	touch $@

# Not `npm ci`, which wants every platform's optional parts in the lock; what is in it is held to its hash all the same.
$(VENV)/.stamp-coding-tools: $(wildcard tests/support/node_tools/*/package-lock.json) requirements/tools.txt | $(VENV)/.stamp-node
	$(PYTHON) -m venv $(VENV)/tools
	for list in pip tools; do \
		$(VENV)/tools/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/$$list.txt || exit 1; \
	done
	if command -v npm >/dev/null; then \
		for folder in tests/support/node_tools/light tests/support/node_tools/heavy; do \
			(cd $$folder && npm install --no-save --silent) || exit 1; done; \
		cd tests/support/node_tools/heavy && npm rebuild --silent --ignore-scripts=false @anthropic-ai/claude-code opencode-ai; fi
	touch $@

$(LEARNT): $(CORE_SOURCES) pyproject.toml requirements/run.txt benches/training.py benches/load/ours.py | $(VENV)/.stamp-test
	rm -rf $(@D) && mkdir -p $(@D)
ifneq ($(wildcard $(LLVM_PROFDATA)),)
	rm -f $(VENV)/.stamp-core-*
	PIP_QUIET=1 RUSTFLAGS=-Cprofile-generate=$(CURDIR)/$(@D) \
		$(BIN)/maturin develop --quiet --profile release --target $(HOST) --target-dir target/learning
	$(BIN)/python benches/training.py
	$(LLVM_PROFDATA) merge --output $@ $(@D)/*.profraw
else
	@echo "no llvm-profdata beside rustc (rustup component add llvm-tools): the release will be about a fifth slower"
	touch $@
endif

$(VENV)/.stamp-core-$(PROFILE): $(CORE_SOURCES) pyproject.toml requirements/run.txt | $(VENV)/.stamp-run
	PIP_QUIET=1 $(BIN)/maturin develop --quiet --features $(AS_TESTED) --profile $(PROFILE)
	rm -f $(VENV)/.stamp-core-* && touch $@
