# What a developer runs, and CI with it. Every target works on a clean checkout.

# The linter is built from its module at this version, into ./bin.
GOLANGCI_LINT_VERSION := v2.15.0
FUZZTIME ?= 10s

MODULES := $(shell go list -m -f '{{.Dir}}')

.PHONY: all check build vet lint format test race fuzz bench quickstart tidy clean

all: check

# Everything that CI checks.
check: build vet lint test race fuzz

# Compile every package of every module.
build:
	go build work

vet:
	go vet work

# Format and style; the architecture is held by house_test.go too.
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

# The same under the race detector.
race:
	go test -race work

# Each fuzz target for FUZZTIME.
fuzz:
	@go list -f '{{.Dir}}' work | while read dir; do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | sed 's/func //'); do \
			echo "fuzz $$target in $$dir"; \
			(cd $$dir && go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) .) || exit 1; \
		done; \
	done

# The price of a call; compare with benchstat.
bench:
	go test -run '^$$' -bench . -benchmem -count 6 ./core ./flow ./stat

# The demonstration: nothing to install.
quickstart:
	go run ./examples/quickstart

tidy:
	@for dir in $(MODULES); do (cd $$dir && go mod tidy) || exit 1; done
	go work sync

clean:
	rm -rf bin
