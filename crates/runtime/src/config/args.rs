//! Merges environment and command line into one list of arguments, the environment first so that
//! the command line overrides it.

use clap::Command;

use super::{ConfigError, Role};

const PREFIX: &str = "DAEGI_";

/// Returns the variable of an option: `foo-bar` is `DAEGI_FOO_BAR`.
pub(super) fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// Returns the arguments for clap: the program's name, the options of the environment, the command
/// line.
///
/// An empty variable counts as unset, which is what `${NAME:-}` in a compose file means.
pub(super) fn merged_args(
    command: &Command,
    role: Role,
    args: impl IntoIterator<Item = String>,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<String>, ConfigError> {
    let mut arguments = vec![role.binary().to_owned()];
    for (name, value) in env {
        if !name.starts_with(PREFIX) || is_k8s_service_var(&name) {
            continue;
        }
        let long = option_name(command, &name).ok_or(ConfigError::UnknownVariable(name))?;
        if !value.is_empty() {
            arguments.push(format!("--{long}={value}"));
        }
    }
    arguments.extend(args);
    Ok(arguments)
}

/// Returns the arguments of this process without its name. Bytes that are not UTF-8 become � and
/// are then rejected as an invalid value.
pub(super) fn process_args() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned())
}

/// Returns the environment of this process; names and values that are not UTF-8 do not fail.
pub(super) fn process_env() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        let name = name.to_string_lossy().into_owned();
        (name, value.to_string_lossy().into_owned())
    })
}

fn option_name<'a>(command: &'a Command, name: &str) -> Option<&'a str> {
    command.get_arguments().filter_map(|arg| arg.get_long()).find(|long| variable(long) == name)
}

/// Returns whether Kubernetes set the variable: it describes each service of a namespace in
/// variables of every pod, such as `DAEGI_API_SERVICE_HOST` and `DAEGI_API_PORT_8080_TCP_ADDR` for
/// a service named `daegi-api`.
fn is_k8s_service_var(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT")
        || has_port_and_protocol(name)
}

/// `…_PORT_<number>_TCP…`, also with UDP and SCTP.
fn has_port_and_protocol(name: &str) -> bool {
    name.match_indices("_PORT_").any(|(at, word)| {
        let rest = &name[at + word.len()..];
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let protocols = ["_TCP", "_UDP", "_SCTP"];
        after.len() < rest.len() && protocols.iter().any(|p| after.starts_with(p))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_links_of_kubernetes_are_recognised() {
        for name in [
            "DAEGI_SERVICE_HOST",
            "DAEGI_API_SERVICE_HOST",
            "DAEGI_API_SERVICE_PORT",
            "DAEGI_API_SERVICE_PORT_HTTP",
            "DAEGI_API_PORT",
            "DAEGI_API_PORT_8080_TCP",
            "DAEGI_API_PORT_8080_TCP_ADDR",
            "DAEGI_API_PORT_8080_UDP_PROTO",
        ] {
            assert!(is_k8s_service_var(name), "{name}");
        }
    }

    #[test]
    fn typos_are_not_mistaken_for_service_links() {
        for name in ["DAEGI_TICKS_MS", "DAEGI_PORTS", "DAEGI_API_PORT_X_TCP", "DAEGI_PORT_80"] {
            assert!(!is_k8s_service_var(name), "{name}");
        }
    }

    #[test]
    fn no_option_looks_like_a_service_link() {
        let command = super::super::options::command(Role::AllInOne);
        for long in command.get_arguments().filter_map(|arg| arg.get_long()) {
            assert!(!is_k8s_service_var(&variable(long)), "{long}");
        }
    }
}
