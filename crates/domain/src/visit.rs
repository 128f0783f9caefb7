//! What is counted about visits: labels of bounded sets, and their counts.
//!
//! A label has 16 bits: four for the dimension, twelve for the value. Nothing that a client sends becomes a label
//! as it is: countries and languages get no label beyond [`MAX_LABELS`] and then count as `other`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{Millis, varint};

/// How many labels of a minute or an hour the store keeps before further countries and languages count as `other`.
/// All other dimensions have 45 labels together.
pub const MAX_LABELS: usize = 64;

/// The dimensions whose values come from clients, by their numbers.
pub const OPEN_DIMENSIONS: [Dimension; 2] = [Dimension::Country, Dimension::Language];

/// The value of a dimension that stands for all values without a label of their own.
const OTHER: u16 = 0xfff;
/// The value of a dimension that stands for visits without a value.
const UNKNOWN: u16 = 0xffe;

/// Upper limits of the classes of page load times, in milliseconds. A last class has no limit.
pub const PAGE_LOAD_LIMITS_MS: [u32; 12] =
    [100, 250, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 20_000, 60_000];

/// Upper limits of the classes of times until a user left, in seconds. A last class has no limit.
pub const TIME_TO_LEAVE_LIMITS_SECONDS: [u32; 8] = [10, 30, 60, 180, 600, 1_800, 3_600, 10_800];

/// What a label describes. The number is part of stored labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Totals, by [`Total`].
    Total = 0,
    /// Classes of devices.
    Device = 1,
    /// Families of browsers.
    Browser = 2,
    /// How users came.
    Access = 3,
    /// Countries, as ISO 3166 alpha-2.
    Country = 4,
    /// Preferred languages, as ISO 639-1.
    Language = 5,
    /// Classes of page load times.
    PageLoad = 6,
    /// Classes of times until a user left.
    TimeToLeave = 7,
}

/// What is counted in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Total {
    /// New tickets.
    Visits = 0,
    /// Waiting pages that were served.
    PageViews = 1,
    /// Joins of users who have a ticket, and streams that continue after an interruption.
    Reconnects = 2,
    /// Tickets that their users gave up.
    Leaves = 3,
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $type {
            const NAMES: &[&str] = &[$($name),*];
        }
    };
}

named! {
    /// A class of devices. New variants go to the end, because their numbers are stored.
    Device {
        /// A computer.
        Desktop = "desktop",
        /// A phone.
        Phone = "phone",
        /// A tablet.
        Tablet = "tablet",
        /// A crawler or an automated browser that names itself.
        Bot = "bot",
        /// Anything else: a program, or no user agent.
        Other = "other",
    }
}

named! {
    /// A family of browsers. New variants go to the end, because their numbers are stored.
    Browser {
        /// Chrome and Chromium.
        Chrome = "chrome",
        /// Safari.
        Safari = "safari",
        /// Edge.
        Edge = "edge",
        /// Firefox.
        Firefox = "firefox",
        /// Samsung Internet.
        Samsung = "samsung",
        /// Whale.
        Whale = "whale",
        /// Opera.
        Opera = "opera",
        /// The browser of KakaoTalk.
        KakaoTalk = "kakaotalk",
        /// The browser of the Naver app.
        Naver = "naver",
        /// Anything else.
        Other = "other",
    }
}

named! {
    /// How a user came. New variants go to the end, because their numbers are stored.
    Access {
        /// The waiting page.
        Page = "page",
        /// The waiting page without scripts.
        Form = "form",
        /// A client library.
        Sdk = "sdk",
        /// The API.
        Api = "api",
    }
}

/// A stored label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VisitLabel(u16);

/// Counts of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitCounts(BTreeMap<VisitLabel, u64>);

/// How long one count of visits covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitStep {
    /// One minute; kept for [`VISIT_MINUTES_MS`].
    Minute,
    /// One hour; kept as long as the history of lines.
    Hour,
}

/// How long visits are kept by minute: 48 h.
pub const VISIT_MINUTES_MS: Millis = 48 * crate::history::HOUR_MS;

impl Dimension {
    const ALL: [Self; 8] = [
        Self::Total,
        Self::Device,
        Self::Browser,
        Self::Access,
        Self::Country,
        Self::Language,
        Self::PageLoad,
        Self::TimeToLeave,
    ];

    /// Returns the name in JSON and CSV.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Device => "device",
            Self::Browser => "browser",
            Self::Access => "access",
            Self::Country => "country",
            Self::Language => "language",
            Self::PageLoad => "pageLoadMs",
            Self::TimeToLeave => "timeToLeaveSeconds",
        }
    }

    const fn label(self, value: u16) -> VisitLabel {
        VisitLabel(((self as u16) << 12) | value)
    }

    /// Returns the label of all values without a label of their own.
    #[must_use]
    pub const fn other(self) -> VisitLabel {
        self.label(OTHER)
    }

    /// Returns the label of visits without a value.
    #[must_use]
    pub const fn unknown(self) -> VisitLabel {
        self.label(UNKNOWN)
    }
}

