//! Kafka topics. No other file contains a topic name.

use std::fmt;

/// A topic by purpose. Its default name is also the type of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Inbound, compacted: the current state of an item, from product services.
    ItemChanged,
    /// Inbound: how an order ended, from order services.
    OrderClosed,
    /// Outbound: admitted tickets.
    TokenActivated,
    /// Outbound: ended tickets.
    TokenClosed,
    /// Outbound: lines that opened, with the draw.
    LineOpened,
    /// Outbound: lines that closed.
    LineClosed,
    /// Outbound, compacted: the current settings of an item, which the consumer reads again after a data loss.
    ControlChanged,
}

/// A topic name that Kafka accepts, also with the suffix `.dlq`: 1–245 of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicName(String);

/// The configured names of all topics. They are distinct, dead-letter topics included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    names: [TopicName; 7],
}

/// The name is not valid in Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 245 of A-Z a-z 0-9 . _ - and not only dots")]
pub struct TopicNameError;

/// Two topics have one name, so that a consumer of one would read the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must not be the name of another topic, nor of dead letters")]
pub struct DuplicateTopicName(pub Topic);

impl Topic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ItemChanged,
        Self::OrderClosed,
        Self::TokenActivated,
        Self::TokenClosed,
        Self::LineOpened,
        Self::LineClosed,
        Self::ControlChanged,
    ];

    /// The topics that daegi consumes.
    pub const INBOUND: [Self; 2] = [Self::ItemChanged, Self::OrderClosed];

    /// The topics that daegi publishes.
    pub const OUTBOUND: [Self; 5] = [
        Self::TokenActivated,
        Self::TokenClosed,
        Self::LineOpened,
        Self::LineClosed,
        Self::ControlChanged,
    ];

    /// The topics that keep the latest record of each key.
    pub const COMPACTED: [Self; 3] = [Self::ItemChanged, Self::LineOpened, Self::ControlChanged];

    /// Returns the type of its events, which does not depend on the configured name.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::ItemChanged => "item.changed",
            Self::OrderClosed => "order.closed",
            Self::TokenActivated => "token.activated",
            Self::TokenClosed => "token.closed",
            Self::LineOpened => "line.opened",
            Self::LineClosed => "line.closed",
            Self::ControlChanged => "control.changed",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.event_type())
    }
}

impl TopicName {
    /// Parses a name that Kafka accepts.
    pub fn parse(text: &str) -> Result<Self, TopicNameError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let usable = (1..=245).contains(&text.len())
            && text.chars().all(allowed)
            && text.chars().any(|c| c != '.');
        if usable { Ok(Self(text.to_owned())) } else { Err(TopicNameError) }
    }
}

impl Default for Topics {
    fn default() -> Self {
        Self { names: Topic::ALL.map(|topic| TopicName(topic.event_type().to_owned())) }
    }
}

impl Topics {
    /// Returns the default names with these replaced.
    pub fn with_names(
        names: impl IntoIterator<Item = (Topic, TopicName)>,
    ) -> Result<Self, DuplicateTopicName> {
        let mut topics = Self::default();
        for (topic, name) in names {
            topics.names[topic as usize] = name;
        }
        match Topic::ALL.into_iter().find(|topic| topics.is_duplicate(*topic)) {
            Some(topic) => Err(DuplicateTopicName(topic)),
            None => Ok(topics),
        }
    }

    fn is_duplicate(&self, topic: Topic) -> bool {
        let name = self.name(topic);
        let by_another = |other: Topic| other != topic && self.name(other) == name;
        Topic::ALL.into_iter().any(by_another)
            || Topic::INBOUND.into_iter().any(|other| self.dead_letter_name(other) == name)
    }

    /// Returns the name of a topic.
    pub fn name(&self, topic: Topic) -> &str {
        &self.names[topic as usize].0
    }

    /// Returns the name of the topic for messages that cannot be processed.
    pub fn dead_letter_name(&self, topic: Topic) -> String {
        format!("{}.dlq", self.name(topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(topic: Topic, name: &str) -> Result<Topics, DuplicateTopicName> {
        Topics::with_names([(topic, TopicName::parse(name).unwrap())])
    }

    #[test]
    fn a_renamed_topic_keeps_the_type_of_its_events() {
        let topics = renamed(Topic::ItemChanged, "shop.items").unwrap();
        assert_eq!(topics.name(Topic::ItemChanged), "shop.items");
        assert_eq!(topics.dead_letter_name(Topic::ItemChanged), "shop.items.dlq");
        assert_eq!(Topic::ItemChanged.event_type(), "item.changed");
    }

    #[test]
    fn invalid_and_duplicate_names_are_refused() {
        for bad in ["", "a b", "a/b", ".", "..", "한국", &"x".repeat(246)] {
            assert_eq!(TopicName::parse(bad), Err(TopicNameError), "{bad}");
        }
        let taken = |topic| Err(DuplicateTopicName(topic));
        assert_eq!(renamed(Topic::ItemChanged, "token.closed"), taken(Topic::ItemChanged));
        assert_eq!(renamed(Topic::TokenClosed, "order.closed.dlq"), taken(Topic::TokenClosed));
        assert!(renamed(Topic::TokenClosed, "token.closed").is_ok());
    }
}
