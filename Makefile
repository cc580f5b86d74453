# adlock: make help lists the targets.

# Tools for lint, packages, bills of materials and mutants. Each is built from its own module and go.sum,
# and adds nothing to those of adlock.
tool        = $(GO) run
staticcheck = $(tool) honnef.co/go/tools/cmd/staticcheck@v0.8.2
nfpm        = $(tool) github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
cyclonedx   = $(tool) github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
gremlins    = $(tool) -exec "env 'PATH=$(abspath build/gremlins):$$PATH'" github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

PREFIX  ?= /usr/local
DESTDIR ?=
INSTALL ?= install
GO      ?= go
# --version prints this behind the number, which lib/config/version.go has.
COMMIT  ?= $(shell git describe --tags --always --dirty 2>/dev/null)

bindir = $(PREFIX)/bin
libdir = $(PREFIX)/lib/adlock
docdir = $(PREFIX)/share/doc/adlock
# logrotate reads /etc. An install from source writes nothing there, and has the file below PREFIX.
sysconfdir ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)

# Without grpcnotrace the locksmith would have the pages on which gRPC shows its calls, and the
# templates for them, and would be a quarter larger.
TAGS    = urfave_cli_no_docs,grpcnotrace
LDFLAGS = -s -w -funcalign=16 -X adlock/lib/config.Commit=$(COMMIT)
export CGO_ENABLED = 0
# Builds, vet, staticcheck, tests and what tests build have the same flags: nothing is compiled twice.
export GOFLAGS += -trimpath

# A number of inputs, not a time: if a time is over, go test may report that as a failure.
FUZZTIME ?= 100000x

# With SKIP=no, as in CI, a shell or a server that is missing fails the tests.
SKIP ?= yes
export ADLOCK_TEST_SKIP = $(SKIP)

all: build

# For another machine: make build BUILD=build/arm64 GOARCH=arm64.
BUILD ?= build
programs = $(BUILD)/adlock $(BUILD)/adlock-report $(BUILD)/adlock-locksmith

build: $(programs) ## build the programs (static, stripped)

# Without -buildvcs=false a build within git would differ from a build of the same sources without
# git.
$(BUILD)/%: FORCE
	$(GO) build -buildvcs=false -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $@ ./cmd/$*

demo: build/adlock build/adlock-report ## show busy, too soon, hung and replaced on real processes
	sh test/docs/demo.sh

test: build test-go test-shells ## what CI runs; make soak has the rest

# -count=1: a cached result would miss a change in the helper that the tests build.
# -p 4: many tests wait, and on two processors more packages hinder each other. The packages that
# take longest come first.
PACKAGES ?= ./test/network ./lib/lockdir ./test/... ./lib/... ./cmd/...
test-go: build ## Go tests: packages, and what crosses them
	$(GO) test -p 4 -tags $(TAGS) -count=1 -timeout 10m $(PACKAGES)

test-shells: build bats/node_modules ## the library's suite: dash and bash in full, a core under other shells
	bats/run

test-network: build bats/node_modules ## locks across machines, on real etcd and FTP servers
	$(GO) test -tags $(TAGS) -count=1 -v -timeout 25m ./test/network
	bats/run store.bats

bats/node_modules: bats/package-lock.json
	cd bats && npm ci --loglevel=error --no-audit --no-fund
	touch $@

fuzz: ## every fuzz target, FUZZTIME=100000x inputs each
	set -e; for target in $$(grep -ro '^func Fuzz[A-Za-z]*' lib --include='*_test.go' | sed 's|/[^/]*:func |:|'); do \
		$(GO) test -tags $(TAGS) -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) ./$${target%:*}; \
	done

# These show in minutes that most things work: packages, cli, process, and one shell. Here, too,
# the packages that take longest come first.
quick_packages = ./lib/lockdir ./test/cli ./cmd/... ./test/process ./lib/...
quick: build bats/node_modules ## the quick tests, under dash alone
	$(GO) test -tags $(TAGS) -count=1 -timeout 10m $(quick_packages)
	ADLOCK_TEST_SHELLS=dash bats/run

ways: build bats/node_modules ## the quick tests in each way in which a suite gets started, WAYS='under_nohup ...'
	GO='$(GO)' WAYS='$(WAYS)' sh test/support/ways.sh $(MAKE) quick