impl VisitLabel {
    /// The label of a country: two letters. Other texts, such as `T1`, are `other`; `XX` and no text are `unknown`.
    #[must_use]
    pub fn country(text: Option<&[u8]>) -> Self {
        match text {
            None | Some([] | [b'X' | b'x', b'X' | b'x']) => Dimension::Country.unknown(),
            Some(text) => Self::letters(Dimension::Country, text),
        }
    }

    /// The label of the preferred language of an `Accept-Language` header.
    #[must_use]
    pub fn language(header: Option<&[u8]>) -> Self {
        let text = header.unwrap_or_default();
        let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
        match &text[..end] {
            [] => Dimension::Language.unknown(),
            primary => Self::letters(Dimension::Language, primary),
        }
    }

    fn letters(dimension: Dimension, text: &[u8]) -> Self {
        match text {
            [first, second] if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() => {
                let letter = |byte: &u8| u16::from(byte.to_ascii_lowercase() - b'a');
                dimension.label(letter(first) * 26 + letter(second))
            }
            _ => dimension.other(),
        }
    }

    /// The label of a page load time.
    #[must_use]
    pub fn page_load(millis: u32) -> Self {
        Dimension::PageLoad.label(class(&PAGE_LOAD_LIMITS_MS, millis))
    }

    /// The label of a time until a user left.
    #[must_use]
    pub fn time_to_leave(millis: Millis) -> Self {
        let seconds = u32::try_from(millis / 1_000).unwrap_or(u32::MAX);
        Dimension::TimeToLeave.label(class(&TIME_TO_LEAVE_LIMITS_SECONDS, seconds))
    }

    /// Returns what the label describes; `None` for a label of a later release.
    #[must_use]
    pub fn dimension(self) -> Option<Dimension> {
        Dimension::ALL.get(usize::from(self.0 >> 12)).copied()
    }

    /// Returns the number of the value within its dimension.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0 & 0xfff
    }

    fn is_open(self) -> bool {
        self.dimension().is_some_and(|dimension| OPEN_DIMENSIONS.contains(&dimension))
    }

    /// Returns the name of the value in JSON and CSV. The name of a class of times is its upper limit.
    #[must_use]
    pub fn value_name(self) -> Cow<'static, str> {
        let value = usize::from(self.value());
        let listed = |names: &[&'static str]| names.get(value).copied().unwrap_or("other").into();
        let letters = |first: u8| {
            let letter = |value: usize| char::from(first + (value % 26) as u8);
            Cow::Owned(String::from_iter([letter(value / 26), letter(value)]))
        };
        let limit = |limits: &[u32]| {
            limits.get(value).map_or("more".into(), |limit| Cow::Owned(limit.to_string()))
        };
        match (self.value(), self.dimension()) {
            (OTHER, _) | (_, None) => "other".into(),
            (UNKNOWN, _) => "unknown".into(),
            (_, Some(Dimension::Total)) => listed(&["visits", "pageViews", "reconnects", "leaves"]),
            (_, Some(Dimension::Device)) => listed(Device::NAMES),
            (_, Some(Dimension::Browser)) => listed(Browser::NAMES),
            (_, Some(Dimension::Access)) => listed(Access::NAMES),
            (_, Some(Dimension::Country)) => letters(b'A'),
            (_, Some(Dimension::Language)) => letters(b'a'),
            (_, Some(Dimension::PageLoad)) => limit(&PAGE_LOAD_LIMITS_MS),
            (_, Some(Dimension::TimeToLeave)) => limit(&TIME_TO_LEAVE_LIMITS_SECONDS),
        }
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }
}

/// Returns the number of the class of a value.
fn class(limits: &[u32], value: u32) -> u16 {
    limits.partition_point(|limit| *limit < value) as u16
}

impl From<Total> for VisitLabel {
    fn from(total: Total) -> Self {
        Dimension::Total.label(total as u16)
    }
}

impl From<Device> for VisitLabel {
    fn from(device: Device) -> Self {
        Dimension::Device.label(device as u16)
    }
}

impl From<Browser> for VisitLabel {
    fn from(browser: Browser) -> Self {
        Dimension::Browser.label(browser as u16)
    }
}

impl From<Access> for VisitLabel {
    fn from(access: Access) -> Self {
        Dimension::Access.label(access as u16)
    }
}

impl VisitCounts {
    /// Counts a label without a limit of labels.
    pub fn add(&mut self, label: VisitLabel, count: u64) {
        *self.0.entry(label).or_default() += count;
    }

