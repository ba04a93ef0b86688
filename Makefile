# The short way to everything; `make help` lists it.  The build itself is Meson's.
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: build help run check lint fuzz bench install clean

build: ## build the library and build/belay (default)
	@tools/setup build
	@tools/build plain

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: build ## build, then a short tour of build/belay
	@tools/tour

check: ## build with every compiler and sanitizer, run all tests; T=pattern selects
	@tools/setup check
	@tools/build plain asan tsan clang
	@tests/run $(if $(T),'$(T)')

lint: ## formatting, static analysis, headers, exported symbols
	@tools/setup check
	@tools/build plain clang
	@tools/lint

fuzz: ## run the fuzz targets with libFuzzer; F=target selects, SECONDS=n for each (60)
	@tools/setup check
	@tools/fuzz '$(F)' '$(or $(SECONDS),60)'

bench: build ## run the benchmarks; B=name runs one
	@tools/bench $(if $(B),'$(B)')

install: build ## install below PREFIX (/usr/local), under DESTDIR when set
	@tools/build --prefix '$(PREFIX)' plain
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild

clean: ## remove every build directory
	rm -rf build build-asan build-tsan build-clang build-fuzz
