# Building needs Go and nothing else. `make race` also needs a C compiler, for the race detector.

# These may be set on the command line, as in: make crash CYCLES=100
CYCLES    ?= 10
# A number of inputs, not a time: when a time is over, go test can fail with "context deadline exceeded".
FUZZTIME  ?= 30000x
DURATION  ?= 1h
SWEEP     ?= 400
HISTORIES ?= 2000
BENCH     ?=
CELL      ?= ./holdfast-cell
PORT      ?= 17380
MINUTES   ?= 480
SEED      ?=

BIN := bin/holdfast

# All but the race detector does without C: what is compiled serves one target after the other.
export CGO_ENABLED := 0

# The binary records its commit, which "holdfast version" prints, unless git does not answer here.
VCS := $(shell git status >/dev/null 2>&1 && echo true || echo false)

.PHONY: help run build test gate night check fmt vet staticcheck race system fuzz crash sweep planted linear redis-suite celery-suite holds soak attack doors cluster cluster-faults cluster-bench words bench offline dist dist-check deb-test screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-12s %s\n", $$1, $$2 }'

run: build ## build, and serve ./holdfast-data on the default addresses
	@exec $(BIN) serve

build: ## build bin/holdfast, one static binary
	go build -trimpath -buildvcs=$(VCS) -ldflags '-s -w' -o $(BIN) ./cmd/holdfast

# Many tests wait for the disk or for each other: three packages at a time keep two cores busy. On a
# slow machine one of them may take more than Go's ten minutes. "make vet" looks at all that go test
# would, once: each way to compile would have all that is imported looked at anew.
SUITE := go run -trimpath ./fuzz/suite -vet=off -ldflags=-w -timeout 20m -p $(shell expr 1 + $$(nproc 2>/dev/null || echo 3))

# All tests of these rooms start processes or wait for real time, so they are left to "make system".
# Elsewhere the names of such tests begin with TestSystem.
SYSTEM := ./cmd/cluster/... ./cmd/daemon ./fuzz/cluster ./fuzz/crash ./fuzz/doors ./fuzz/redis ./fuzz/redissuite ./fuzz/soak ./fuzz/wire ./netproto/admin/page/browser ./netproto/client ./storage/cell

# These have goroutines of their own, and the first take longest. The storage's tests run its journal
# and its tables, too. -short leaves out tests in which one goroutine works through many bytes or inputs.
RACED := ./cmd/cluster ./storage ./storage/cell ./cmd/cluster/peer ./cmd/config ./cmd/daemon/... ./cmd/terminal ./netproto ./netproto/access ./netproto/admin ./netproto/admin/page ./netproto/client ./recovery/load ./recovery/pipeline

# The first ring and the race detector need no disk of this machine, so their folders are in memory
# where 4 GiB of it are free: tests of the store take two thirds of the processor time there, and
# half the time. What go builds stays on the disk.
ROOMY := $(shell free=$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1); test "$${free:-0}" -gt 4194304 && echo /dev/shm)
test race: export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test race: export TMPDIR := $(or $(ROOMY),$(TMPDIR),/tmp)

# From a fresh clone most of what is done is compiling, and a sixth of that is collecting garbage, as
# of what tests do; of staticcheck's time it is half. So collections are rare in all three.
# Staticcheck takes 800 MB in place of 330.
test vet staticcheck race: export GOGC := $(or $(GOGC),400)

# What tests draw is the same in each run, but in "make night": then a change fails at once or never.
export RAPID_SEED ?= 1

# These take longest. They begin first, so that none runs alone in the end.
SLOWEST := ./fuzz/planted ./storage ./broker ./fuzz/sim

test: ## run the first ring: all tests but those of "make system", and 20 new seeds of each simulation
	@$(SUITE) -skip '^TestSystem' $(SLOWEST) $(filter-out $(shell go list $(SYSTEM)),$(shell go list ./...))
	@$(SUITE) -run '^TestPlantedBugsAreBuilt$$' ./fuzz/cluster
	@from=$$(od -An -N4 -tu4 /dev/urandom); echo "20 seeds that nobody has played: -sim.from" $$from; \
	go test -vet=off -ldflags=-w -run '^TestSimulation$$' ./storage ./fuzz/sim -args -sim.file /dev/null -sim.seeds 20 -sim.from $$from

gate: ## run the second ring: test, check, race and system, as .ci/run does
	@for target in test check race system; do \
		begun=$$(date +%s); echo "== make $$target"; $(MAKE) --no-print-directory $$target || exit 1; \
		echo "== make $$target: $$(($$(date +%s) - begun)) s"; \
	done