# The build tag soak adds the tests that `make test` leaves out, and has the others try every point.
# With DURATION they also try each repeated call, and storms and chaos last that long each.
# Not in the recipe itself: make -n would run it, as it runs all lines with $(MAKE).
record = sh test/support/soak.sh $(MAKE) --no-print-directory
soak: ## what takes too long for CI; for hours with DURATION=1h; test/soak.log tells
	$(record) -- vet-systems fuzz soak-go soak-shells bare

soaked: ## whether what a soak tries has changed since the last
	@sh test/support/soak.sh

vet-systems: ## vet for every system, and a build for 32 bits
	GOARCH=386 $(GO) build -tags $(TAGS) -o /dev/null ./cmd/...
	for system in linux/arm64 darwin/arm64 freebsd/amd64 openbsd/amd64 netbsd/amd64; do \
		GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) vet -tags $(TAGS) ./cmd/... ./lib/... || exit 1; \
	done

soak-go: build ## the Go tests of a soak
	$(if $(DURATION),ADLOCK_SOAK=$(DURATION)) $(GO) test -p 3 -tags $(TAGS),soak -count=1 -timeout 0 $(PACKAGES)

STRESS ?= 300

soak-shells: build bats/node_modules ## the library's suite in full under every shell, and STRESS=300 seconds of drawn scripts
	ADLOCK_TEST_WHOLE=yes $(if $(DURATION),ADLOCK_SOAK=$(DURATION)) bats/run
	bats/stress $(STRESS)

bare: ## make demo and make test in a Debian that has only Go, make, git and node
	.ci/bare

N ?= 20

flake: build bats/node_modules ## the quick tests N=20 times beside a busy processor: what fails now and then
	GO='$(GO)' TAGS='$(TAGS)' BATS='$(BATS)' sh test/support/flake.sh $(N) $(quick_packages)

# The packages whose code is changed, each tested by its own tests alone, and how many percent of
# the changes the tests have to catch.
MUTANTS ?= lib/policy lib/atom lib/learn lib/record lib/lockdir/lockfile lib/process lib/killer lib/lockdir
LEAST   ?= 95
changes = arithmetic-base conditionals-boundary conditionals-negation increment-decrement invert-assignments \
	invert-bitwise invert-bwassign invert-logical invert-loopctrl invert-negatives remove-self-assignments

mutants: build ## change the code in small places, and tell which changes no test notices
	@mkdir -p build/gremlins && ln -sf ../../test/support/gremlins.sh build/gremlins/go
	@failed=0; export GREMLINS_GO="$$(command -v $(GO))" TAGS=$(TAGS) ADLOCK_TEST_SKIP=no; \
	for room in $(MUTANTS); do \
		echo $$room; $(gremlins) unleash --tags $(TAGS) --workers 1 --timeout-coefficient 4 --output-statuses lt \
			$(changes:%=--%) --threshold-efficacy $(LEAST) ./$$room || failed=1; \
	done; exit $$failed

lint: ## vet, staticcheck, shellcheck, shfmt, mandoc, man; vet of what scripts call on darwin and freebsd
	$(GO) vet -tags $(TAGS),soak ./...
	$(staticcheck) -tags $(TAGS),soak ./...
	shellcheck -s sh cmd/package/complete cmd/package/prerm cmd/package/postrm
	shellcheck -x -s sh sh/adlock.sh sh/shell sh/guarded-crontabs test/*/*.sh
	shellcheck bats/*.bats bats/*.bash bats/run bats/stress sh/completions/adlock.bash .ci/*
	# yash refuses to read anything but ASCII in the C locale, which cron has.
	! LC_ALL=C grep -rn '[^[:print:][:space:]]' sh test/*/*.sh
	shfmt -d sh/*.sh sh/shell sh/guarded-crontabs sh/completions/adlock.bash bats/*.bats bats/*.bash bats/prelude.sh bats/run bats/stress test/*/*.sh cmd/package/complete cmd/package/prerm cmd/package/postrm .ci/*
	mandoc -Tlint -Wwarning $(pages)
	for page in $(pages); do ! LC_ALL=C.UTF-8 man --warnings -l $$page 2>&1 >/dev/null | grep . || exit 1; done
	! gofmt -l cmd lib test | grep .
	for system in darwin/arm64 freebsd/amd64; do \
		export GOOS=$${system%/*} GOARCH=$${system#*/}; \
		$(GO) vet -tags $(TAGS) $$($(GO) list -deps -tags $(TAGS) ./cmd/adlock ./cmd/adlock-report | grep ^adlock/) || exit 1; \
	done

