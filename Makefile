# A thin front for the CMake presets. `make help` lists what there is.
.DEFAULT_GOAL := all
.NOTPARALLEL:

PREFIX ?= /usr/local
DESTDIR ?=
SECONDS ?= 60
JOBS ?= $(shell nproc)
BOOTSTRAP ?= scripts/bootstrap
CTEST = ctest -j$(JOBS) --preset

configure = cmake --preset $(1) -DCOFFER_TESTS=ON >/dev/null
build = $(call configure,$(1)) && cmake --build --preset $(1) -j$(JOBS)

##all            build the library and the command into build/dev
.PHONY: all
all:
	@$(BOOTSTRAP) build
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j$(JOBS)

##demo           install what is missing, build, and take the tour
.PHONY: demo
demo:
	@$(BOOTSTRAP) build
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j$(JOBS) --target coffer_command examples/all
	@PATH="$(CURDIR)/build/dev:$$PATH" scripts/demo

##check          build, and run all tests: what a change must pass
.PHONY: check
check:
	@$(BOOTSTRAP) build test
	@$(call build,dev)
	@$(CTEST) dev

##check-all      clang, sanitizers, fuzz targets, static analysis, style and coverage
.PHONY: check-all
check-all: check-style check-web coverage check-sanitizers check-fuzz tidy

.PHONY: check-style check-sanitizers check-fuzz
check-style:
	@$(BOOTSTRAP) build test analysis
	@echo '== style' && scripts/format --check && scripts/check-arrows && scripts/check-prose && scripts/check-docs

check-sanitizers:
	@$(BOOTSTRAP) build test analysis servers
	@echo '== address and undefined-behavior sanitizers' && $(call build,asan) && $(CTEST) asan
	@echo '== thread sanitizer' && $(call build,tsan) && scripts/without-aslr $(CTEST) tsan

# Every target under the sanitizers of clang, for as long as it takes to see that it starts and runs clean.
check-fuzz:
	@echo '== fuzz targets' && $(MAKE) --no-print-directory fuzz SECONDS=3

##check-kills    kill recordings at 100 random moments, and recover them
.PHONY: check-kills
check-kills:
	@$(call build,dev)
	@COFFER_KILLS=100 COFFER_SEED=$${COFFER_SEED-3} tests/record/check-record kills $(CURDIR)/build/dev $(CURDIR)/build/dev/tests/record

##check-web      reports in a browser (package chromium), and the types of their script
.PHONY: check-web
check-web:
	@$(BOOTSTRAP) build test analysis
	@$(call configure,dev) && cmake --build --preset dev -j$(JOBS) --target coffer_command
	@echo '== web' && scripts/check-web build/dev

##check-portable the core of the library and its tests for i386 and, with the other byte order, s390x
.PHONY: check-portable
check-portable:
	@$(BOOTSTRAP) build test portable
	@JOBS=$(JOBS) scripts/check-portable

##check-python-latest  the wheel in an empty environment, and all Python tests with the newest packages of PyPI
.PHONY: check-python-latest
check-python-latest:
	@$(BOOTSTRAP) build test extra
	@scripts/check-python-latest

##install        build and install the release: PREFIX=/usr/local DESTDIR=
.PHONY: install
install:
	@$(BOOTSTRAP) build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX='$(PREFIX)' >/dev/null
	@cmake --build --preset release -j$(JOBS)
	@DESTDIR='$(DESTDIR)' cmake --install build/release

##bench          run the benchmarks (peers that are not installed get a row that says so)
.PHONY: bench
bench:
	@$(BOOTSTRAP) build
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j$(JOBS) --target all bench/all
	@scripts/bench build/release

##bench-quick    run the benchmarks with less data, in about two minutes
.PHONY: bench-quick
bench-quick:
	@$(BOOTSTRAP) build
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j$(JOBS) --target coffer_command coffer_modules bench/all
	@scripts/bench build/release --quick

##bench-python   run the benchmarks of the Python package; OPTIONS="--cpu-time --docs docs/python.md"
.PHONY: bench-python
bench-python:
	@$(BOOTSTRAP) build
	@cmake --preset release -DCOFFER_PYTHON=ON >/dev/null
	@cmake --build --preset release -j$(JOBS) --target python_core coffer_command coffer_modules bench_quant
	@scripts/bench-python build/release $(OPTIONS)

##bench-peers    install the peers of the benchmarks into build/peers
.PHONY: bench-peers
bench-peers:
	@$(BOOTSTRAP) build test extra
	@scripts/bench-peers build/peers

##fuzz           run every fuzz target for SECONDS=60 with libFuzzer
.PHONY: fuzz
fuzz:
	@$(BOOTSTRAP) build test analysis
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j$(JOBS) --target fuzz/all
	@scripts/fuzz build/fuzz $(SECONDS)

##format         lay out all sources with clang-format
.PHONY: format
format:
	@$(BOOTSTRAP) build test analysis
	@scripts/format

##tidy           clang-tidy with its analyzer over the library and the command
.PHONY: tidy
tidy:
	@$(BOOTSTRAP) build test analysis
	@$(call configure,dev)
	@scripts/tidy build/dev

##coverage       the tests with clang, and their line coverage by folder; fails under the bar
.PHONY: coverage
coverage:
	@$(BOOTSTRAP) build test analysis
	@echo '== clang, with line coverage' && $(call build,coverage)
	@find build/coverage -name '*.gcda' -delete
	@$(CTEST) coverage
	@scripts/coverage build/coverage

##docs           write docs/cli from the help of the command, and docs/api from the public headers
.PHONY: docs
docs: all
	@build/dev/coffer generate docs docs/cli
	@scripts/api-docs

##bless          take what the command prints now as the expected output of tests/cli
.PHONY: bless
bless: all
	@scripts/run-cli-test --bless build/dev tests/cli/*.sh

##clean          remove build/
.PHONY: clean
clean:
	@rm -rf build

##help           this list
.PHONY: help
help:
	@sed -n 's/^##/make /p' Makefile
