# From a fresh clone: `make run` to see it, `make test` to trust it. Everything made lands in the
# clone: `make clean` removes it all.

PYTHON ?= python3
# Tests beside each other: one more than there are cores, as many of them wait.
WORKERS ?= $(shell expr $$(nproc) + 1)
# How often `make deaths` kills.
KILLS ?= 300
# How many guests `make swarm` has.
GUESTS ?= 200
# What `make bench` is told: parts (polling waiting approving loading emulating noticing), or --quick.
BENCH ?=

# What `make run` starts.
DEMO = .venv/bin/forewarn demo

CONSTRAINTS = requirements/constraints.txt
# The two variables reach the build backend too, whichever of them this pip knows.
INSTALL = PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) \
	.venv/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check -c $(CONSTRAINTS)
# Not in /tmp, and made anew by each run.
PYTEST = -m pytest --basetemp=.pytest_tmp
# Where every branch is to be tried, and what tries them.
RULES = tests/core tests/wire tests/service

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-vm test-recipes test-az simulate deaths fuzz neighbors swarm mutants check bench deb fix clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Another interpreter: make test PYTHON=python3.12 (after make clean)"

run: .venv/.run ## start a service with a sample fleet, and show what to ask it
	@exec $(DEMO)

test: .venv/.dev .venv/.hands .venv/.libvirt .venv/.vm .venv/.node ## run every test, with the coverage floor
	@.venv/bin/coverage erase
	@# Real machines beside the others: they mostly wait. Among themselves one after the other: two cores
	@# carry two emulated machines, not more. Only what the floor is for is measured: that takes its time.
	@.venv/bin/python $(PYTEST)_vm -m vm tests/vm > .venv/vm.log 2>&1 & vm=$$!; \
	.venv/bin/coverage run $(PYTEST) -n $(WORKERS) --dist worksteal $(RULES); rules=$$?; \
	.venv/bin/python $(PYTEST) -m 'not vm and not recipes' -n $(WORKERS) --dist worksteal tests $(RULES:%=--ignore=%); others=$$?; \
	wait $$vm; vm=$$?; cat .venv/vm.log; \
	[ $$rules = 0 ] && [ $$others = 0 ] && { [ $$vm = 0 ] || [ $$vm = 5 ]; }
	@.venv/bin/coverage combine --quiet
	.venv/bin/coverage report --fail-under=100

test-vm: .venv/.dev .venv/.libvirt .venv/.vm ## real machines under libvirt and QEMU, as root
	.venv/bin/python $(PYTEST) -m vm tests/vm

test-recipes: .venv/.dev .venv/.daemons ## docs/recipes with haproxy, nginx and Patroni, from Debian's packages
	.venv/bin/python $(PYTEST) -m recipes -n $(WORKERS) --dist loadscope tests/recipes

test-az: .venv/.dev .venv/.az ## drive a service with Azure's own command line (a large installation)
	.venv/bin/python tools/az_story.py --az .venv/az/bin/az

simulate: .venv/.dev ## new stories full of faults until Ctrl-C; or SEED=7 (one), SECONDS=600 (for a while)
	@.venv/bin/python -m forewarn.testing.simulation $(SEED) $(if $(SECONDS),--seconds $(SECONDS))

deaths: .venv/.dev ## kill a service under load: make deaths KILLS=300 SEED=...
	.venv/bin/python -m forewarn.testing.deaths --kills $(KILLS) $(if $(SEED),--seed $(SEED))

mutants: .venv/.dev .venv/.libvirt ## break the rules one by one, to see that the tests notice; WRITE=--write for the page
	.venv/bin/python tools/mutants.py $(WRITE)

check: .venv/.dev ## lint, types, architecture and the fast tests: under a minute, edits nothing
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python $(PYTEST) -q -n auto tests/core tests/wire tests/test_tidy.py

COUNT ?= 100000
SEED ?=
fuzz: .venv/.dev ## send a real service COUNT=100000 rude exchanges, made from SEED=...
	.venv/bin/python -m forewarn.testing.sieges --count $(COUNT) $(if $(SEED),--seed $(SEED))

neighbors: .venv/.dev ## measure how much one guest's attack is felt by another
	.venv/bin/python -m forewarn.testing.neighbors $(ARGS)

swarm: .venv/.dev .venv/.hands ## poll as GUESTS=200 guests at the real address for SECONDS=60, as root
	.venv/bin/python -m forewarn.testing.swarm --guests $(GUESTS) $(if $(SECONDS),--seconds $(SECONDS))

bench: .venv/.bench ## measure speed and memory beside nginx and Flask: a table, and bench/latest.json
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get install -y --no-install-recommends nginx \
				|| { apt-get update && apt-get install -y --no-install-recommends nginx; }; \
		else \
			echo "missing: nginx. On Debian and Ubuntu: sudo apt-get install nginx" >&2; \
			exit 1; \
		fi; }
	.venv/bin/python -m bench $(BENCH)

deb: ## build the agent's package for VMs: dist/forewarn-agent_VERSION_all.deb
	@$(PYTHON) tools/deb.py

fix: .venv/.dev ## repair what a machine can repair: the only target that edits files
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

clean: ## remove everything that was made here
	rm -rf .venv .forewarn .mutants .pytest_tmp .pytest_tmp_vm .coverage .coverage.* htmlcov build dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf bench/.work bench/latest.json
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "forewarn needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@# Debian ships venv's better half apart from Python.
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get install -y "$$package" || { apt-get update && apt-get install -y "$$package"; }; \
		else \
			echo "missing: Python's venv module. On Debian and Ubuntu: sudo apt-get install $$package" >&2; \
			exit 1; \
		fi; }
	$(PYTHON) -m venv .venv

