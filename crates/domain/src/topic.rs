//! The topics. No other file knows a topic's name.

use std::fmt;

/// What a topic is for. Its default name is also the type of the events in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// In, compacted: product services say what an item is now.
    ItemChanged,
    /// In: order services say how an order ended.
    OrderClosed,
    /// Out: who was let in.
    TokenActivated,
    /// Out: how a ticket ended.
    TokenClosed,
}

/// A name that Kafka takes and that leaves room for `.dlq`: 1–245 of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicName(String);

/// What the topics are called here. No two have the same name, dead letters included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    names: [TopicName; 4],
}

/// Kafka would refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 245 of A-Z a-z 0-9 . _ - and not only dots")]
pub struct TopicNameError;

/// Whoever reads one would read the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must not be the name of another topic, nor of dead letters")]
pub struct TopicTaken(pub Topic);

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ItemChanged, Self::OrderClosed, Self::TokenActivated, Self::TokenClosed];

    /// Those that daegi reads.
    pub const IN: [Self; 2] = [Self::ItemChanged, Self::OrderClosed];

    /// The type of its events, which stays the same under any name.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::ItemChanged => "item.changed",
            Self::OrderClosed => "order.closed",
            Self::TokenActivated => "token.activated",
            Self::TokenClosed => "token.closed",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.event_type())
    }
}

impl TopicName {
    /// Takes a name that Kafka takes.
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
    /// The defaults, with other names for some of them.
    pub fn renamed(
        names: impl IntoIterator<Item = (Topic, TopicName)>,
    ) -> Result<Self, TopicTaken> {
        let mut topics = Self::default();
        for (topic, name) in names {
            topics.names[topic as usize] = name;
        }
        match Topic::ALL.into_iter().find(|topic| topics.is_taken(*topic)) {
            Some(topic) => Err(TopicTaken(topic)),
            None => Ok(topics),
        }
    }

    fn is_taken(&self, topic: Topic) -> bool {
        let name = self.name(topic);
        let by_another = |other: Topic| other != topic && self.name(other) == name;
        Topic::ALL.into_iter().any(by_another)
            || Topic::IN.into_iter().any(|other| self.dead_letters(other) == name)
    }

    /// The name of a topic.
    pub fn name(&self, topic: Topic) -> &str {
        &self.names[topic as usize].0
    }

    /// Where messages of a topic go that nobody can use.
    pub fn dead_letters(&self, topic: Topic) -> String {
        format!("{}.dlq", self.name(topic))
    }

    /// The topic of a name.
    pub fn named(&self, name: &str) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| self.name(*topic) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(topic: Topic, name: &str) -> Result<Topics, TopicTaken> {
        Topics::renamed([(topic, TopicName::parse(name).unwrap())])
    }

    #[test]
    fn a_renamed_topic_keeps_the_type_of_its_events() {
        let topics = renamed(Topic::ItemChanged, "shop.items").unwrap();
        assert_eq!(topics.named("shop.items"), Some(Topic::ItemChanged));
        assert_eq!(topics.named("item.changed"), None);
        assert_eq!(topics.dead_letters(Topic::ItemChanged), "shop.items.dlq");
        assert_eq!(Topic::ItemChanged.event_type(), "item.changed");
    }

    #[test]
    fn names_that_kafka_refuses_or_that_are_taken_are_refused() {
        for bad in ["", "a b", "a/b", ".", "..", "한국", &"x".repeat(246)] {
            assert_eq!(TopicName::parse(bad), Err(TopicNameError), "{bad}");
        }
        let taken = |topic| Err(TopicTaken(topic));
        assert_eq!(renamed(Topic::ItemChanged, "token.closed"), taken(Topic::ItemChanged));
        assert_eq!(renamed(Topic::TokenClosed, "order.closed.dlq"), taken(Topic::TokenClosed));
        assert!(renamed(Topic::TokenClosed, "token.closed").is_ok());
    }
}
