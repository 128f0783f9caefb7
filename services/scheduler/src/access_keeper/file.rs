//! The file of `DAEGI_BLOCKLIST`: CSV or JSON, read again when it changes.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use daegi_domain::{AccessRule, AccessSubject, Millis, NewAccessRule, RuleOrigin};
use daegi_store::{MAX_ACCESS_RULES, MAX_AGENT_RULES};

use crate::seed::{self, SeedError};

/// The largest file: 10,000 rules with long texts.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// A file of rules.
#[derive(Debug)]
pub struct BlocklistFile {
    path: PathBuf,
    /// Time of change and size of the last valid file.
    read: Option<(SystemTime, u64)>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum BlocklistError {
    #[error("{path} cannot be read: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} has {bytes} bytes, at most {MAX_BYTES} are read", path = path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{path}: {source}", path = path.display())]
    Invalid { path: PathBuf, source: SeedError },
    #[error("{path}: {at}: {reason}", path = path.display())]
    Rule { path: PathBuf, at: String, reason: String },
    #[error("{path} has {found} rules{what}, at most {max} are allowed", path = path.display())]
    TooMany { path: PathBuf, found: usize, what: &'static str, max: u32 },
}

impl BlocklistFile {
    /// A file that was not read yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: None }
    }

    /// Returns the rules if the file changed since it was read last. A file that cannot be used is read again each time.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn read_if_changed(
        &mut self,
        now: Millis,
    ) -> Result<Option<Vec<AccessRule>>, BlocklistError> {
        let unreadable = |source| BlocklistError::Read { path: self.path.clone(), source };
        let version =
            version(&fs::metadata(&self.path).map_err(unreadable)?).map_err(unreadable)?;
        if self.read == Some(version) {
            return Ok(None);
        }
        if version.1 > MAX_BYTES {
            return Err(BlocklistError::TooLarge { path: self.path.clone(), bytes: version.1 });
        }
        let text = fs::read_to_string(&self.path).map_err(unreadable)?;
        let rules = parse(&text, &self.path, now)?;
        self.read = Some(version);
        Ok(Some(rules))
    }
}

fn version(metadata: &Metadata) -> io::Result<(SystemTime, u64)> {
    Ok((metadata.modified()?, metadata.len()))
}

/// Parses CSV with the header `kind,userId,network,userAgent,itemId,reason,publicReason,expiresAt`, of which columns that no
/// rule uses may be missing, or a JSON array of objects with these names.
fn parse(text: &str, path: &Path, now: Millis) -> Result<Vec<AccessRule>, BlocklistError> {
    let invalid = |source| BlocklistError::Invalid { path: path.to_owned(), source };
    let entries: Vec<(String, NewAccessRule)> = seed::entries(text).map_err(invalid)?;
    let rules = entries.into_iter().map(|(at, new)| {
        let path = path.to_owned();
        new.rule(None, RuleOrigin::File, now).map_err(|error| BlocklistError::Rule {
            path,
            at,
            reason: error.to_string(),
        })
    });
    let rules: Vec<_> = rules.collect::<Result<_, _>>()?;
    let too_many = |found: usize, what, max: u32| {
        let path = path.to_owned();
        if found > max as usize {
            Err(BlocklistError::TooMany { path, found, what, max })
        } else {
            Ok(())
        }
    };
    let is_agent = |rule: &&AccessRule| matches!(rule.subject, AccessSubject::UserAgent(_));
    too_many(rules.len(), "", MAX_ACCESS_RULES)?;
    let agents = rules.iter().filter(is_agent).count();
    too_many(agents, " that match user agents", MAX_AGENT_RULES)?;
    Ok(rules)
}