# BENCH='-full -write test/bench/README.md' writes the tables in that file; -svg FILE draws them.
bench: build ## times beside flock, dotlockfile, lockfile, setlock, sem, mkdir and the usual boilerplate
	$(GO) run -tags $(TAGS) ./test/bench $(BENCH)

house: ## statements and imports of each room, or what changed in them: SINCE=REVISION
	@$(GO) run ./test/support/house $(SINCE)

outdated: ## what newer versions there are of what this is built, packed and tested with
	@sh test/support/outdated.sh

# installed lists what is installed beside the programs, as FILE:DIRECTORY/ or FILE:DIRECTORY/NAME,
# below PREFIX. Packages are made of what is installed, so this list is the only one.
examples := $(shell find -L test/examples -type f | sort)
# The manual pages, each beside what it describes.
pages    := $(wildcard cmd/*/*.[1-8] lib/*.[1-8] sh/*.[1-8])
installed = $(addsuffix :lib/adlock/,sh/adlock.sh sh/shell sh/guarded-crontabs sh/adlock.mk cmd/adlock-report/adlock-alerts.yml cmd/adlock-report/adlock-dashboard.json) \
	$(foreach page,$(pages),$(page):share/man/man$(subst .,,$(suffix $(page)))/) \
	sh/completions/adlock.bash:share/bash-completion/completions/adlock \
	sh/completions/_adlock:share/zsh/site-functions/ \
	sh/completions/adlock.fish:share/fish/vendor_completions.d/ \
	$(addsuffix :share/doc/adlock/,README.md CHANGELOG.md LICENSE) \
	$(foreach file,$(examples),$(file):share/doc/adlock/$(dir $(file:test/%=%)))

# from, into and to are the file, the target as listed, and the path of one entry.
from = $(firstword $(subst :, ,$(1)))
into = $(lastword $(subst :, ,$(1)))
to   = $(DESTDIR)$(PREFIX)/$(if $(filter %/,$(into)),$(into)$(notdir $(from)),$(into))

# packaged changes the paths of a package in an example, except in those that install the package.
packaged = $(if $(filter test/examples/%,$(filter-out test/examples/ansible/% test/examples/park/%,$(1))),-e "s|/usr/\([a-z]*/adlock[ /]\)|$(PREFIX)/\1|g")

# put installs a text with the installed paths in it: of the helper in a library, of files in a
# manual, of the examples in the README.
# Each file is put in place by a rename: a script may be reading the old file, and a line of a
# crontab may start at any moment.
define put
@sed -e "s|^_adlock_installed=.*|_adlock_installed='$(bindir)/adlock'|" -e "s|/usr/local/\([a-z]*/adlock\)|$(PREFIX)/\1|g" \
	-e "s|](test/examples|](examples|g" $(call packaged,$(1)) $(1) >"$(2).new"
@if test -x $(1); then chmod 755 "$(2).new"; else chmod 644 "$(2).new"; fi
@mv -f "$(2).new" "$(2)"

endef

# DESTDIR stands between double quotes here. The other directories also stand in installed files,
# and in sed's script.
quote := '
quoted = '$(subst $(quote),'\$(quote)',$(1))'

plain-directories:
	@case $(call quoted,$(DESTDIR)) in *[\"\\\`\$$]*) false ;; esac && \
	case $(call quoted,$(PREFIX)$(bindir)$(sysconfdir)) in *[\'\"\\\`\$$\|\&]*) false ;; esac || { \
		printf 'adlock: %s: no quote, \\, $$, | or & can stand in this directory\n' $(call quoted,$(DESTDIR)$(PREFIX)) >&2; exit 64; }
	@case $(call quoted,$(bindir)) in /*) ;; *) printf 'adlock: %s: want a full path from / on\n' $(call quoted,$(bindir)) >&2; exit 64 ;; esac

# install builds only if a program is missing, since root often has no Go: make && sudo make
# install.
install: plain-directories ## install programs, library, the shell for crontabs, manual, completions, examples
	@for program in $(programs); do test -x $$program || { $(MAKE) build && break; } || exit 1; done
	@for file in $(foreach each,$(installed),$(call from,$(each))); do \
		test -f $$file || { echo "adlock: $$file: is missing, and nothing was installed" >&2; exit 1; }; done
	@test -z "$$(find -L cmd lib -newer $(BUILD)/adlock \( -name '*.go' -o -name '*.html' \) ! -name '*_test.go')" || \
		echo 'note: sources are newer than what is installed; make builds them' >&2
	@told=$$($(INSTALL) -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(sysconfdir)/logrotate.d" \
		$(foreach dir,$(sort $(foreach each,$(installed),$(dir $(call into,$(each))))),"$(DESTDIR)$(PREFIX)/$(dir)") 2>&1) || \
		{ echo "$$told" | sed 1q >&2; exit 73; } # of each directory it would say the same
	@set -e; for program in $(programs); do to="$(DESTDIR)$(bindir)/$${program##*/}"; \
		$(INSTALL) -m 755 $$program "$$to.new"; mv -f "$$to.new" "$$to"; done
	$(call put,lib/runlog/logrotate,$(DESTDIR)$(sysconfdir)/logrotate.d/adlock)
	$(foreach each,$(installed),$(call put,$(call from,$(each)),$(call to,$(each))))

