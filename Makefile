# The front door for people and for CI. `make help` lists what there is.
.DEFAULT_GOAL := help
.PHONY: help run kafka test fuzz chaos chaos-bugs soak bench bench-kafka k6 manifests docs images page lint audit fmt tools

help: ## what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

run: ## the whole waiting room in one process, no set-up
	cargo run --release

kafka: ## a real Kafka broker on loopback; prints how to use it
	@infra/kafka/broker.sh

test: tools ## every suite, against real Redis and Kafka; installs what it needs
	cargo test --workspace --locked
	web/test.sh
	sdk/test.sh
	infra/test.sh

fuzz: ## schemathesis against both OpenAPI documents of a running daegi: EXAMPLES=50 SEED=1
	cargo build --locked -p daegi
	services/daegi/fuzz.sh

CHAOS_BINARIES = -p daegi-api -p daegi-scheduler -p daegi-consumer -p daegi-chaos

chaos: tools ## breaks a fleet while people wait and judges it: SEED=1 SECONDS=180 PEOPLE=5000 REDIS=one|sentinel|cluster
	cargo build --locked $(CHAOS_BINARIES)
	$(or $(CARGO_TARGET_DIR),target)/debug/daegi-chaos run --seed $(or $(SEED),1) --seconds $(or $(SECONDS),180) --people $(or $(PEOPLE),5000) --redis $(or $(REDIS),one)

chaos-bugs: tools ## plants bugs and shows that the verdict turns red: BUGS="no-fence"
	chaos/bugs/show.sh $(BUGS)

soak: tools ## an evening without faults, nothing may grow: MINUTES=10 RATE=2000 (requests per second)
	cargo build --release --locked $(CHAOS_BINARIES)
	$(or $(CARGO_TARGET_DIR),target)/release/daegi-chaos soak --minutes $(or $(MINUTES),10) --rate $(or $(RATE),2000)

bench: ## polls, joins, admissions, open connections beside a bare handler: a table, and a picture in docs/bench
	@infra/tools/redis.sh
	@infra/tools/packages.sh wrk wrk "the bench has no load"
	@infra/tools/packages.sh valgrind valgrind "instructions are not counted"
	@infra/tools/packages.sh bpftrace bpftrace "nobody times single scripts"
	cargo build --release --locked -p daegi-bench -p daegi-api
	$(or $(CARGO_TARGET_DIR),target)/release/daegi-bench people --json docs/bench/people.json --svg docs/bench/people.svg $(BENCH_ARGS)

k6: ## a spike that judges fairness, end to end: K6="sale.js fleet" runs another script or the fleet
	cargo build --release --locked -p daegi -p daegi-api -p daegi-scheduler
	k6/run.sh $(or $(K6),spike.js)

# Quick starts matter to tests, speed to a benchmark: KAFKA_OPTS come after the broker's own options.
bench-kafka: tools ## relay and item sync beside a bare producer and consumer
	KAFKA_OPTS="-XX:TieredStopAtLevel=4 -Xmx1g" cargo run --release --locked -p daegi-bench -- kafka $(BENCH_ARGS)

manifests: ## render infra/k8s anew, after a change of the chart
	@infra/tools/ship.sh
	cd infra/check && PATH=$$PATH:../../target/ship/bin go test -run Manifests -update .

docs: ## write docs/CONFIGURATION.md anew, after a change of the options
	cargo build --locked -p daegi -p daegi-api
	cd infra/check && BINARIES=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug go test -count=1 -run Configuration ./docs -update

images: ## the commands of every stage of the Dockerfile, run without Docker in a clean directory: PROFILE=dev is faster
	infra/docker/rehearse.sh

page: ## bundle the waiting page and the console anew, after a change in web/ or sdk/
	@infra/tools/node.sh
	npm run --silent build

lint: ## formatting, clippy and docs, warnings are errors
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

audit: ## known vulnerabilities, licences and sources of everything that is shipped
	infra/tools/audit.sh

fmt: ## format everything
	cargo fmt --all

tools: ## what the tests need beside cargo
	@infra/tools/redis.sh
	@infra/kafka/tools.sh
	@infra/tools/node.sh
	@infra/tools/browser.sh
	@infra/tools/ship.sh
