# The work is in scripts/ and xtask/; these are its names.
.PHONY: help demo demo-robot test test-all test-machines soak bench bench-peers gpu-check fmt lint install header man deb wheel release book

# Where scripts/setup puts cargo.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

help:
	@echo "make demo      see a publisher killed and everybody else carry on"
	@echo "make demo-robot  a robot: its services killed, then a part of its core; a page of plots"
	@echo "make test      tests of every language, models and sweeps, one line each (sets the machine up first)"
	@echo "make test-all  the same at full length, also the bridge, view, packages, upgrades, pages in a browser"
	@echo "make test-machines  older and newer kernels, aarch64, pages of 16 KiB, all emulated; ARGS='amd64-5.10'"
	@echo "make soak      half an hour of random kills, stops and restarts, then half an hour of histories; ARGS='--for 8h --seed 7'"
	@echo "make bench     latency and throughput against the machine's own limits; ARGS=topic: one table in full"
	@echo "make bench-peers  outlive against other libraries; installs or names what those need"
	@echo "make gpu-check the tests that need a GPU, and their bench table; says so if it finds no GPU"
	@echo "make install   the C and C++ interface into PREFIX (/usr/local)"
	@echo "make deb       Debian packages into target/deb; BRIDGE=1 adds outlive-bridge, VIEW=1 outlive-view"
	@echo "make wheel     the Python package as a wheel, into target/wheels"
	@echo "make release   all packages for x86_64 and aarch64 with checksums, into target/dist; needs a clean tree"
	@echo "make man       manual pages and completions into target/share"
	@echo "make book      docs as a site with search into target/book; installs mdbook into target/tools"
	@echo "make header    write outlive.h from crates/outlive-c"
	@echo "make fmt       format the code"
	@echo "make lint      clippy and tidy alone"

demo:
	@scripts/setup
	cargo run --release -p outlive-cli -- demo
	@echo "'make demo-robot' shows a whole robot: services that die, and a core that stops safely"

demo-robot:
	@scripts/setup
	cargo run --quiet --release -p outlive-robot -- $(ARGS)
	cargo run --quiet --release -p outlive-bench -- pipeline --quick --html target/robot.html
	@echo "the core's loop over each mechanism: target/robot.html"

test:
	@scripts/test

test-all:
	@scripts/test --all

test-machines:
	@scripts/setup
	@verify/machines/run $(ARGS)

soak:
	@scripts/setup
	cargo run --quiet --profile sweep -p testkit -- chaos --for 30m $(ARGS)
	cargo run --quiet --profile sweep -p testkit -- histories --for 30m $(ARGS)

# Every table, or those that ARGS names.
BENCH = OUTLIVE_COMMIT=$$(git describe --always --dirty 2>/dev/null) cargo run --quiet --release -p outlive-bench --
bench:
	@scripts/setup
ifeq ($(ARGS),)
	for table in topic queue service locks liveness pipeline; do $(BENCH) $$table --quick || exit; done
else
	$(BENCH) $(ARGS)
endif

bench-peers:
	@bench/rivals/run $(ARGS)
	@scripts/bench-cpp

gpu-check:
	@scripts/gpu-check $(ARGS)

fmt:
	cargo fmt --all

lint:
	cargo clippy --workspace --all-targets -- -D warnings
	cargo run --quiet -p xtask -- tidy

# make install PREFIX=/usr/local: the C and C++ interface.
install:
	@scripts/install $(or $(PREFIX),/usr/local)

header:
	OUTLIVE_WRITE_HEADER=1 cargo test --quiet -p outlive-c --test header

release:
	@scripts/setup
	@scripts/release

man:
	@scripts/setup
	@scripts/share target/share
	@echo "manual pages and completions: target/share"

deb:
	@scripts/setup
	@scripts/deb

wheel:
	@scripts/setup --wheel
	@scripts/wheel

book:
	@scripts/setup
	@scripts/book
