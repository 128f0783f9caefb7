//! Parses replies of `INFO`.

use std::collections::HashMap;

/// Returns the value of a field such as `process_id:42`.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = pairs.filter_map(|(key, value)| (key == name).then_some(value.trim()));
    values.next()
}

/// Returns calls by command, from lines such as `cmdstat_get:calls=3,usec=9,…`.
pub(super) fn calls(text: &str) -> HashMap<String, u64> {
    text.lines().filter_map(call).collect()
}

fn call(line: &str) -> Option<(String, u64)> {
    let (command, stats) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let calls = stats.split(',').find_map(|stat| stat.strip_prefix("calls="))?;
    Some((command.to_ascii_lowercase(), calls.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_calls_are_found_among_the_rest() {
        let text = "# Server\r\nredis_version:7.0.15\r\nprocess_id:42\r\n\
                    cmdstat_get:calls=3,usec=9,usec_per_call=3.00\r\n\
                    cmdstat_client|setinfo:calls=2,usec=1\r\n";
        assert_eq!(field(text, "process_id"), Some("42"));
        assert_eq!(field(text, "process"), None);
        let calls = calls(text);
        assert_eq!(calls["get"], 3);
        assert_eq!(calls["client|setinfo"], 2);
    }
}
