# Entry points for developers and CI. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help run kafka test test-tls histories draw-test gate-test edge-test compose-test cluster-test fuzz chaos chaos-mutants soak bench bench-kafka k6 manifests docs images web lint audit fmt deps \
	page tools chaos-bugs

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

run: ## all roles in one process, without setup
	cargo run --release

kafka: ## a real Kafka broker on loopback; prints how to use it
	@infra/kafka/broker.sh

test: deps ## all suites against real Redis and Kafka; installs what they need
	cargo test --workspace --locked
	web/test.sh
	sdk/test.sh
	infra/test.sh

test-tls: deps ## the suites of the store over TLS with the documented ACL on Redis and Valkey, and those of Kafka with each login
	infra/tools/test-tls.sh

compose-test: ## docker-compose.yml in real containers, killed and replaced under load; starts an engine where none runs: FULL=1
	infra/compose/test.sh

cluster-test: ## the chart in a real Kubernetes: restarts, upgrade, autoscaler; builds one from Go modules the first time (25 min)
	infra/cluster/test.sh

histories: ## random histories of new seeds on Redis against the specification: SECONDS=60
	@infra/tools/redis.sh
	DAEGI_HISTORIES_SECONDS=$(or $(SECONDS),60) cargo test --locked -p daegi-store --test it -- --nocapture redis_agrees_with_the_specification

draw-test: deps ## a drawn lobby over HTTP on real Redis and Kafka; a program without shared code compares all admissions: PEOPLE=100000
	cargo build --release --locked -p daegi-api -p daegi-scheduler
	cd infra/tests && PATH=$$PATH:../../target/ship/bin BINARIES=$(abspath $(or $(CARGO_TARGET_DIR),target))/release PEOPLE=$(or $(PEOPLE),100000) \
		go test -count=1 -v -timeout 30m -run Lobby ./draw

gate-test: deps ## the snippets of infra/gate with the real nginx, HAProxy and Caddy
	@infra/tools/apt.sh caddy caddy "its gate is not tested"
	cargo build --locked -p daegi
	cd infra/tests && PATH=$$PATH:../../target/ship/bin BINARIES=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug go test -count=1 -v ./gate

edge-test: ## the worker of sdk/edge in workerd, fetched from npm (180 MB)
	@infra/tools/node.sh
	cd sdk/edge && npm ci --silent && npm test

fuzz: ## schemathesis against both OpenAPI documents of a running daegi: EXAMPLES=50 SEED=1
	cargo build --locked -p daegi
	infra/fuzz/run.sh

CHAOS_BINARIES = -p daegi-api -p daegi-scheduler -p daegi-consumer -p daegi-chaos

chaos: deps ## injects faults into a fleet under load and checks its history: SEED=1 SECONDS=180 PEOPLE=5000 REDIS=one|sentinel|cluster
	cargo build --locked $(CHAOS_BINARIES)
	$(or $(CARGO_TARGET_DIR),target)/debug/daegi-chaos run --seed $(or $(SEED),1) --seconds $(or $(SECONDS),180) --people $(or $(PEOPLE),5000) --redis $(or $(REDIS),one)

chaos-mutants: deps ## applies each patch of tools/chaos/mutants and fails unless the checker finds a violation: MUTANTS="no-fence"
	tools/chaos/mutants/run.sh $(or $(MUTANTS),$(BUGS))

soak: deps ## constant load without faults; memory and keys must not grow: MINUTES=10 RATE=2000 (requests per second)
	cargo build --profile dist --locked $(CHAOS_BINARIES)
	$(or $(CARGO_TARGET_DIR),target)/dist/daegi-chaos soak --minutes $(or $(MINUTES),10) --rate $(or $(RATE),2000)

bench: ## cold start, polls, joins, admissions and open connections against a baseline handler: a table, JSON and SVG in docs/bench
	@infra/tools/redis.sh
	@infra/tools/apt.sh wrk wrk "the bench has no load generator"
	@infra/tools/apt.sh valgrind valgrind "instructions of scripts are not counted"
	cargo build --profile dist --locked -p daegi-bench -p daegi-api
	$(or $(CARGO_TARGET_DIR),target)/dist/daegi-bench api --json docs/bench/api.json --svg docs/bench/api.svg $(BENCH_ARGS)

k6: ## k6 spike test with fairness checks: K6="sale.js fleet" runs another script or the fleet
	cargo build --release --locked -p daegi -p daegi-api -p daegi-scheduler
	k6/run.sh $(or $(K6),spike.js)

# The broker script optimizes for a quick start. KAFKA_OPTS come after its options and override them.
bench-kafka: deps ## the rate of the relay with a real broker
	KAFKA_OPTS="-XX:TieredStopAtLevel=4 -Xmx1g" cargo run --profile dist --locked -p daegi-bench -- kafka $(BENCH_ARGS)

manifests: ## render infra/k8s after a change of the chart
	@infra/tools/infra-deps.sh
	cd infra/tests && PATH=$$PATH:../../target/ship/bin go test -run Manifests -update .

docs: ## generate docs/CONFIGURATION.md after a change of the options
	cargo build --locked -p daegi -p daegi-api
	cd infra/tests && BINARIES=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug go test -count=1 -run Configuration ./docs -update

images: ## run the commands of each Dockerfile stage without Docker in a clean directory: PROFILE=dev is faster
	infra/docker/dry-run.sh

web: ## bundle the waiting page and the console after a change in web/ or sdk/
	@infra/tools/node.sh
	npm run --silent build

lint: ## formatting, clippy and rustdoc; warnings are errors
	cargo fmt --all -- --check
	infra/tools/words.sh
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

audit: ## check vulnerabilities, licences and sources of all dependencies
	infra/tools/audit.sh

fmt: ## format everything
	cargo fmt --all

deps: ## install what the tests need besides cargo
	@infra/tools/redis.sh
	@infra/kafka/tools.sh
	@infra/tools/node.sh
	@infra/tools/browser.sh
	@infra/tools/python.sh
	@infra/tools/infra-deps.sh

# Former names, kept for one release.
page: web
tools: deps
chaos-bugs: chaos-mutants
