# adlock: make help lists the targets.

PREFIX  ?= /usr/local
DESTDIR ?=
INSTALL ?= install
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unreleased)

bindir = $(PREFIX)/bin
libdir = $(PREFIX)/lib/adlock

TAGS    = urfave_cli_no_docs
# Without inlining in what only help and messages need, the helper is 0.2 MB
# smaller; what a lock needs keeps it, and starts 7 % faster for it.
COLD    = text/... regexp/... reflect flag fmt github.com/... adlock/lib/app adlock/cmd/adlock
GCFLAGS = $(foreach package,$(COLD),-gcflags=$(package)=-l)
LDFLAGS = -s -w -funcalign=16 -X main.version=$(VERSION)
export CGO_ENABLED = 0

DURATION ?= 1h
# A number of inputs, not a time: at the end of a time go test may report the time.
FUZZTIME ?= 100000x

# With SKIP=no a shell or a server that is missing fails the tests.
SKIP ?= yes
export ADLOCK_TEST_SKIP = $(SKIP)

all: build

build: build/adlock build/adlock-report build/adlock-locksmith ## build the programs (static, stripped)

build/%: FORCE
	$(GO) build -trimpath $(GCFLAGS) -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $@ ./cmd/$*

demo: build/adlock build/adlock-report ## show busy, too soon, hung and replaced on real processes
	sh test/demo/demo.sh

test: build test-go test-shells ## everything below

# -count=1: a cached result would not see a change in the helper that the tests build.
test-go: build ## Go tests: packages, and what crosses them
	$(GO) vet -tags $(TAGS) ./...
	$(GO) test -tags $(TAGS) -count=1 -timeout 25m ./...

test-shells: build bats/node_modules ## the library's suite under every shell
	bats/run

test-network: build bats/node_modules ## locks across machines, on real etcd and FTP servers
	$(GO) test -tags $(TAGS) -count=1 -v -timeout 25m ./test/network
	bats/run store.bats

bats/node_modules: bats/package-lock.json
	cd bats && npm ci --silent --no-audit --no-fund
	touch $@

fuzz: ## every fuzz target, FUZZTIME=100000x inputs each
	set -e; for target in lock:FuzzParse lock:FuzzMemory runlog:FuzzParse limit:FuzzParse name:FuzzCanonify process:FuzzParseStat; do \
		$(GO) test -tags $(TAGS) -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) ./lib/$${target%:*}; \
	done

soak: build ## the long forms of the tests, DURATION=1h
	ADLOCK_SOAK=$(DURATION) $(GO) test -tags $(TAGS) -count=1 -timeout 0 -v ./test/history ./test/model ./test/crash ./test/fault ./test/leak ./test/sim ./test/storm

# The packages whose tests are tried, and how much of it they have to catch.
MUTANTS ?= lib/policy lib/name lib/learn lib/lock lib/process lib/atom

mutants: build ## change the code in small places, and tell which changes no test notices
	$(GO) run ./test/mutants -tags $(TAGS) -least 95 $(MUTANTS)

lint: ## vet, staticcheck, shellcheck, shfmt, and a build for every system
	$(GO) vet -tags $(TAGS) ./...
	staticcheck -tags $(TAGS) ./...
	shellcheck -x -s sh sh/adlock.sh test/*/*.sh
	shellcheck bats/*.bats bats/*.bash bats/run
	shfmt -d sh/*.sh bats/*.bats bats/*.bash bats/prelude.sh bats/run test/*/*.sh
	test -z "$$(gofmt -l cmd lib test)"
	for system in linux/amd64 linux/arm64 darwin/arm64 freebsd/amd64 openbsd/amd64 netbsd/amd64; do \
		GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) vet -tags $(TAGS) ./cmd/... ./lib/... || exit 1; \
	done

bench: build/adlock ## times beside flock, dotlockfile, lockfile and the usual boilerplate
	sh test/bench/bench.sh

install: build ## install the helper, the library and the Makefile fragment
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(libdir)
	$(INSTALL) -m 755 build/adlock build/adlock-report build/adlock-locksmith $(DESTDIR)$(bindir)
	sed "s|^_adlock_installed=.*|_adlock_installed='$(bindir)/adlock'|" sh/adlock.sh > build/adlock.sh
	$(INSTALL) -m 644 build/adlock.sh $(DESTDIR)$(libdir)/adlock.sh
	$(INSTALL) -m 644 sh/adlock.mk $(DESTDIR)$(libdir)/adlock.mk

uninstall: ## remove what install put in place
	rm -f $(DESTDIR)$(bindir)/adlock $(DESTDIR)$(bindir)/adlock-report $(DESTDIR)$(bindir)/adlock-locksmith
	rm -f $(DESTDIR)$(libdir)/adlock.sh $(DESTDIR)$(libdir)/adlock.mk
	-rmdir $(DESTDIR)$(libdir)

clean: ## remove what was built
	rm -rf build bats/node_modules

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

FORCE:

.PHONY: all build demo test test-go test-shells test-network fuzz soak mutants lint bench install uninstall clean help FORCE