    /// Counts a label; a country or a language as `other` if there are [`MAX_LABELS`] labels without it.
    pub fn add_bounded(&mut self, label: VisitLabel, count: u64) {
        let is_full = label.is_open() && self.0.len() >= MAX_LABELS && !self.0.contains_key(&label);
        self.add(if is_full { VisitLabel(label.0 | OTHER) } else { label }, count);
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(label, count)| self.add(label, count));
    }

    /// Returns a count.
    #[must_use]
    pub fn get(&self, label: impl Into<VisitLabel>) -> u64 {
        self.0.get(&label.into()).copied().unwrap_or(0)
    }

    /// Whether there are no counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all counts, ordered by label.
    pub fn iter(&self) -> impl Iterator<Item = (VisitLabel, u64)> {
        self.0.iter().map(|(label, count)| (*label, *count))
    }

    /// Returns the counts of one dimension, ordered by value.
    pub fn of(&self, dimension: Dimension) -> impl Iterator<Item = (VisitLabel, u64)> {
        let labels = dimension.label(0)..=dimension.other();
        self.0.range(labels).map(|(label, count)| (*label, *count))
    }

    /// Parses stored counts: labels, each followed by its count. Returns `None` if they are not readable.
    #[must_use]
    pub fn parse(mut stored: &[u8]) -> Option<Self> {
        let mut counts = Self::default();
        while let Some((label, rest)) = stored.split_first_chunk() {
            stored = rest;
            counts.add(VisitLabel(u16::from_be_bytes(*label)), varint::take(&mut stored)?);
        }
        stored.is_empty().then_some(counts)
    }
}

impl FromIterator<(VisitLabel, u64)> for VisitCounts {
    fn from_iter<T: IntoIterator<Item = (VisitLabel, u64)>>(counts: T) -> Self {
        let mut all = Self::default();
        counts.into_iter().for_each(|(label, count)| all.add(label, count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(label: VisitLabel) -> (&'static str, String) {
        (label.dimension().unwrap().name(), label.value_name().into_owned())
    }

    #[test]
    fn labels_have_the_names_of_their_values() {
        for (label, dimension, value) in [
            (Total::Reconnects.into(), "total", "reconnects"),
            (Device::Tablet.into(), "device", "tablet"),
            (Browser::KakaoTalk.into(), "browser", "kakaotalk"),
            (Browser::Other.into(), "browser", "other"),
            (Access::Form.into(), "access", "form"),
            (VisitLabel::country(Some(b"KR")), "country", "KR"),
            (VisitLabel::country(Some(b"zw")), "country", "ZW"),
            (VisitLabel::country(Some(b"T1")), "country", "other"),
            (VisitLabel::country(Some(b"Korea")), "country", "other"),
            (VisitLabel::country(Some("한".as_bytes())), "country", "other"),
            (VisitLabel::country(Some(b"XX")), "country", "unknown"),
            (VisitLabel::country(None), "country", "unknown"),
            (VisitLabel::language(Some(b"ko-KR,ko;q=0.9")), "language", "ko"),
            (VisitLabel::language(Some(b"EN;q=0.1")), "language", "en"),
            (VisitLabel::language(Some(b"fil")), "language", "other"),
            (VisitLabel::language(Some(b"*")), "language", "unknown"),
            (VisitLabel::language(None), "language", "unknown"),
            (VisitLabel::page_load(0), "pageLoadMs", "100"),
            (VisitLabel::page_load(100), "pageLoadMs", "100"),
            (VisitLabel::page_load(101), "pageLoadMs", "250"),
            (VisitLabel::page_load(u32::MAX), "pageLoadMs", "more"),
            (VisitLabel::time_to_leave(59_999), "timeToLeaveSeconds", "60"),
            (VisitLabel::time_to_leave(u64::MAX), "timeToLeaveSeconds", "more"),
        ] {
            assert_eq!(names(label), (dimension, value.to_owned()));
        }
    }

    #[test]
    fn labels_beyond_the_limit_count_as_other_of_their_dimension() {
        let mut counts = VisitCounts::default();
        let languages = (0..200_u8).map(|n| [b'a' + n / 26, b'a' + n % 26]);
        let labels: Vec<_> = languages.map(|text| VisitLabel::language(Some(&text))).collect();
        labels.iter().for_each(|label| counts.add_bounded(*label, 2));
        assert_eq!(counts.iter().count(), MAX_LABELS + 1);
        let other = 2 * (200 - MAX_LABELS as u64);
        assert_eq!(counts.get(Dimension::Language.other()), other);
        counts.add_bounded(labels[0], 1);
        assert_eq!(counts.get(labels[0]), 3, "a known label is still counted");
        counts.add_bounded(Device::Phone.into(), 1);
        assert_eq!(counts.get(Device::Phone), 1, "a label of a closed dimension always has room");
    }

    #[test]
    fn counts_are_parsed_from_their_stored_form() {
        let label = VisitLabel::from(Device::Phone).to_bytes();
        let stored = [label[0], label[1], 0xac, 0x02, 0, 0, 7];
        let counts = VisitCounts::parse(&stored).unwrap();
        assert_eq!((counts.get(Device::Phone), counts.get(Total::Visits)), (300, 7));
        assert_eq!(VisitCounts::parse(&stored[..3]), None);
        assert_eq!(VisitCounts::parse(&[1]), None);
        assert_eq!(VisitCounts::parse(&[]), Some(VisitCounts::default()));
    }
}
