# What a developer runs, and CI with it. Every target works on a clean checkout.

# The linter is built from its module at this version, into ./bin.
GOLANGCI_LINT_VERSION := v2.15.0
# Runs rather than seconds: when the time ends in the middle of a run, go test now and then calls that a failure
# ("context deadline exceeded").
FUZZTIME ?= 30000x

MODULES := $(shell go list -m -f '{{.Dir}}')

.PHONY: all check build vet lint format test race fuzz soak overload monitoring dashboard quickstart tidy clean
.PHONY: bench bench-speed bench-growth bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload
.PHONY: bench-fleet bench-test bench-packages

all: check

# Everything that CI checks.
check: build vet lint test monitoring race fuzz

# Compile every package of every module.
build:
	go build work

vet:
	go vet work

# Format and style; architecture_test.go checks the layers.
lint: bin/golangci-lint
	@for dir in $(MODULES); do (cd $$dir && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

# Format what lint would complain about.
format: bin/golangci-lint
	@for dir in $(MODULES); do (cd $$dir && $(CURDIR)/bin/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

bin/golangci-lint: Makefile
	GOBIN=$(CURDIR)/bin GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@touch $@

# All tests of all modules.
test:
	go test work

# The same under the race detector; tests that are long and have one goroutine do less, or are left out.
race:
	go test -race -short work

# Each fuzz target for FUZZTIME. Unless it is told, go would spend all of that on making its first finds shorter.
fuzz:
	@go list -f '{{.Dir}}' work | while read dir; do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | sed 's/func //'); do \
			echo "fuzz $$target in $$dir"; \
			(cd $$dir && go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x .) || exit 1; \
		done; \
	done

# A real engine under everything at once, for SOAKTIME of real time; SOAKFLAGS are those of go run.
SOAKTIME ?= 10m
soak:
	go run $(SOAKFLAGS) ./soak -for $(SOAKTIME)

# The Grafana dashboard and the alert rules, with the engine of Prometheus, in a module that is not in go.work. Nobody
# runs go mod tidy there, so that go may have to change its go.mod.
monitoring:
	cd .ci/monitoring && GOWORK=off go vet -mod=mod . && GOWORK=off go test -mod=mod -count 1 .

# The dashboard under twelve minutes of virtual load, into docs/images/dashboard.svg.
dashboard:
	cd .ci/monitoring && GOWORK=off go test -mod=mod -run Load -count 1 . -draw $(CURDIR)/docs/images/dashboard.svg

# The strategies of adaptive rules beside fixed limits, simulated, into docs/overload.md and its pictures: some minutes.
overload:
	go run ./soak/overload -docs docs

# Penstock beside its peers, into docs/performance.md, and bench-fleet: about an hour, on a machine that does nothing else.
bench: bench-speed bench-growth bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload bench-fleet

# BENCHCOUNT rounds of every benchmark, not every benchmark BENCHCOUNT times: a machine that drifts does so for all.
BENCHCOUNT ?= 6
BENCHTIME ?= 1s
# Where tables go, seen from bench; nowhere if empty.
BENCHDOCS ?= ../docs/performance.md

bench-speed: BENCHMARKS = -bench . -skip Growth
bench-growth: BENCHMARKS = -bench Growth
bench-speed bench-growth: SHELL := bash -o pipefail
bench-speed bench-growth:
	@cd bench && export GOWORK=off && mkdir -p results && : >results/$@.txt && \
	for round in $$(seq $(BENCHCOUNT)); do \
		echo "$@: round $$round of $(BENCHCOUNT)"; \
		go test -run '^$$' $(BENCHMARKS) -benchmem -benchtime $(BENCHTIME) -cpu 1,2 -timeout 0 . | tee -a results/$@.txt || exit 1; \
	done && \
	go run ./cmd/table -docs "$(BENCHDOCS)" results/$@.txt

# Everything but the time per call; MEASURE has flags, such as "-for 1s".
bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload: bench-%:
	cd bench && GOWORK=off go run ./cmd/$* -docs "$(BENCHDOCS)" $(MEASURE)

# Processes of their own share limits through a real Redis or Valkey server, which also fails; into docs/fleet.md: eight
# minutes. For some of it: make bench-fleet BENCHDOCS= MEASURE="-run 'lease 1000/s'"
bench-fleet: BENCHDOCS = ../docs/fleet.md
bench-fleet:
	cd bench && GOWORK=off go run ./cmd/fleet -docs "$(BENCHDOCS)" $(MEASURE)

# The tests of the module bench, which is not in go.work.
bench-test:
	cd bench && GOWORK=off go vet ./... && GOWORK=off go test ./...

# Benchmarks of single packages; compare with benchstat.
bench-packages:
	go test -run '^$$' -bench . -benchmem -count 6 ./core ./fleet ./flow ./isolation ./breaker ./hotparam/... ./access ./list ./stat

# The demonstration: nothing to install.
quickstart:
	go run ./examples/quickstart

tidy:
	@for dir in $(MODULES); do (cd $$dir && go mod tidy) || exit 1; done
	go work sync

clean:
	rm -rf bin bench/results
