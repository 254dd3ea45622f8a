# What a developer runs, and CI with it. Every target works on a clean checkout.

# The linters are built from their modules at these versions, into ./bin.
GOLANGCI_LINT_VERSION := v2.15.0
ACTIONLINT_VERSION := v1.7.12
# It bundles the editor of the console.
ESBUILD_VERSION := v0.28.2
# Runs rather than seconds: when the time ends in the middle of a run, go test now and then calls that a failure
# ("context deadline exceeded").
FUZZTIME ?= 3000x
# How many packages at a time, of one target and one worker each.
FUZZATONCE ?= 2

MODULES = $(shell go list -m -f '{{.Dir}}')
# The program that keeps modules releasable; it works when go.work does not.
RELEASE := GOWORK=off go run -C tools/release .

.PHONY: all check build vet vet-others lint format test test-386 test-oldest consumers race fuzz long soak overload
.PHONY: monitoring bench-serve dashboard console-editor console-page quickstart tidy tidy-check tags clean
.PHONY: bench bench-speed bench-growth bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload
.PHONY: bench-adapters bench-adapter-speed bench-fleet bench-test bench-packages

all: check

# Everything that CI checks; lint also compiles every package and does what vet does.
check: tidy-check lint test test-oldest consumers monitoring race fuzz

# Compile every package of every module.
build:
	go build work

vet:
	go vet work

# For platforms other than this one, all of which CI tests: of the third the root module, as test-386 does.
vet-others:
	CGO_ENABLED=0 GOOS=windows go vet work
	CGO_ENABLED=0 GOOS=darwin go vet work
	CGO_ENABLED=0 GOOS=linux GOARCH=386 go vet work

# Format and style, and the workflows; architecture_test.go checks the layers.
lint: bin/golangci-lint bin/actionlint
	@bin/actionlint
	@bin/golangci-lint run --allow-parallel-runners --config .golangci.yml $(MODULES:%=%/...)

