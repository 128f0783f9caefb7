//! Classifies user agents by the words in them, in one pass and without an allocation.
//!
//! The classes are few and coarse on purpose: they describe a crowd, and identify no one in it.

use daegi_domain::visit::{Browser, Device};

/// A longer user agent is classified by its beginning.
const MAX_LENGTH: usize = 512;

/// Returns the class of the device and the family of the browser.
pub(crate) fn classify(user_agent: &[u8]) -> (Device, Browser) {
    let mut words = Words::default();
    let text = &user_agent[..user_agent.len().min(MAX_LENGTH)];
    text.split(|byte| !byte.is_ascii_alphabetic()).for_each(|word| words.add(word));
    (words.device(), words.browser())
}

/// The words of a user agent that matter.
#[derive(Default)]
struct Words {
    bot: bool,
    phone: bool,
    tablet: bool,
    android: bool,
    mobile: bool,
    desktop: bool,
    firefox: bool,
    chrome: bool,
    safari: bool,
    /// A browser that also names the one it is built on.
    specific: Option<Browser>,
}

impl Words {
    fn add(&mut self, word: &[u8]) {
        match word {
            b"" => {}
            b"iPhone" | b"iPod" => self.phone = true,
            b"iPad" | b"Tablet" => self.tablet = true,
            b"Android" => self.android = true,
            b"Mobile" => self.mobile = true,
            b"Windows" | b"Macintosh" | b"X" | b"CrOS" | b"Linux" => self.desktop = true,
            b"Chrome" | b"Chromium" | b"CriOS" => self.chrome = true,
            b"Safari" => self.safari = true,
            b"Firefox" | b"FxiOS" => self.firefox = true,
            b"Edg" | b"EdgA" | b"EdgiOS" | b"Edge" => self.specific = Some(Browser::Edge),
            b"SamsungBrowser" => self.specific = Some(Browser::Samsung),
            b"Whale" => self.specific = Some(Browser::Whale),
            b"OPR" | b"Opera" | b"OPT" => self.specific = Some(Browser::Opera),
            b"KAKAOTALK" => self.specific = Some(Browser::KakaoTalk),
            b"NAVER" => self.specific = Some(Browser::Naver),
            b"HeadlessChrome" | b"PhantomJS" => self.bot = true,
            word => self.bot |= names_bot(word),
        }
    }

    fn device(&self) -> Device {
        if self.bot {
            Device::Bot
        } else if self.tablet || (self.android && !self.mobile) {
            Device::Tablet
        } else if self.phone || self.android || self.mobile {
            Device::Phone
        } else if self.desktop {
            Device::Desktop
        } else {
            Device::Other
        }
    }

    fn browser(&self) -> Browser {
        match self.specific {
            _ if self.bot => Browser::Other,
            Some(browser) => browser,
            None if self.firefox => Browser::Firefox,
            None if self.chrome => Browser::Chrome,
            None if self.safari => Browser::Safari,
            None => Browser::Other,
        }
    }
}

/// Whether a word names a crawler, such as `Googlebot`, `crawler` and `YandexSpider`.
fn names_bot(word: &[u8]) -> bool {
    let ends_with = |end: &[u8]| {
        let start = word.len().checked_sub(end.len());
        start.is_some_and(|start| word[start..].eq_ignore_ascii_case(end))
    };
    ends_with(b"bot") || ends_with(b"crawler") || ends_with(b"spider")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real user agents.
    const KNOWN: [(&str, Device, Browser); 20] = [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
            Device::Desktop,
            Browser::Chrome,
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
            Device::Desktop,
            Browser::Firefox,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
            Device::Desktop,
            Browser::Safari,
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
            Device::Desktop,
            Browser::Edge,
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Whale/4.29.282.14 Safari/537.36",
            Device::Desktop,
            Browser::Whale,
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0",
            Device::Desktop,
            Browser::Opera,
        ),
        (
            "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36",
            Device::Desktop,
            Browser::Chrome,
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
            Device::Phone,
            Browser::Safari,
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1",
            Device::Phone,
            Browser::Chrome,
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 NAVER(inapp; search; 2000; 12.7.5; 16PRO)",
            Device::Phone,
            Browser::Naver,
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 KAKAOTALK 11.3.0",
            Device::Phone,
            Browser::KakaoTalk,
        ),
        (
            "Mozilla/5.0 (Linux; Android 14; SM-S928N) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36",
            Device::Phone,
            Browser::Samsung,
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36",
            Device::Phone,
            Browser::Chrome,
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
            Device::Tablet,
            Browser::Chrome,
        ),
        (
            "Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1",
            Device::Tablet,
            Browser::Safari,
        ),
        (
            "Mozilla/5.0 (Android 13; Tablet; rv:132.0) Gecko/132.0 Firefox/132.0",
            Device::Tablet,
            Browser::Firefox,
        ),
        (
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            Device::Bot,
            Browser::Other,
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0 Safari/537.36",
            Device::Bot,
            Browser::Other,
        ),
        ("curl/8.5.0", Device::Other, Browser::Other),
        ("Java-http-client/21.0.4", Device::Other, Browser::Other),
    ];

    #[test]
    fn known_user_agents_have_their_class() {
        for (text, device, browser) in KNOWN {
            assert_eq!(classify(text.as_bytes()), (device, browser), "{text}");
        }
    }

    #[test]
    fn hostile_user_agents_are_other() {
        for text in [&b""[..], b"\xff\xfe", &[b'a'; 100_000], "안녕 iPhoneX".as_bytes()] {
            assert_eq!(classify(text), (Device::Other, Browser::Other));
        }
    }
}
