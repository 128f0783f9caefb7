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

/// What the topics are called here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    /// The name of [`Topic::ItemChanged`].
    pub item_changed: String,
    /// The name of [`Topic::OrderClosed`].
    pub order_closed: String,
    /// The name of [`Topic::TokenActivated`].
    pub token_activated: String,
    /// The name of [`Topic::TokenClosed`].
    pub token_closed: String,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ItemChanged, Self::OrderClosed, Self::TokenActivated, Self::TokenClosed];

    /// Those that daegi reads.
    pub const IN: [Self; 2] = [Self::ItemChanged, Self::OrderClosed];

    /// The type of its events, which stays the same under any name.
    #[must_use]
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

impl Default for Topics {
    fn default() -> Self {
        let name = |topic: Topic| topic.event_type().to_owned();
        Self {
            item_changed: name(Topic::ItemChanged),
            order_closed: name(Topic::OrderClosed),
            token_activated: name(Topic::TokenActivated),
            token_closed: name(Topic::TokenClosed),
        }
    }
}

impl Topics {
    /// The name of a topic.
    #[must_use]
    pub fn name(&self, topic: Topic) -> &str {
        match topic {
            Topic::ItemChanged => &self.item_changed,
            Topic::OrderClosed => &self.order_closed,
            Topic::TokenActivated => &self.token_activated,
            Topic::TokenClosed => &self.token_closed,
        }
    }

    /// Where messages of a topic go that nobody can use.
    #[must_use]
    pub fn dead_letters(&self, topic: Topic) -> String {
        format!("{}.dlq", self.name(topic))
    }

    /// The topic of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| self.name(*topic) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_topic_keeps_the_type_of_its_events() {
        let topics = Topics { item_changed: "shop.items".into(), ..Topics::default() };
        assert_eq!(topics.named("shop.items"), Some(Topic::ItemChanged));
        assert_eq!(topics.named("item.changed"), None);
        assert_eq!(topics.dead_letters(Topic::ItemChanged), "shop.items.dlq");
        assert_eq!(Topic::ItemChanged.event_type(), "item.changed");
    }
}
