# Everything that is built or downloaded goes to one folder of the machine, so that a second clone builds nothing again.
export PHALANX_CACHE ?= $(HOME)/.cache/phalanx
export CARGO_TARGET_DIR ?= $(PHALANX_CACHE)/target
export LIBTORCH ?= $(PHALANX_CACHE)/libtorch
export LD_LIBRARY_PATH := $(LIBTORCH)/lib:$(LD_LIBRARY_PATH)
PHALANX := $(CARGO_TARGET_DIR)/release/phalanx
CLIENT := $(PHALANX_CACHE)/client-4.2/bin/python
SPARK := $(PHALANX_CACHE)/spark-4.3/bin/python

.PHONY: run test build serve bench lint

## starts a server and trains, scores and prints with a stock client
run: build
	$(CLIENT) tests/pyspark/main_job.py --server $(PHALANX)

## builds, and runs every test: Rust, then both stock clients against a server
test:
	.ci/setup test
	cargo test --release --workspace
	PHALANX=$(PHALANX) $(CLIENT) -m pytest -q tests/pyspark
	PHALANX=$(PHALANX) $(SPARK) -m pytest -q tests/pyspark

build:
	.ci/setup
	cargo build --release

## serves on localhost:15002
serve: build
	$(PHALANX) serve

## times the server beside a real Spark Connect server, in one run
bench:
	.ci/setup test
	cargo build --release
	$(SPARK) tests/bench/logistic_regression.py --server $(PHALANX)

lint:
	cargo fmt --check
	cargo clippy --release --workspace --all-targets -- -D warnings