.venv/.run: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(INSTALL) --editable .
	@touch $@

.venv/.dev: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(INSTALL) --editable '.[dev]'
	@touch $@ .venv/.run

# What tests take from Debian: curl, jq and ip to play guests; without the others their tests are skipped:
# libfaketime, which sets the clock of one process, nft and sysctl, which a host is prepared with, and
# busybox, whose DHCP client asks for the endpoint.
.venv/.hands: | .venv/bin/python
	@missing=""; skipped=""; PATH="$$PATH:/usr/sbin:/sbin"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v jq >/dev/null || missing="$$missing jq"; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || skipped="$$skipped libfaketime"; \
	command -v nft >/dev/null || skipped="$$skipped nftables"; \
	command -v sysctl >/dev/null || skipped="$$skipped procps"; \
	command -v busybox >/dev/null || skipped="$$skipped busybox"; \
	all="$$missing$$skipped"; \
	if [ -z "$$all" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y -q $$all || { apt-get update -q && apt-get install -y -q $$all; }; \
	else \
		echo "missing:$$all. On Debian and Ubuntu: sudo apt-get install$$all" >&2; \
		[ -z "$$missing" ]; \
	fi
	@touch $@

# The daemons of docs/recipes; without them their tests are skipped. None of them is started by being installed.
.venv/.daemons: .venv/.hands
	@missing=""; PATH="$$PATH:/usr/sbin:/sbin"; \
	command -v haproxy >/dev/null || missing="$$missing haproxy"; \
	command -v nginx >/dev/null || missing="$$missing nginx-light"; \
	command -v patroni >/dev/null || missing="$$missing patroni"; \
	command -v etcd >/dev/null || missing="$$missing etcd-server"; \
	[ -x /usr/lib/postgresql/15/bin/postgres ] || missing="$$missing postgresql-15"; \
	policy=/usr/sbin/policy-rc.d; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		if [ ! -e $$policy ]; then \
			trap 'rm -f /usr/sbin/policy-rc.d' EXIT; \
			printf '#!/bin/sh\nexit 101\n' > $$policy; chmod 755 $$policy; \
		fi; \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get install -y -q --no-install-recommends $$missing \
			|| { apt-get update -q && apt-get install -y -q --no-install-recommends $$missing; }; \
	else \
		echo "recipes are not tried that need:$$missing. On Debian 12: sudo apt-get install$$missing" >&2; \
	fi
	@touch $@

# libvirt-python is compiled here, against libvirt's headers; without them its tests are skipped.
.venv/.libvirt: pyproject.toml $(CONSTRAINTS) .venv/.dev
	@missing="libvirt-dev pkg-config gcc"; \
	if command -v gcc >/dev/null && pkg-config --exists libvirt 2>/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y -q --no-install-recommends $$missing \
			|| { apt-get update -q && apt-get install -y -q --no-install-recommends $$missing; }; \
	else \
		echo "the libvirt fabric is not tried, as there is no: $$missing" >&2; \
	fi
	@if pkg-config --exists libvirt 2>/dev/null; then $(INSTALL) --editable '.[libvirt]'; fi
	@touch $@

# What real machines need; only root can have them, and only where there are taps.
.venv/.vm: .venv/.dev
	@if [ "$$(id -u)" = 0 ] && [ -e /dev/net/tun ] && command -v apt-get >/dev/null \
		&& ! { [ -x /usr/sbin/libvirtd ] && [ -x /usr/bin/qemu-system-x86_64 ] && [ -x /usr/bin/virsh ] \
			&& [ -x /usr/sbin/nft ] && [ -x /usr/sbin/sysctl ] && [ -x /usr/sbin/ip ] \
			&& [ -x /usr/sbin/mke2fs ]; }; then \
		packages="qemu-system-x86 libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients"; \
		packages="$$packages iproute2 nftables procps e2fsprogs"; \
		apt-get install -y -q --no-install-recommends $$packages \
			|| { apt-get update -q && apt-get install -y -q --no-install-recommends $$packages; }; \
	fi
	@if [ "$$(id -u)" = 0 ] && [ -x /usr/sbin/libvirtd ] && command -v apt-get >/dev/null; then \
		.venv/bin/python -m forewarn.testing.agent_guests .venv/guest \
			|| { apt-get update -q && .venv/bin/python -m forewarn.testing.agent_guests .venv/guest; }; \
	fi
	@touch $@

# Azure's JavaScript clients, where there is a node that they run on.
.venv/.node: tests/azure_clients/node/package-lock.json | .venv/bin/python
	@if command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then \
		mkdir -p .venv/node && cp tests/azure_clients/node/*.json .venv/node/ \
			&& npm ci --prefix .venv/node --no-audit --no-fund --loglevel=error; \
	else \
		echo "no node >= 20 here: Azure's JavaScript clients are not tried"; \
	fi
	@touch $@

# Azure's own command line is large: 730 MB and some minutes.
.venv/.az: requirements/az.txt | .venv/bin/python
	$(PYTHON) -m venv .venv/az
	.venv/az/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check -r requirements/az.txt
	@touch $@

.venv/.bench: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(INSTALL) --editable '.[bench]'
	@touch $@ .venv/.run
