# Building needs Go and nothing else. `make check` also needs a C compiler, for the race detector.

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

BIN := bin/holdfast

# All but the race detector does without C: what is compiled serves one target after the other.
export CGO_ENABLED := 0

# The binary records its commit, which "holdfast version" prints, unless git does not answer here.
VCS := $(shell git status >/dev/null 2>&1 && echo true || echo false)

.PHONY: help run build test check fmt vet staticcheck race fuzz crash sweep planted linear redis-suite celery-suite holds soak attack doors cluster cluster-faults cluster-bench words bench offline dist dist-check deb-test screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-12s %s\n", $$1, $$2 }'

run: build ## build, and serve ./holdfast-data on the default addresses
	@exec $(BIN) serve

build: ## build bin/holdfast, one static binary
	go build -trimpath -buildvcs=$(VCS) -ldflags '-s -w' -o $(BIN) ./cmd/holdfast

# Many tests wait for the disk or for each other: three packages at a time keep two cores busy. On a
# slow machine one of them may take more than Go's ten minutes. "make vet" looks at all that go test
# would, once: each way to compile would have all that is imported looked at anew.
PACKAGES := -vet=off -ldflags=-w -timeout 20m -p $(shell expr 1 + $$(nproc 2>/dev/null || echo 3))

# These take longest. They begin first, so that none runs alone in the end.
SLOWEST := ./fuzz/crash ./fuzz/planted ./storage ./cmd/holdfast ./netproto/resp

# A quarter of the tests, by how their names end, and any quarter in each run. PART=. is all.
PART = $(shell shuf -n 1 -e '[sg]$$' '[er]$$' '[dyk]$$' '[^sgerdyk]$$')

# These also run with goroutines that read and write the connections, in place of the loop: netproto in race.
DRIVEN := ./netproto/resp ./netproto/pinpriq ./netproto/barbershop

test: ## run all tests
	go test $(PACKAGES) $(SLOWEST) ./...
	HOLDFAST_GOROUTINES=1 go test $(PACKAGES) -count=1 -run '$(PART)' $(DRIVEN)
	HOLDFAST_ENCRYPTED=1 HOLDFAST_GOROUTINES=1 go test $(PACKAGES) -count=1 ./netproto

check: fmt vet staticcheck race ## run fmt, vet, staticcheck and race

fmt: ## fail if a Go file is not formatted
	@files=$$(gofmt -l .); test -z "$$files" || { printf 'not formatted, run gofmt -w on:\n%s\n' "$$files"; exit 1; }

vet: ## run go vet
	go vet ./...

staticcheck: ## run staticcheck
	go tool staticcheck ./...

# What begins no goroutine, or only other programs, is left to "make test", and so are tests that kill
# processes of their own. -short leaves out those in which one goroutine works through many bytes or
# inputs. PART=. has all others, and takes some minutes more than a gate has.
UNRACED := ^[^/]*/[^/]*/[^/]*$$|/(broker|broker/cache|index|index/keyspace|words|glob|resp/wire|content|inject|jsonbytes|connection|doctor|folder|browser)$$|/fuzz/(cluster|crash|doors|model|planted|redissuite|sim)
RACE    := go test $(PACKAGES) -count=1 -race -shuffle=on -short
# Other tests start this program, too, and each process would stay for a second to report what it finds.
race: export GORACE = atexit_sleep_ms=10
race: export CGO_ENABLED = 1
race: ## run the tests with the race detector, in random order
	$(RACE) -run '$(PART)' -skip '^Test(DamageOfAnyFile|KilledLoad|PowerCut|Simulation)' ./storage $$(go list ./... | grep -vE '$(UNRACED)')
	HOLDFAST_GOROUTINES=1 $(RACE) -run '$(PART)' ./netproto & HOLDFAST_ENCRYPTED=1 $(RACE) -run '$(PART)' ./netproto; other=$$?; wait $$! && exit $$other

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
	go test ./fuzz/crash -count=1 -run 'TestCrash$$' -cycles $(CYCLES) -timeout 60m -v

# With -every each call fails, each time, and each kill is tried: some hours.
sweep: ## make SWEEP (400) system calls of stores and servers fail, harm files, and fill disks; SWEEP='400 -every': all calls
	go test ./cmd/holdfast ./netproto/client ./recovery/load -count=1 -run 'LongestPayload|PayloadsOfEverySize|KilledLoad|LongRecordsAmong' -sweep $(SWEEP) -timeout 0 -v
	go test ./storage ./storage/journal ./storage/tables -count=1 -run 'FailingCall|KillAtAnyCall|KillBeforeAnyCall|KilledAtAnyCall|RefusesInPart|DamageOfAnyFile|ADrainedDisk|ComeAndGo' -sweep $(SWEEP) -timeout 0 -v
	go test ./fuzz/crash -count=1 -run 'FailingCall|ThinDisk|DiskFull|RefusesInPart|KilledCompaction|FlippedByte' -sweep $(SWEEP) -timeout 0 -v
	HOLDFAST_GOROUTINES=1 go test ./fuzz/crash -count=1 -run 'FailingCall|ThinDisk|DiskFull|RefusesInPart' -sweep $(SWEEP) -timeout 0 -v

planted: ## have each planted bug found: by a test, by the harness that kills servers, or by a cell
	go test ./fuzz/planted -run '^TestPlantedBugsAreFound' -count=1 -v
	go test ./fuzz/crash -run HarnessCatchesPlantedBugs -count=1 -every -timeout 30m -v
	go test ./fuzz/cluster -run '^TestPlantedBugsAreFound' -count=1 -planted -timeout 0 -v

redis-suite: ## run Redis's own tests, which are fetched, against the Redis protocol
	go test ./fuzz/redissuite -count=1 -run 'TestRedisSuite$$' -suite -timeout 30m -v

celery-suite: ## run Celery's own tests of canvas, tasks and remote control, which are fetched, on holdfast://
	go test ./fuzz/doors -count=1 -run 'TestCelerySuite$$' -suite -timeout 60m -v

linear: ## check that one order explains each of HISTORIES (2000) histories of concurrent Redis clients, and of workers
	go test ./fuzz/redis -count=1 -run 'SeeOneOrder$$' -histories $(HISTORIES) -timeout 60m -v

holds: ## make each command at its limit, and fail if a turn of the loop takes too much of its processor in each of five runs
	go test ./fuzz/soak -count=1 -run NoRequestHolds -whole -timeout 30m -v

soak: ## load a server for DURATION (1h) and check that its folder, memory and open files stay bounded
	go test ./fuzz/soak -count=1 -run 'TestSoak$$' -duration $(DURATION) -timeout 0 -v

attack: ## attack a server with clients that read nothing, never end a request, come and go
	go test ./fuzz/soak -count=1 -run 'TestAttacks$$' -whole -timeout 30m -v

doors: ## run what users install, Celery and the packages among it, and what they copy, against servers that are killed
	go test ./fuzz/doors -count=1 -whole -timeout 30m -v

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
	go test ./fuzz/cluster -count=1 -cycles $(CYCLES) -composed 5m -timeout 0 -v

words: ## make the tables of COMMANDS.md from the words in netproto/words
	go test ./netproto/words -count=1 -update

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
	go test ./netproto/admin/page/browser -count=1 -run 'TestScreenshots$$' -screenshots $(CURDIR)/bin/screenshots -timeout 10m

clean: ## remove bin and dist; data folders stay
	rm -rf bin dist
