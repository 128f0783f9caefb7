//! Memory usage of servers.

use crate::types::MemoryUsage;

/// Returns the usage of the fullest server of these `INFO memory`: by share of its limit, or by
/// size if it has none. New tickets are refused from `high_percent` of the limit on. Returns `None`
/// without servers.
pub(super) fn fullest(infos: &[String], high_percent: u8) -> Option<MemoryUsage> {
    let servers = infos.iter().map(|info| read(info, high_percent));
    servers.max_by(|one, other| fullness(one).total_cmp(&fullness(other)))
}

fn read(info: &str, high_percent: u8) -> MemoryUsage {
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    };
    let limit = field("maxmemory:").unwrap_or_default();
    MemoryUsage {
        used: field("used_memory:").unwrap_or_default(),
        limit,
        high: (u128::from(limit) * u128::from(high_percent) / 100) as u64,
    }
}

/// Returns the used share of the limit; without a limit, the used share of `u64::MAX` bytes.
fn fullness(memory: &MemoryUsage) -> f64 {
    let limit = if memory.limit == 0 { u64::MAX } else { memory.limit };
    memory.used as f64 / limit as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(used: u64, limit: u64) -> String {
        format!("# Memory\r\nused_memory:{used}\r\nused_memory_human:x\r\nmaxmemory:{limit}\r\n")
    }

    #[test]
    fn the_fullest_server_counts() {
        let infos = [info(50, 100), info(80, 90), info(70, 1000)];
        assert_eq!(fullest(&infos, 90), Some(MemoryUsage { used: 80, limit: 90, high: 81 }));
        assert_eq!(
            fullest(&[info(7, 0), info(9, 0)], 90),
            Some(MemoryUsage { used: 9, limit: 0, high: 0 })
        );
        assert_eq!(fullest(&[], 90), None);
    }
}
