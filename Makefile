# Needs Go and nothing else; `make check` also needs a C compiler, for the race detector.

CYCLES   ?= 10
# A count, not a time: at the end of a time go test can fail with "context deadline exceeded" although nothing was found.
FUZZTIME ?= 30000x
DURATION ?= 1h
BENCH    ?=

BIN := bin/holdfast

.PHONY: help run build test check fmt vet staticcheck race fuzz crash soak bench offline clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-12s %s\n", $$1, $$2 }'

run: build ## build and serve ./holdfast-data on the default addresses
	@exec $(BIN) serve

build: ## build bin/holdfast, one static binary
	CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/holdfast

test: ## run all tests
	CGO_ENABLED=0 go test ./...

check: fmt vet staticcheck race ## the whole gate: format, vet, staticcheck, all tests (arrows too) with the race detector

fmt:
	@files=$$(gofmt -l .); test -z "$$files" || { printf 'not formatted, run gofmt -w on:\n%s\n' "$$files"; exit 1; }

vet:
	go vet ./...

staticcheck:
	go tool staticcheck ./...

race:
	CGO_ENABLED=1 go test -race -shuffle=on ./...

fuzz: ## run every fuzz target in turn, FUZZTIME (30000x) inputs each
	@targets=$$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort); \
	test -n "$$targets" || { echo 'no fuzz target was found'; exit 1; }; \
	echo "$$targets" | while IFS=: read -r file func; do \
		target=$${func#func }; \
		echo "== $$(dirname $$file) $$target"; \
		go test $$(dirname $$file) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x || exit 1; \
	done

crash: ## kill -9 a loaded server CYCLES (10) times and judge what it kept
	go test ./fuzz/crash -count=1 -run 'TestCrash$$' -cycles $(CYCLES) -timeout 60m -v

soak: ## load a server for DURATION (1h): its folder, memory and descriptors must stay bounded
	go test ./fuzz/soak -count=1 -run 'TestSoak$$' -duration $(DURATION) -timeout 0 -v

bench: build ## compare with Redis and beanstalkd where they are installed; BENCH=--quick for a short run
	go run ./cmd/peerbench --holdfast $(BIN) $(BENCH)

offline: ## measure dump, verify and load of 1 M packets of 128 bytes, and the memory that 2 M take, without a server
	go test ./recovery -run '^$$' -bench '^Benchmark(Dump|ReadDump|Verify|Load)$$' -benchtime 3x -timeout 30m
	go test ./cmd/holdfast -run '^$$' -bench '^BenchmarkMemory$$' -benchtime 1x -timeout 30m

clean: ## remove what was built; data folders stay
	rm -rf bin
