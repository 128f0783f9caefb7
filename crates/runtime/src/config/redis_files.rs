use std::path::PathBuf;

use super::{ConfigError, StoreConfig};

/// Paths of the files that secure connections to Redis. Their content is not read at the start, because it
/// may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedisFiles {
    /// The CAs of the servers.
    pub ca: Option<PathBuf>,
    /// The certificate of this client.
    pub cert: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// The password.
    pub password: Option<PathBuf>,
}

impl RedisFiles {
    /// Rejects files that would be ignored: connections would be less secure than they look.
    pub(super) fn validated(self, store: &StoreConfig) -> Result<Self, ConfigError> {
        let url = store.redis().unwrap_or_default();
        let tls = [
            ("redis-ca", self.ca.is_some()),
            ("redis-cert", self.cert.is_some()),
            ("redis-key", self.key.is_some()),
        ];
        if !url.starts_with("rediss")
            && let Some((option, _)) = tls.into_iter().find(|(_, is_given)| *is_given)
        {
            return Err(ConfigError::invalid(option, "is for TLS, and --store is not rediss://"));
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => return Err(ConfigError::invalid("redis-cert", "needs --redis-key")),
            (None, Some(_)) => return Err(ConfigError::invalid("redis-key", "needs --redis-cert")),
            _ => {}
        }
        if self.password.is_some() && (url.is_empty() || has_password(url)) {
            let reason = "is for a --store in Redis without a password in its URL";
            return Err(ConfigError::invalid("redis-password-file", reason));
        }
        Ok(self)
    }
}

fn has_password(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    rest.rsplit_once('@').is_some_and(|(user_info, _)| user_info.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: [&str; 4], url: &str) -> Result<RedisFiles, ConfigError> {
        let [ca, cert, key, password] =
            names.map(|name| (!name.is_empty()).then(|| PathBuf::from(name)));
        let store = match url {
            "memory" => StoreConfig::Memory,
            url => StoreConfig::Redis(url.to_owned()),
        };
        RedisFiles { ca, cert, key, password }.validated(&store)
    }

    #[test]
    fn files_that_would_be_ignored_are_rejected() {
        let cases = [
            (["ca", "", "", ""], "redis://a", "redis-ca"),
            (["", "cert", "key", ""], "redis+cluster://a", "redis-cert"),
            (["ca", "cert", "", ""], "rediss://a", "redis-cert"),
            (["ca", "", "key", ""], "rediss+sentinel://a/m", "redis-key"),
            (["", "", "", "password"], "memory", "redis-password-file"),
            (["", "", "", "password"], "rediss://u:p@a", "redis-password-file"),
        ];
        for (names, url, expected) in cases {
            let error = files(names, url).unwrap_err();
            assert!(matches!(error, ConfigError::Invalid { ref option, .. } if option == expected));
        }
        for url in ["rediss://u@a", "rediss://a:6380", "rediss+cluster://u@a:1,b:2"] {
            assert!(files(["ca", "cert", "key", "password"], url).is_ok(), "{url}");
        }
        assert!(files(["", "", "", "password"], "redis://u@a").is_ok());
        assert!(files(["", "", "", ""], "memory").is_ok());
    }
}