night: ## run the third ring: new seeds, kills, faults, planted bugs, fuzzers and suites, for MINUTES (480), from SEED
	@fuzz/night.sh $(MINUTES) $(SEED)

check: fmt vet staticcheck ## run fmt, vet and staticcheck

fmt: ## fail if a Go file is not formatted
	@files=$$(gofmt -l .); test -z "$$files" || { printf 'not formatted, run gofmt -w on:\n%s\n' "$$files"; exit 1; }

vet: ## run go vet
	go vet ./...

staticcheck: ## run staticcheck
	go tool staticcheck ./...

# Other tests start this program, too, and each process would stay for a second to report what it finds.
race: export GORACE = atexit_sleep_ms=10
race: export CGO_ENABLED = 1
race: ## run the tests of rooms with goroutines with the race detector, netproto with both drivers and TLS
	@$(SUITE) -race -short -skip '^TestSystem' $(RACED)
	@HOLDFAST_GOROUTINES=1 $(SUITE) -race -short ./netproto & HOLDFAST_ENCRYPTED=1 $(SUITE) -race -short ./netproto; other=$$?; wait $$! && exit $$other

system: ## run the tests with processes, disks and clocks of this machine
	@$(SUITE) $(filter-out $(shell go list $(RACED)),$(shell go list $(SYSTEM)))
	@$(SUITE) -run '^TestSystem' $$(grep -rl '^func TestSystem' --include=*_test.go . | xargs -n1 dirname | sort -u)
	@HOLDFAST_ENCRYPTED=1 HOLDFAST_GOROUTINES=1 $(SUITE) ./netproto

