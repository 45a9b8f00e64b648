# PYTHON=python3.12  the Python that the environment is made from
# TORCH=cpu|gpu      which torch; left out: the one installed, else gpu where there is an NVIDIA GPU

PYTHON ?= python3
TORCH ?= $(or $(patsubst .venv/made-%,%,$(wildcard .venv/made-*)),$(shell nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu))

PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --no-deps
# uv, where it is there: 119 packages take it 4 s with a warm cache, on cores that others use too.
UV := $(shell command -v uv)
PIP_GETS := $(PIP) --no-compile --retries 2 --quiet
GETS := $(if $(UV),$(UV) pip install --python $(PY) --no-deps --quiet,$(PIP_GETS))
# By pip: torch for CPUs is on an index of its own, and uv stops at the first index that has a package.
GETS_cpu := $(PIP_GETS) -r envs/torch-cpu.txt
GETS_gpu := $(GETS) -r envs/torch-gpu.lock
MADE := .venv/made-$(TORCH)
IMAGE := localhost/cherimoya-veff:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' workflow/veff/__init__.py)-$(TORCH)
# Jobs find the same Python as their Snakemake, and as many short processes start, their modules
# compiled.
RUN := PATH="$$PWD/.venv/bin:$$PATH" PYTHONDONTWRITEBYTECODE= $(PY) -m
PINS := $(lastword $(GETS_$(TORCH))) envs/requirements.lock envs/requirements-dev.lock

.PHONY: help env demo test test-kills test-cluster format lint docs image demo-in-image clean

help:
	@echo 'make demo   score the embedded demo (makes the environment if it is not there)'
	@echo 'make test   run the tests, but those on a Slurm and make test-kills'
	@echo 'make test-kills   run the test that kills a run at ten points, which takes minutes'
	@echo 'make test-cluster   run the tests on a Slurm of their own (as root, with Slurm installed)'
	@echo 'make format check the layout of the Python and of the workflow'
	@echo 'make lint   ask the linters of both'
	@echo 'make docs   build the documentation as a site, in site/'
	@echo 'make image  build an image of the environment, with podman; make demo-in-image runs the demo in it'
	@echo 'make env    only make the environment, in .venv'
	@echo 'make clean  remove the environment'

demo: env
	@$(RUN) snakemake --cores all --configfile config/demo.yaml

test: env .venv/cluster .venv/executors
	$(RUN) pytest -n 2 --dist loadgroup --no-loadscope-reorder -m 'not kills' --ignore tests/cluster

test-kills: env
	$(RUN) pytest -m kills tests/workflow/test_kills.py

test-cluster: env .venv/cluster
	PYTHONPATH=$$PWD/.venv/cluster $(RUN) pytest -n 4 --dist worksteal tests/cluster

docs: env .venv/docs
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$$PWD/.venv/docs $(RUN) mkdocs build --quiet --strict

image:
	podman build --build-arg TORCH=$(TORCH) --tag $(IMAGE) --file envs/Containerfile envs

demo-in-image:
	podman run --rm --volume "$$PWD:$$PWD" --workdir "$$PWD" $(IMAGE) snakemake --cores all --configfile config/demo.yaml

# Beside the environment, not in it: what is for Slurm adds 0.7 s to every start of Snakemake.
.venv/cluster .venv/docs .venv/executors: .venv/%: envs/%.lock $(MADE)
	$(PIP) --quiet --upgrade --target $@ -r $<
	@touch $@

format: env
	$(RUN) ruff format --check
	$(RUN) snakefmt --check workflow

# As the workflow catalogue does: without a configuration.
lint: env
	$(RUN) ruff check
	$(RUN) snakemake --lint

# A venv's scripts hold its path: put them right when the folder was moved.
env: $(MADE)
	@$(PY) envs/relocate.py $(MADE)

$(MADE): $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  f"Python 3.11 or later is needed, and $(PYTHON) is {sys.version.split()[0]}: try make PYTHON=python3.12")'
	@echo 'Making the environment in .venv, with torch for $(TORCH). This takes some minutes.'
	@$(PYTHON) -m venv --clear .venv
	@# Two at once, then all cores: unpacking and compiling are what takes long.
	@$(GETS_$(TORCH)) & torch=$$!; \
	  $(GETS) -r envs/requirements.lock -r envs/requirements-dev.lock; others=$$?; \
	  wait $$torch && exit $$others
	@# The library as it stands in the clone: what shows how far a run is, and list_models.
	@$(PIP) --quiet --no-build-isolation --editable .
	@# Compiling takes longest: not the packages' own tests. (Some files are templates, which fail.)
	@$(PY) -m compileall -q -j 0 -x /tests/ .venv/lib >/dev/null || true
	@$(PY) -c 'import sys; print(sys.prefix)' > $@

clean:
	rm -rf .venv
