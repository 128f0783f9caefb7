//! Complaining once.

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
}
