//! Which certificates a plugin makes for itself, and when: a CA, the plugin's own certificate, and its scheduler's.
//!
//! The shell says what three objects of the API server hold, and [`next`] gives the next write, or none. The *kept* object has the CA with
//! its key and the certificate that the plugin shows. The *bundle* has the CAs that agents and the scheduler trust. The
//! *client* object has the scheduler's certificate.
//!
//! ```text
//!   CA    ├── signs ──────────────────────────┬ two years left: a next CA is made ┤
//!   next                                      ├─ in the bundle for a year ─┬── signs ─────────►
//!   old                                                                    └ in the bundle until its end
//! ```
//!
//! - A CA signs nothing before it was in the bundle for a year, as long as the CA before it is valid. kube-scheduler reads its files once, at its
//!   start, and its certificate lasts a year: a scheduler that does not know the next CA by then has no valid certificate either.
//! - An old CA stays in the bundle until it ends.
//! - What a person made is never written. What the plugin made and a person broke is made anew.
//! - A clock that is behind makes nothing: certificates that are not yet valid are no reason to replace them.

use std::collections::BTreeSet;
use std::time::Duration;
use windlass_protocol::Moment;

const DAY: Duration = Duration::from_secs(86_400);
/// How long a CA is valid.
pub const CA_LASTS: Duration = DAY.saturating_mul(3_650);
/// The next CA is made when the CA that signs has no more than this left.
pub const CA_LEFT: Duration = DAY.saturating_mul(730);
/// The next CA is in the bundle for this long before it signs.
pub const CA_SHOWN: Duration = DAY.saturating_mul(365);
/// How long the plugin's certificate is valid; it is renewed after two thirds.
pub const SERVING_LASTS: Duration = DAY.saturating_mul(90);
/// How long the scheduler's certificate is valid; it is renewed after half, and the scheduler reads it at its next start.
pub const CLIENT_LASTS: Duration = DAY.saturating_mul(365);
/// A certificate is valid from this long before it is made: other clocks may be behind.
pub const BEFORE: Duration = Duration::from_secs(3_600);

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

/// By whom an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// By a plugin: its label says so.
    Plugin,
    /// By a person or another program.
    Person,
}

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<T> {
    /// It is not there.
    Absent,
    /// It cannot be used.
    Broken,
    /// It can be used.
    Is(T),
}

/// A CA whose key is there and fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Its certificate.
    pub id: Fingerprint,
    /// When it begins to be valid.
    pub from: Moment,
    /// When it ends.
    pub until: Moment,
}

/// A certificate whose key is there and fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Of the CAs of the kept object, the one that signed it.
    pub signer: Option<Fingerprint>,
    /// When it begins to be valid.
    pub from: Moment,
    /// When it ends.
    pub until: Moment,
    /// The hosts of a server, or the common name of a client.
    pub names: BTreeSet<String>,
}

/// The kept object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// By whom it was made.
    pub maker: Maker,
    /// The CA that signs.
    pub ca: Part<Authority>,
    /// The CA that signs after it.
    pub next: Part<Authority>,
    /// The CA that signed before; its key is not kept.
    pub old: Part<Authority>,
    /// What the plugin shows.
    pub serving: Part<Certificate>,
}

/// The bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// By whom it was made.
    pub maker: Maker,
    /// The CAs in it, in order.
    pub holds: Vec<Fingerprint>,
}

/// The object of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// By whom it was made.
    pub maker: Maker,
    /// What the scheduler shows.
    pub certificate: Part<Certificate>,
}

/// What the API server holds; `None`: there is no such object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// The kept object.
    pub kept: Option<Kept>,
    /// The bundle.
    pub bundle: Option<Bundle>,
    /// The object of the scheduler.
    pub client: Option<Client>,
}

/// For whom certificates are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// By these hosts the plugin is reached.
    pub hosts: BTreeSet<String>,
    /// The common name of the scheduler; `None`: it needs no certificate.
    pub scheduler: Option<String>,
}

/// The next write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// The kept object.
    Kept(Keeping),
    /// The bundle, so that it holds these.
    Bundle(Vec<Fingerprint>),
    /// The object of the scheduler, with a new certificate.
    Client,
}

/// What the kept object holds after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// The CA that signs.
    pub ca: Ca,
    /// The CA that signs after it.
    pub next: NextCa,
    /// The CA that signed before.
    pub old: OldCa,
    /// Whether the plugin's certificate is made anew.
    pub new_serving: bool,
}

/// Which CA signs after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ca {
    /// The same.
    Same,
    /// The next one.
    Next,
    /// A new one.
    New,
}

/// Which CA is the next after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCa {
    /// The same.
    Same,
    /// A new one.
    New,
    /// None.
    None,
}

/// Which CA is the old one after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldCa {
    /// The same.
    Same,
    /// The one that signed until then.
    Before,
    /// None.
    None,
}

