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

##check          everything that must hold: two compilers, sanitizers, style, all tests
.PHONY: check
check:
	@$(BOOTSTRAP) build test
	@echo '== gcc' && $(call build,dev)
	@echo '== clang' && $(call build,clang) --target coffer_shared coffer_command examples/all
	@echo '== address and undefined-behavior sanitizers' && $(call build,asan) && $(CTEST) asan
	@echo '== thread sanitizer' && $(call configure,tsan) && \
	    cmake --build --preset tsan -j$(JOBS) && scripts/without-aslr $(CTEST) tsan
	@echo '== all tests' && $(CTEST) dev

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

##bench-peers    install the peers of the benchmarks into build/peers
.PHONY: bench-peers
bench-peers:
	@$(BOOTSTRAP) build test extra
	@scripts/bench-peers build/peers

##fuzz           run every fuzz target for SECONDS=60 with libFuzzer
.PHONY: fuzz
fuzz:
	@$(BOOTSTRAP) build test
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j$(JOBS) --target fuzz/all
	@scripts/fuzz build/fuzz $(SECONDS)

##format         lay out all sources with clang-format
.PHONY: format
format:
	@$(BOOTSTRAP) build test
	@scripts/format

##tidy           clang-tidy over the library and the command, with the analyzer that `check` leaves out
.PHONY: tidy
tidy:
	@$(BOOTSTRAP) build test
	@$(call configure,dev)
	@scripts/tidy build/dev

##coverage       line coverage of the tests, by folder; fails under the bar
.PHONY: coverage
coverage:
	@$(BOOTSTRAP) build test extra
	@$(call build,coverage)
	@find build/coverage -name '*.gcda' -delete
	@$(CTEST) coverage
	@scripts/coverage build/coverage

##docs           write docs/cli from the help of the command
.PHONY: docs
docs: all
	@build/dev/coffer generate docs docs/cli

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