# Format what lint would complain about.
format: bin/golangci-lint
	@for dir in $(MODULES); do (cd $$dir && $(CURDIR)/bin/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

bin/actionlint: Makefile
	GOBIN=$(CURDIR)/bin GOFLAGS= go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	@touch $@

bin/golangci-lint: Makefile
	GOBIN=$(CURDIR)/bin GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@touch $@

# All tests of all modules.
test:
	go test work

# The same with all that they can do: as many seeds, scenarios, calls and checks as find something at all, for an hour.
long:
	PENSTOCK_LONG=1 go test -count 1 -timeout 3h work

# The tests of the root module as a program of 32 bits, which runs on amd64 too, less the longest.
test-386:
	CGO_ENABLED=0 GOARCH=386 go test -short ./...

# The tests of each released module, less the longest, with the oldest versions it allows, which are those of its go.mod;
# make test has the newest, those of examples/go.mod. OLDEST has folders, such as adapters/gin; empty is all but the root.
OLDEST ?=
test-oldest:
	@$(RELEASE) oldest $(OLDEST)

# Programs of others, in folders of their own, find every released module and what it needs, keep the old versions that
# they require, and build with some of the modules: minutes where nothing is built yet.
consumers:
	cd tools/release && GOWORK=off go test -count 1 -timeout 60m -run TestModulesWorkForOthers . -build

# What is not tested under the race detector: tests of the sources as texts, simulations, suites that are tested
# themselves, examples and the command line, packages whose tests have one goroutine, and adapters that add nothing
# shared to what others of them have.
UNRACED := penstock|simulate|internal/overload|kindtest|adaptertest|(examples|tools|cmd)(/.*)?
UNRACED := $(UNRACED)|calendar|match|recording|rule|rules|adaptive/internal/limit|signal/internal/(procfs|share)
UNRACED := $(UNRACED)|datasource/(retry|snapshot|etcd/store|etcd/internal/listformat)
UNRACED := $(UNRACED)|internal/(fairqueue|longtest|openwindow|places|prefetch|splitmix|tenants|valuehash|waitqueue|warmup)
UNRACED := $(UNRACED)|core/internal/(each|events|inforce|load|names|ruleset)|adapters/(attribute|chi|kratos|priority|sql/sqltest)

# The same under the race detector; tests that are long and have one goroutine do less, or are left out. Some packages
# wait rather than compute, so three are tested at a time. lint looks at the same files without the race detector.
race:
	go test -race -short -vet=off -timeout 30m -p 3 $$(go list work | grep -vE '/($(UNRACED))$$')

# Each fuzz target for FUZZTIME, of some packages at a time: linking keeps one processor busy.
fuzz:
	@go list -f '{{.Dir}} {{.ImportPath}}' work | FUZZTIME=$(FUZZTIME) xargs -P $(FUZZATONCE) -L 1 .ci/fuzz

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

# The editor of the console, from the packages of npm that console/editor/package-lock.json names, into console/assets.
# Only who changes the editor needs this, and npm.
console-editor:
	cd console/editor && npm ci --ignore-scripts --no-audit --no-fund && \
	GOFLAGS= go run github.com/evanw/esbuild/cmd/esbuild@$(ESBUILD_VERSION) editor.js --bundle --minify --format=esm \
		--target=es2022 --alias:@codemirror/language=./language.js --banner:js="$$(cat banner.txt)" --outfile=../assets/editor.js && \
	for name in $$(cd node_modules && ls -d @codemirror/* @marijn/* crelt style-mod w3c-keyname); do \
		printf '%s\n\n' "$$name"; cat node_modules/$$name/LICENSE; printf '\n'; \
	done >../assets/editor.licenses.txt && rm -rf node_modules

# The script and the style of the console, from console/page into console/assets. Who changes them needs this, and no npm.
console-page:
	cd console && UPDATE_GOLDEN=1 go test -count 1 -run TestPageIsMadeOfItsSources .

# The strategies of adaptive rules beside fixed limits, simulated, into docs/overload.md and its pictures: some minutes.
overload:
	cd bench && GOWORK=off go test ./internal/libraries -run Compare -timeout 0 -v -args -- -docs "$(CURDIR)/docs"

# Penstock beside its peers, into docs/performance.md, and bench-fleet: about an hour, on a machine that does nothing else.
bench: bench-speed bench-growth bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload
bench: bench-adapters bench-fleet

# BENCHCOUNT rounds of every benchmark, not every benchmark BENCHCOUNT times: a machine that drifts does so for all. Each
# is in a process of its own, since late in a process of all of them some were up to a quarter slower.
BENCHCOUNT ?= 6
BENCHTIME ?= 1s
# Where tables go, seen from bench; nowhere if empty.
BENCHDOCS ?= ../docs/performance.md

BENCHCPUS ?= 1,2

bench-speed: BENCHMARKS = grep -v 'Growth\|Adapter'
bench-growth: BENCHMARKS = grep Growth
bench-adapter-speed: BENCHMARKS = grep Adapter
bench-adapter-speed: BENCHCPUS = 1
bench-speed bench-growth bench-adapter-speed: SHELL := bash -o pipefail
bench-speed bench-growth bench-adapter-speed:
	@cd bench && export GOWORK=off BENCHCOMMAND='make $@ BENCHTIME=$(BENCHTIME) BENCHCOUNT=$(BENCHCOUNT)' && \
	mkdir -p results && : >results/$@.txt && go test -c -o results/$@.test . && \
	for round in $$(seq $(BENCHCOUNT)); do \
		echo "$@: round $$round of $(BENCHCOUNT)"; \
		for name in $$(results/$@.test -test.list '^Benchmark' | $(BENCHMARKS)); do \
			results/$@.test -test.run '^$$' -test.bench "^$$name\$$" -test.benchmem -test.benchtime $(BENCHTIME) \
				-test.cpu $(BENCHCPUS) -test.timeout 0 | tee -a results/$@.txt || exit 1; \
		done; \
	done && \
	go run ./cmd/table -docs "$(BENCHDOCS)" results/$@.txt

# Everything but the time per call; MEASURE has flags, such as "-for 1s".
bench-adapters: bench-adapter-speed
bench-exactness bench-evenness bench-reload bench-memory bench-lists bench-overload bench-adapters: bench-%:
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
	go test -run '^$$' -bench . -benchmem -count 6 ./core ./fleet ./flow ./isolation ./breaker ./hotparam/... ./access ./list ./internal/leap

# The servers of package serve: requests beside those to a gRPC server that decides nothing, in turn; a second of reports
# of 50 data planes with 10,000 buckets each; 10,000 idle streams. Compare with benchstat.
bench-serve:
	go test -run '^$$' -bench . -benchmem -count 6 ./serve

# The demonstration: nothing to install.
quickstart:
	go run ./examples/quickstart

# Puts every module into go.work, the version of the file VERSION into what modules require of each other, and tidies
# them. Not with go work sync, which would raise what released modules require to the newest.
tidy:
	@$(RELEASE) tidy

tidy-check:
	@$(RELEASE) tidy -diff

# What is missing for a release, or its tags and what to do with them: see docs/versions.md.
tags:
	@$(RELEASE) tags

clean:
	rm -rf bin bench/results