/// The next write at this moment; `None`: all is as it should be, or a person's.
pub fn next(now: Moment, terms: &Terms, there: &There) -> Option<Write> {
    let Some(kept) = &there.kept else { return Some(Write::Kept(Keeping::NEW)) };
    if kept.maker == Maker::Person || kept.is_ahead_of(now) {
        return None;
    }
    let is_shown = |id| there.bundle.as_ref().is_some_and(|bundle| bundle.holds.contains(&id));
    let keeping = kept.keeping(now, terms, is_shown);
    if keeping != Keeping::SAME {
        return Some(Write::Kept(keeping));
    }
    let wanted = kept.trusted();
    match &there.bundle {
        Some(Bundle { maker: Maker::Person, .. }) => {}
        Some(bundle) if bundle.holds == wanted => {}
        Some(_) | None => return Some(Write::Bundle(wanted)),
    }
    let name = terms.scheduler.as_ref()?;
    let is_due = match &there.client {
        None => true,
        Some(Client { maker: Maker::Person, .. }) => false,
        Some(Client { certificate: Part::Is(certificate), .. }) => {
            let is_trusted = certificate.signer.is_some_and(|id| kept.trusted().contains(&id));
            !is_trusted || certificate.is_used_up(now, 1, 2) || !certificate.names.contains(name)
        }
        Some(Client { certificate: Part::Absent | Part::Broken, .. }) => true,
    };
    is_due.then_some(Write::Client)
}

/// For how long what is made now is valid, if the CA that signs it ends then.
pub fn valid(now: Moment, lasts: Duration, until: Moment) -> (Moment, Moment) {
    (now.before(BEFORE), now.after(lasts).min(until))
}

// === impl Kept ===

impl Kept {
    /// An object that is a person's: what is in it decides nothing.
    pub const fn of_a_person() -> Self {
        Self {
            maker: Maker::Person,
            ca: Part::Absent,
            next: Part::Absent,
            old: Part::Absent,
            serving: Part::Absent,
        }
    }

    /// The CAs that are in the bundle, the one that signs first.
    pub fn trusted(&self) -> Vec<Fingerprint> {
        [&self.ca, &self.next, &self.old]
            .into_iter()
            .filter_map(Part::get)
            .map(|it| it.id)
            .collect()
    }

    /// Whether the clock is behind the one by which the CAs were made.
    fn is_ahead_of(&self, now: Moment) -> bool {
        [&self.ca, &self.next].into_iter().filter_map(Part::get).any(|ca| now < ca.from)
    }

    fn keeping(
        &self,
        now: Moment,
        terms: &Terms,
        is_shown: impl Fn(Fingerprint) -> bool,
    ) -> Keeping {
        let old = match &self.old {
            Part::Absent => OldCa::Same,
            Part::Is(old) if now < old.until => OldCa::Same,
            Part::Is(_) | Part::Broken => OldCa::None,
        };
        let usable_next = self.next.get().filter(|next| now < next.until);
        let Some(ca) = self.ca.get().filter(|ca| now < ca.until) else {
            // Nothing is trusted any more: whatever can sign does so at once.
            let ca = if usable_next.is_some() { Ca::Next } else { Ca::New };
            return Keeping { ca, next: NextCa::None, old, new_serving: true };
        };
        let has_waited = |next: &&Authority| now >= next.from.after(BEFORE).after(CA_SHOWN);
        if usable_next.filter(has_waited).is_some_and(|next| is_shown(next.id)) {
            return Keeping {
                ca: Ca::Next,
                next: NextCa::None,
                old: OldCa::Before,
                new_serving: true,
            };
        }
        let is_last = ca.until.since(now) <= CA_LEFT;
        let next = match (&self.next, is_last) {
            (Part::Is(_), _) if usable_next.is_some() => NextCa::Same,
            (_, true) => NextCa::New,
            (Part::Absent, false) => NextCa::Same,
            (Part::Is(_) | Part::Broken, false) => NextCa::None,
        };
        let new_serving = self.serving.get().is_none_or(|serving| {
            serving.signer != Some(ca.id)
                || serving.is_used_up(now, 2, 3)
                || !terms.hosts.is_subset(&serving.names)
        });
        Keeping { ca: Ca::Same, next, old, new_serving }
    }
}

// === impl Keeping ===

impl Keeping {
    /// Everything is new.
    const NEW: Self = Self { ca: Ca::New, next: NextCa::None, old: OldCa::None, new_serving: true };

    const SAME: Self =
        Self { ca: Ca::Same, next: NextCa::Same, old: OldCa::Same, new_serving: false };
}

// === impl Certificate ===

impl Certificate {
    /// Whether this share of its time is over.
    fn is_used_up(&self, now: Moment, share: u32, of: u32) -> bool {
        now.since(self.from) >= self.until.since(self.from) / of * share
    }
}

// === impl Part ===

impl<T> Part<T> {
    /// What can be used.
    pub const fn get(&self) -> Option<&T> {
        match self {
            Self::Is(it) => Some(it),
            Self::Absent | Self::Broken => None,
        }
    }
}
