//! The processes of `docker-compose.yml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use daegi_testkit::fleet::binary;
use daegi_testkit::{
    ChildProcess, Fleet, FleetProcess, Kafka, Redis, durable_redis_or_skip, free_port,
    kafka_or_skip, tool_or_skip,
};
use reqwest::Client;
use tempfile::TempDir;

use super::prometheus::Prometheus;

/// Compose service names and the binary of each.
const FLEET: [(&str, &str); 5] = [
    ("scheduler-1", "daegi-scheduler"),
    ("scheduler-2", "daegi-scheduler"),
    ("consumer", "daegi-consumer"),
    ("api-1", "daegi-api"),
    ("api-2", "daegi-api"),
];

/// All processes. Fields drop in order, so a process stops before the ones it uses.
pub(super) struct ComposeFleet {
    pub(super) http: Client,
    /// URLs of the proxy's two ports, `http://…`.
    pub(super) public: String,
    pub(super) internal: String,
    /// URL of the order service, `http://…`.
    pub(super) orders: String,
    pub(super) admin_token: String,
    pub(super) prometheus: Prometheus,
    _proxy: ChildProcess,
    _storefront: [ChildProcess; 2],
    pub(super) processes: BTreeMap<&'static str, FleetProcess>,
    environment: Vec<(String, String)>,
    pub(super) kafka: Kafka,
    pub(super) redis: Redis,
    _dir: TempDir,
}

impl ComposeFleet {
    /// Starts everything and waits until it is ready. Returns `None` if a tool is missing.
    pub(super) async fn start() -> Option<Self> {
        let (nginx, prometheus) = (tool_or_skip("nginx")?, tool_or_skip("prometheus")?);
        let (redis, kafka) = (durable_redis_or_skip().await?, kafka_or_skip().await?);
        let dir = tempfile::tempdir().unwrap();
        let environment = environment();
        let processes = processes(&redis, &kafka, &environment);
        for process in processes.values() {
            process.wait_ready().await;
        }
        let [public, internal, orders] = [free_port(), free_port(), free_port()];
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let admin_token = environment.iter().find(|(name, _)| name == "DAEGI_ADMIN_TOKEN");
        Some(Self {
            http: Client::new(),
            public: url(public),
            internal: url(internal),
            orders: url(orders),
            admin_token: admin_token.unwrap().1.clone(),
            prometheus: Prometheus::start(&prometheus, dir.path(), &processes),
            _proxy: proxy(&nginx, dir.path(), &processes, public, internal),
            _storefront: storefront(&kafka.bootstrap(), &url(public), orders),
            processes,
            environment,
            kafka,
            redis,
            _dir: dir,
        })
    }

    pub(super) fn process(&mut self, name: &str) -> &mut FleetProcess {
        self.processes.get_mut(name).unwrap()
    }

    /// Runs the image's health check.
    pub(super) fn healthcheck(&self, name: &str) -> ExitStatus {
        let (_, image) = FLEET.iter().find(|(service, _)| *service == name).unwrap();
        let internal = self.processes[name].internal.trim_start_matches("http://");
        let mut check = Command::new(binary(image));
        check.env_clear().envs(self.environment.iter().cloned()).arg("--healthcheck");
        check.env("DAEGI_INTERNAL_ADDR", internal).stderr(Stdio::null()).status().unwrap()
    }
}

/// Reads a file of the repository.
pub(super) fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// Replaces compose service names by the addresses of the processes.
pub(super) fn with_addresses(
    text: &str,
    processes: &BTreeMap<&'static str, FleetProcess>,
) -> String {
    let address = |url: &str| url.trim_start_matches("http://").to_owned();
    processes.iter().fold(text.to_owned(), |text, (name, process)| {
        text.replace(&format!("{name}:8080"), &address(&process.public))
            .replace(&format!("{name}:8081"), &address(&process.internal))
    })
}