uninstall: plain-directories ## remove what install put in place; locks and the runlog stay
	@sh sh/guarded-crontabs "$(libdir)/shell" "$(DESTDIR)"
	rm -f $(programs:$(BUILD)/%="$(DESTDIR)$(bindir)/%") "$(DESTDIR)$(sysconfdir)/logrotate.d/adlock"
	@rm -f $(foreach each,$(installed),"$(call to,$(each))")
	@for dir in "$(DESTDIR)$(libdir)" "$(DESTDIR)$(docdir)"; do \
		find "$$dir" -depth -type d -exec rmdir {} \; 2>/dev/null || :; done

# Packages are made of what install puts below build/MACHINE/tree. All times in them are the
# commit's, so that the same sources give the same bytes.
MACHINES   ?= amd64 arm64
RELEASE    ?= build/release
VERSION    ?= $(shell sed -n 's/^const Release = "\(.*\)"/\1/p' lib/config/version.go)
MAINTAINER ?= The adlock authors <adlock@example.org>
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
packing = GO='$(GO)' TAGS='$(TAGS)' VERSION='$(VERSION)' MAINTAINER='$(MAINTAINER)' SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)'

# This fetches the tools. A failure after it is no fault of a registry.
tools:
	@$(nfpm) --version >/dev/null
	@$(cyclonedx) version >/dev/null

deb rpm apk: trees ## make packages in build/release
	@mkdir -p $(RELEASE)
	@set -e; for machine in $(MACHINES); do (cd build/$$machine && $(packing) ARCH=$$machine $(nfpm) package -f ../../cmd/package/nfpm.yaml -p $@ -t $(abspath $(RELEASE))/); done

# cyclonedx makes a bill for one program. Without -noserial and -notimestamp each bill would have
# a number and a time of its own. It states its own machine as that of each program.
sbom: trees ## make a bill of materials for each program, in build/release
	@mkdir -p $(RELEASE)
	@set -e; for machine in $(MACHINES); do for program in $(notdir $(programs)); do \
		$(cyclonedx) bin -json -std -noserial -notimestamp -short-purls -version $(VERSION) \
			-output $(RELEASE)/$${program}_$(VERSION)_$$machine.cdx.json build/$$machine/$$program; done; done

trees: $(MACHINES:%=build/%/tree)

# Only the build gets GOARCH: the tools run on this machine.
$(MACHINES:%=build/%/tree): build/%/tree: FORCE
	@GOARCH=$* $(MAKE) --no-print-directory build BUILD=build/$*
	@rm -rf $@ build/$*/parts
	@$(MAKE) --no-print-directory install BUILD=build/$* PREFIX=/usr DESTDIR=$(abspath $@)
	@$(packing) GOARCH=$* cmd/package/complete $@ build/$*/parts

release: soaked ## packages, bill of materials and checksums, signed by ssh-keygen where KEY=FILE says with what
	rm -f $(RELEASE)/adlock* $(RELEASE)/SHA256SUMS*
	@$(MAKE) --no-print-directory deb rpm apk sbom
	cd $(RELEASE) && sha256sum adlock* >SHA256SUMS
	$(if $(KEY),ssh-keygen -q -Y sign -f $(KEY) -n file $(RELEASE)/SHA256SUMS)

clean: ## remove what was built
	rm -rf build bats/node_modules

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## /\1\t/p' Makefile | expand -t 18

FORCE:

.PHONY: all build demo test test-go test-shells test-network quick ways fuzz soak soaked vet-systems soak-go soak-shells bare mutants flake lint bench house outdated install uninstall plain-directories tools deb rpm apk sbom trees release clean help FORCE
