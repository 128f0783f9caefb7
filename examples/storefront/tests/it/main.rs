//! The two services as processes.

use std::process::Command;

/// docker-compose.yml passes these options.
#[test]
fn both_services_know_the_options_they_are_deployed_with() {
    let product = (env!("CARGO_BIN_EXE_product-service"), vec!["--kafka", "--stock"]);
    let order =
        (env!("CARGO_BIN_EXE_order-service"), vec!["--kafka", "--api", "--pages", "--listen"]);
    for (binary, options) in [product, order] {
        let help = Command::new(binary).arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for option in options {
            assert!(help.contains(option), "{binary} has no {option}: {help}");
        }
    }
}
