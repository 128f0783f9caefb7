//! Checking passes and completing entries.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::request::Parts;
use daegi_domain::{ItemId, Millis};

use crate::carrier::{Brought, brought};
use crate::claims::Claims;
use crate::entry::Entry;
use crate::internal::Internal;
use crate::keys::Keys;
use crate::refusal::Refusal;

/// Tells the time in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Millis + Send + Sync>);

/// What a guard does when daegi cannot be asked for what it needs: its keys, before they were
/// had once, or whether a pass was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenAway {
    /// Nobody is let in who was not checked: 503.
    #[default]
    Refuse,
    /// Whoever brings a pass that could be one is let in: better too many people than none.
    LetIn,
}

/// What a guard is told. [`Setup::of`] has the defaults.
#[derive(Debug, Clone)]
pub struct Setup {
    /// daegi's public address as this service reaches it: its keys are there.
    pub room: String,
    /// daegi's public address as people reach it: the waiting page is there.
    pub pages: String,
    /// daegi's internal address. Needed to complete entries and to check online.
    pub internal: Option<String>,
    /// Also asks daegi whether the entry was completed, given back or taken away since.
    pub online: bool,
    /// What to do when daegi does not answer.
    pub when_away: WhenAway,
    /// By how much the clocks of daegi and this service may differ.
    pub clock_skew: Duration,
    /// How old the keys may be before they are fetched anew.
    pub refresh: Duration,
    /// The least time between two questions for keys, whatever passes people bring.
    pub pause: Duration,
    /// How long daegi may take to answer.
    pub timeout: Duration,
    /// The time.
    pub clock: Clock,
}

/// Why a guard cannot be made, or an entry not be completed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Completing and checking online need the internal listener.
    #[error("the guard was not told daegi's internal address")]
    NoInternal,
    /// The guard's own client speaks no TLS.
    #[error("{0} needs TLS, which the guard does not have: use http, or Guard::with_client")]
    NoTls(String),
    /// daegi does not answer, or answers with an error.
    #[error("daegi does not answer")]
    Away(#[from] reqwest::Error),
}

/// A request that the guard admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The entry of the pass that counts.
    pub entry: Entry,
    /// That pass, if the browser must keep it in the guard's cookie from now on.
    pub keep: Option<String>,
}

/// Lets in only who was let in by the waiting room. Cheap to clone; clones share their keys.
#[derive(Debug, Clone)]
pub struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keys: Keys,
    internal: Option<Internal>,
    setup: Setup,
}

impl Setup {
    /// A guard for the daegi at this public address, with every default.
    #[must_use]
    pub fn of(room: &str) -> Self {
        let room = room.trim_end_matches('/').to_owned();
        Self {
            pages: room.clone(),
            room,
            internal: None,
            online: false,
            when_away: WhenAway::default(),
            clock_skew: Duration::from_secs(5),
            refresh: Duration::from_secs(300),
            pause: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            clock: Clock::system(),
        }
    }
}

impl Guard {
    /// A guard that asks over plain HTTP. Nothing is fetched before the first pass comes.
    ///
    /// # Errors
    /// If it is to ask an `https` address, or to check online and does not know where.
    pub fn new(setup: Setup) -> Result<Self, Error> {
        let mut asked = std::iter::once(&setup.room).chain(&setup.internal);
        if let Some(address) = asked.find(|address| is_https(address)) {
            return Err(Error::NoTls(address.clone()));
        }
        // Part of the same company as daegi: no proxy in between.
        let http = reqwest::Client::builder().no_proxy().build()?;
        Self::with_client(setup, http)
    }

    /// A guard that asks by this client: one with TLS, with certificates of your own, or with a
    /// proxy.
    ///
    /// # Errors
    /// If it is to check online and does not know where.
    pub fn with_client(setup: Setup, http: reqwest::Client) -> Result<Self, Error> {
        if setup.online && setup.internal.is_none() {
            return Err(Error::NoInternal);
        }
        let keys = Keys::new(http.clone(), &setup);
        let internal =
            setup.internal.as_ref().map(|address| Internal::new(http, address, setup.timeout));
        Ok(Self(Arc::new(Inner { keys, internal, setup })))
    }

    /// Whether somebody with this pass is let in to `item`.
    ///
    /// # Errors
    /// If they are not, and why.
    pub async fn check(&self, item: &ItemId, pass: &str) -> Result<Entry, Refusal> {
        let entry = self.read(item, pass).await?;
        self.ask(&entry, pass).await?;
        Ok(entry)
    }