# Coverage leads to new inputs. For it all that is imported is compiled anew, which takes minutes:
# FUZZFLAGS='-args -test.fuzzcachedir=DIR' goes without.
fuzz: ## run every fuzz target on FUZZTIME (30000x) inputs
	@targets=$$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort); \
	test -n "$$targets" || { echo 'no fuzz target was found'; exit 1; }; \
	echo "$$targets" | while IFS=: read -r file func; do \
		target=$${func#func }; \
		echo "== $$(dirname $$file) $$target"; \
		go test -vet=off $$(dirname $$file) -run '^$$' $(FUZZFLAGS) -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x || exit 1; \
	done

crash: ## kill -9 a loaded server CYCLES (10) times and check what it kept
	go test ./fuzz/crash -run 'TestCrash$$' -cycles $(CYCLES) -timeout 60m -v

# With -every each call fails, each time, and each kill is tried: some hours.
sweep: ## make SWEEP (400) system calls of stores and servers fail, harm files, and fill disks; SWEEP='400 -every': all calls
	go test ./cmd/holdfast ./netproto/client ./recovery/load -run 'LongestPayload|PayloadsOfEverySize|KilledLoad|LongRecordsAmong' -sweep $(SWEEP) -timeout 0 -v
	go test ./storage ./storage/journal ./storage/tables -run 'FailingCall|KillAtAnyCall|KillBeforeAnyCall|KilledAtAnyCall|RefusesInPart|DamageOfAnyFile|ADrainedDisk|ComeAndGo' -sweep $(SWEEP) -timeout 0 -v
	go test ./fuzz/crash -run 'FailingCall|ThinDisk|DiskFull|PowerCut|RefusesInPart|KilledCompaction' -sweep $(SWEEP) -timeout 0 -v
	HOLDFAST_GOROUTINES=1 go test ./fuzz/crash -run 'FailingCall|ThinDisk|DiskFull|PowerCut|RefusesInPart' -sweep $(SWEEP) -timeout 0 -v

planted: ## have each planted bug found: by a test, by the simulation or by a cell; and some by the harness that kills servers
	go test ./fuzz/planted ./fuzz/sim -run '^(TestPlantedBugsAreFound|TestMutantsAreFound)$$' -v
	go test ./fuzz/planted -run '^TestBugsOfTheServerAreFound$$' -timeout 30m -v -args -planted.server
	go test ./fuzz/crash -run HarnessCatchesPlantedBugs -v
	go test ./fuzz/cluster -run '^TestPlantedBugsAreFound' -planted -timeout 0 -v

redis-suite: ## run Redis's own tests, which are fetched, against the Redis protocol
	go test ./fuzz/redissuite -run 'TestRedisSuite$$' -suite -timeout 30m -v

celery-suite: ## run Celery's own tests of canvas, tasks and remote control, which are fetched, on holdfast://
	go test ./fuzz/doors -run 'TestCelerySuite$$' -suite -timeout 60m -v

linear: ## check that one order explains each of HISTORIES (2000) histories of concurrent Redis clients, and of workers
	go test ./fuzz/redis -run 'SeeOneOrder$$' -histories $(HISTORIES) -timeout 60m -v

holds: ## make each command at its limit, and fail if a turn of the loop takes too much of its processor in each of five runs
	go test ./fuzz/soak -run NoRequestHolds -whole -timeout 30m -v

soak: ## load a server for DURATION (1h) and check that its folder, memory and open files stay bounded
	go test ./fuzz/soak -run 'TestSoak$$' -duration $(DURATION) -timeout 0 -v

attack: ## attack a server with clients that read nothing, never end a request, come and go
	go test ./fuzz/soak -run 'TestAttacks$$' -whole -timeout 30m -v

doors: ## run what users install, Celery and the packages among it, and what they copy, against servers that are killed
	go test ./fuzz/doors -whole -timeout 30m -v

# Each node takes two ports of its own, one for Redis clients, and one for its operator.
cluster: build ## run three nodes of a cell on loopback, and show their logs; CELL names their folder, PORT the first of twelve ports
	@test -d $(CELL)/a/cell || $(BIN) cluster found --node a $(CELL)/a
	@nodes=a=127.0.0.1:$(PORT),b=127.0.0.1:$$(($(PORT) + 4)),c=127.0.0.1:$$(($(PORT) + 8)); own=$(PORT); \
	for node in a b c; do \
		$(BIN) serve --data $(CELL)/$$node --node $$node --nodes $$nodes --redis 127.0.0.1:$$((own + 2)) --admin 127.0.0.1:$$((own + 3)) \
			--pinpriq off --barbershop off 2>&1 | sed -u "s/^/$$node  /" & \
		own=$$((own + 4)); \
	done; \
	trap : INT TERM; wait; wait

cluster-faults: ## make each fault of a cell of three nodes CYCLES (10) times, under a load, and compose them for five minutes
	go test ./fuzz/cluster -cycles $(CYCLES) -composed 5m -timeout 0 -v

words: ## make the tables of COMMANDS.md from the words in netproto/words
	go test ./netproto/words -update

# Debian's PostgreSQL is not on the path, and its scripts there for RabbitMQ know the system's own server alone.
bench cluster-bench: export PATH := /usr/lib/rabbitmq/bin:$(CURDIR)/bin:$(PATH)$(addprefix :,$(lastword $(wildcard /usr/lib/postgresql/*/bin)))
bench: build ## compare with Redis, beanstalkd and PostgreSQL, where installed; BENCH=--cost for processor time only, --quick for a short run
	go run ./cmd/workshop --holdfast $(BIN) $(BENCH)

cluster-bench: build ## compare a cell of three nodes with RabbitMQ and NATS, where they can be had; BENCH='--rounds 3' for fewer rounds
	GOBIN=$(CURDIR)/bin go install github.com/nats-io/nats-server/v2@v2.15.3 || echo 'NATS is left out'
	go run ./cmd/workshop --holdfast $(BIN) --cases 'cell-*' $(BENCH)

offline: ## measure the speed and memory of dump, load, verify and compact
	go test ./recovery/... -run '^$$' -bench '^Benchmark(Dump|ReadDump|Load|Folder|Compact)$$' -benchtime 3x -timeout 30m
	go test ./cmd/holdfast -run '^$$' -bench '^BenchmarkMemory$$' -benchtime 1x -timeout 30m

dist: ## make binaries, packages for Debian, Python and Node, an image and their checksums in dist
	@cmd/holdfast/packaging/dist.sh

dist-check: ## make dist of the last commit twice, in two folders, and compare
	@cmd/holdfast/packaging/dist-check.sh

deb-test: dist ## install, start, upgrade, remove and purge the Debian package in an overlay of this machine (root)
	@cmd/holdfast/packaging/deb-test.sh dist/holdfast_*_$$(dpkg --print-architecture).deb

screenshots: ## draw the page with live load into bin/screenshots (needs chromium)
	go test ./netproto/admin/page/browser -run 'TestScreenshots$$' -screenshots $(CURDIR)/bin/screenshots -timeout 10m

clean: ## remove bin and dist; data folders stay
	rm -rf bin dist
