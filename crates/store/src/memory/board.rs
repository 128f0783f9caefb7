use std::collections::{BTreeMap, VecDeque};

use daegi_domain::Millis;

use crate::model::Notice;
use crate::{JOURNAL_KEPT, NOTICE_KEEP_MS};

/// What operators changed and what processes say about themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    /// Newest first.
    journal: VecDeque<String>,
    notices: BTreeMap<String, (Millis, String)>,
}

impl Board {
    pub(super) fn write(&mut self, entry: &str) {
        self.journal.push_front(entry.to_owned());
        self.journal.truncate(JOURNAL_KEPT as usize);
    }

    pub(super) fn read(&self, limit: u32) -> Vec<String> {
        self.journal.iter().take(limit as usize).cloned().collect()
    }

    pub(super) fn post(&mut self, who: &str, text: &str, now: Millis) {
        self.notices.retain(|_, (at, _)| is_kept(*at, now));
        self.notices.insert(who.to_owned(), (now, text.to_owned()));
    }

    pub(super) fn notices(&self, now: Millis) -> Vec<Notice> {
        let kept = self.notices.iter().filter(|(_, (at, _))| is_kept(*at, now));
        let notice = |(who, (at, text)): (&String, &(Millis, String))| Notice {
            who: who.clone(),
            text: text.clone(),
            at: *at,
        };
        kept.map(notice).collect()
    }
}

fn is_kept(at: Millis, now: Millis) -> bool {
    at >= now.saturating_sub(NOTICE_KEEP_MS)
}
