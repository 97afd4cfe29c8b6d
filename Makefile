# Needs Go. `make test` also uses a real Kafka where the machine can run one (scripts/kafka.sh says how it looks for it).

.DEFAULT_GOAL := help
.PHONY: help build test quick race bench microbench lint fuzz docs dev

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static program, ./millrace
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o millrace .

test: ## everything: the quick tests, then the end-to-end suite on a real Kafka
	@scripts/test.sh

quick: ## without slow tests and without a real Kafka
	go test -short -timeout 5m ./...

race: ## the quick tests under the race detector (needs a C compiler)
	go test -race -short -timeout 20m ./...

bench: ## side by side with Kafka Streams on a real Kafka, about 20 minutes (bench/README.md)
	go run ./bench run && go run ./bench report

microbench: ## the benchmarks inside the packages
	go test -run '^$$' -bench . -benchmem -timeout 20m ./...

lint: ## gofmt and vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	go vet ./...

fuzz: ## every fuzz target for FUZZTIME each (default 20s)
	@scripts/fuzz.sh

docs: ## write the generated pages of docs/ anew
	go test ./observe . -run 'Page$$' -update

dev: ## run config.yaml here, with a broker inside the process
	go run . dev
