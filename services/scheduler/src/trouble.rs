//! Complaining once.

use std::collections::BTreeSet;
use std::fmt::Display;

/// Trouble that lasts: logged when it begins, when it changes and when it is over, however often
/// it is met in between.
#[derive(Debug)]
pub(crate) struct Trouble {
    part: &'static str,
    latest: Option<String>,
}

impl Trouble {
    pub(crate) fn new(part: &'static str) -> Self {
        Self { part, latest: None }
    }

    /// Says whether this was news.
    pub(crate) fn met(&mut self, error: &impl Display) -> bool {
        let text = error.to_string();
        let news = self.latest.as_ref() != Some(&text);
        if news {
            tracing::warn!(part = self.part, error = text, "in trouble, trying again");
            self.latest = Some(text);
        }
        news
    }

    pub(crate) fn over(&mut self) {
        if self.latest.take().is_some() {
            tracing::info!(part = self.part, "out of trouble");
        }
    }
}

/// Trouble of work that is divided into partitions: one complaint for all of them, and it is
/// over when the last one is out of it.
#[derive(Debug)]
pub(crate) struct Troubles {
    trouble: Trouble,
    partitions: BTreeSet<u16>,
}

impl Troubles {
    pub(crate) fn new(part: &'static str) -> Self {
        Self { trouble: Trouble::new(part), partitions: BTreeSet::new() }
    }

    /// Says whether this was news.
    pub(crate) fn met(&mut self, partition: u16, error: &impl Display) -> bool {
        self.partitions.insert(partition);
        self.trouble.met(error)
    }

    /// Says whether that was the last.
    pub(crate) fn over(&mut self, partition: u16) -> bool {
        let last = self.partitions.remove(&partition) && self.partitions.is_empty();
        if last {
            self.trouble.over();
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_news_once_and_again_after_it_was_over() {
        let mut trouble = Trouble::new("test");
        assert!(trouble.met(&"no answer"));
        assert!(!trouble.met(&"no answer"));
        assert!(trouble.met(&"another answer"));
        trouble.over();
        assert!(trouble.met(&"another answer"));
    }

    #[test]
    fn trouble_of_several_partitions_is_news_once_and_over_with_the_last() {
        let mut troubles = Troubles::new("test");
        assert!(troubles.met(1, &"no answer"));
        assert!(!troubles.met(2, &"no answer"));
        assert!(!troubles.over(0), "one that was never in trouble");
        assert!(!troubles.over(1));
        assert!(troubles.over(2));
        assert!(troubles.met(1, &"no answer"));
    }
}