/// Reads `x-environment` of the compose file, with its default values.
fn environment() -> Vec<(String, String)> {
    let compose = file("docker-compose.yml");
    let block = compose.lines().skip_while(|line| !line.starts_with("x-environment:")).skip(1);
    let block = block.take_while(|line| !line.is_empty()).map(str::trim);
    let pairs = block.filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        let default = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let default = default.and_then(|rest| rest.split_once(":-")).map(|(_, value)| value);
        (name.to_owned(), default.unwrap_or(value).to_owned())
    });
    let pairs: Vec<_> = pairs.collect();
    assert!(pairs.len() >= 6, "x-environment has fewer variables than expected: {pairs:?}");
    pairs
}

fn processes(
    redis: &Redis,
    kafka: &Kafka,
    environment: &[(String, String)],
) -> BTreeMap<&'static str, FleetProcess> {
    // An empty variable counts as unset, so ticks and leases have the defaults, as in compose.
    let fleet = Fleet::new(redis).env("DAEGI_TICK_MS", "").env("DAEGI_LEASE_MS", "");
    let fleet = environment.iter().fold(fleet, |fleet, (name, value)| fleet.env(name, value));
    let fleet = fleet.env("DAEGI_STORE", &redis.url()).env("DAEGI_KAFKA", &kafka.bootstrap());
    FLEET.iter().map(|(name, image)| (*name, fleet.start(image))).collect()
}

/// Starts nginx with the configuration of the container and free ports.
fn proxy(
    nginx: &Path,
    dir: &Path,
    processes: &BTreeMap<&'static str, FleetProcess>,
    public: u16,
    internal: u16,
) -> ChildProcess {
    let conf = with_upstreams(&file("infra/docker/nginx.conf"), processes)
        .replace("listen 8080", &format!("listen 127.0.0.1:{public}"))
        .replace("listen 8081", &format!("listen 127.0.0.1:{internal}"))
        .replace("/tmp/nginx.pid", &dir.join("nginx.pid").to_string_lossy());
    let path: PathBuf = dir.join("nginx.conf");
    fs::write(&path, conf).unwrap();
    // A single process, so that no worker outlives a kill.
    let mut command = Command::new(nginx);
    command.arg("-p").arg(dir).arg("-c").arg(path).args(["-g", "daemon off; master_process off;"]);
    command.spawn().unwrap().into()
}

/// Adds an upstream block for each name that Docker resolves to several processes. `max_fails=0` matches
/// nginx with resolved names: otherwise one 503 of each pod would make nginx answer 502 for 10 s.
fn with_upstreams(conf: &str, processes: &BTreeMap<&'static str, FleetProcess>) -> String {
    [("api", "8080"), ("api", "8081"), ("scheduler", "8081")].iter().fold(
        conf.to_owned(),
        |conf, (role, port)| {
            let upstream = format!("{role}_{port}");
            let servers: String =
                [1, 2].iter().map(|n| format!("server {role}-{n}:{port} max_fails=0;\n")).collect();
            let block =
                with_addresses(&format!("upstream {upstream} {{\n{servers}}}\n"), processes);
            assert!(
                conf.contains(&format!("{role}:{port};")),
                "the configuration has no {role}:{port}"
            );
            conf.replace(&format!("{role}:{port};"), &format!("{upstream};")).replacen(
                "http {\n",
                &format!("http {{\n{block}"),
                1,
            )
        },
    )
}

fn storefront(brokers: &str, api: &str, orders: u16) -> [ChildProcess; 2] {
    let listen = format!("127.0.0.1:{orders}");
    let start = |name: &str, args: &[&str]| -> ChildProcess {
        let mut command = Command::new(binary(name));
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap().into()
    };
    [
        start("product-service", &["--kafka", brokers, "--stock", "500"]),
        start("order-service", &["--kafka", brokers, "--api", api, "--listen", &listen]),
    ]
}