    /// Checks a request for `item` and decides which of its passes counts.
    ///
    /// A browser may bring two: one in its cookie and one in the address. A link must neither log a
    /// person out nor make them another person. So the cookie counts while it is good, unless the
    /// address brings a pass of the same user that expires later. A pass that does not count is
    /// not kept.
    ///
    /// # Errors
    /// If the request is refused, and why. Where both passes are refused: why the one in the address is.
    pub async fn admit(&self, parts: &Parts, item: &ItemId) -> Result<Admission, Refusal> {
        let (address, cookie) = match brought(parts, item) {
            Brought::Both { address, cookie } => (address, cookie),
            Brought::Kept(pass) => {
                return Ok(Admission { entry: self.check(item, pass).await?, keep: None });
            }
            Brought::InAddress(pass) => {
                let entry = self.check(item, pass).await?;
                return Ok(Admission { entry, keep: Some(pass.to_owned()) });
            }
        };
        let (new, kept) = (self.read(item, address).await, self.read(item, cookie).await);
        let prefers_address = match (&new, &kept) {
            (Ok(new), Ok(kept)) => new.user == kept.user && new.expires_at > kept.expires_at,
            (_, kept) => kept.is_err(),
        };
        let (new, kept) = ((new, address, true), (kept, cookie, false));
        let (first, second) = if prefers_address { (new, kept) } else { (kept, new) };
        match self.confirm(first).await {
            Err(Refusal::Revoked) if second.0.is_ok() => self.confirm(second).await,
            admission => admission,
        }
    }

    /// Asks about an entry that was read from a pass, and whether the browser must keep that pass.
    async fn confirm(
        &self,
        (entry, pass, keep): (Result<Entry, Refusal>, &str, bool),
    ) -> Result<Admission, Refusal> {
        let entry = entry?;
        self.ask(&entry, pass).await?;
        Ok(Admission { entry, keep: keep.then(|| pass.to_owned()) })
    }

    /// The entry that a pass is proof of, without an online check.
    async fn read(&self, item: &ItemId, pass: &str) -> Result<Entry, Refusal> {
        if pass.is_empty() {
            return Err(Refusal::Missing);
        }
        let kid = Claims::kid(pass)?;
        let (claims, genuine) = match self.0.keys.find(&kid).await {
            Ok(Some(key)) => (Claims::signed(pass, &key)?, true),
            Ok(None) => return Err(Refusal::Invalid),
            Err(_) if self.lets_in_unasked() => (Claims::unsigned(pass)?, false),
            Err(_) => return Err(Refusal::Unavailable),
        };
        claims.entry(item, genuine, self.now_ms(), self.0.setup.clock_skew)
    }

    /// The person is done, such as with their order: makes room for the next one. Completing twice
    /// is no mistake; answers whether this call ended the entry.
    ///
    /// # Errors
    /// If daegi cannot be reached. The entry then ends when the pass expires.
    pub async fn complete(&self, entry: &Entry) -> Result<bool, Error> {
        let internal = self.0.internal.as_ref().ok_or(Error::NoInternal)?;
        Ok(internal.complete(&entry.item, &entry.token()).await?)
    }

    /// Where people wait for this item.
    #[must_use]
    pub fn waiting_page(&self, item: &ItemId) -> String {
        format!("{}/wait/{item}", self.0.setup.pages.trim_end_matches('/'))
    }

    /// Offline is enough for most: a pass is short-lived. Online knows what happened since.
    async fn ask(&self, entry: &Entry, pass: &str) -> Result<(), Refusal> {
        let Some(internal) = self.0.internal.as_ref().filter(|_| self.0.setup.online) else {
            return Ok(());
        };
        match internal.is_inside(&entry.item, pass).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::Revoked),
            Err(error) => {
                tracing::warn!(%error, "the waiting room cannot be asked about a pass");
                if self.lets_in_unasked() { Ok(()) } else { Err(Refusal::Unavailable) }
            }
        }
    }

    fn lets_in_unasked(&self) -> bool {
        self.0.setup.when_away == WhenAway::LetIn
    }

    pub(crate) fn now_ms(&self) -> Millis {
        self.0.setup.clock.now_ms()
    }
}

fn is_https(address: &str) -> bool {
    address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

impl Clock {
    /// The clock of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Any other clock, such as one that a test turns.
    pub fn new(now_ms: impl Fn() -> Millis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub(crate) fn now_ms(&self) -> Millis {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now_ms())
    }
}
