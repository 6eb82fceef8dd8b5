//! What certificates say that were read of the API server, and what is wrong with those that cannot be used.
//!
//! Nothing of a key is told.

use super::names::{BUNDLE, CA, CLIENT, Data, KEPT, LEAF, NEXT, Names, OLD};
use rcgen::KeyPair;
use rcgen::PublicKeyData;
use ring::digest::{SHA256, digest};
use std::collections::BTreeSet;
use std::net::IpAddr;
use windlass_plugin_core::certificates::{Authority, Certificate, Fingerprint, Kept, Maker, Part};
use windlass_protocol::Moment;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

/// A part of an object that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    /// The object's name.
    pub(super) object: &'static str,
    /// The part's key.
    pub(super) key: &'static str,
    /// What is wrong.
    pub(super) why: String,
}

/// Reads an object at a moment, and notes what is wrong.
pub(super) struct Reader {
    object: &'static str,
    now: Moment,
    problems: Vec<Problem>,
}

/// The certificate in PEM that signed another, by its fingerprint.
type Signer = (Fingerprint, Pem);

// === impl Reader ===

impl Reader {
    /// Of the Secret that the plugin made.
    pub(super) fn kept(data: &Data, now: Moment) -> (Kept, Vec<Problem>) {
        let mut read = Self { object: KEPT, now, problems: Vec::new() };
        let (ca, next) = (read.authority(data, CA), read.authority(data, NEXT));
        let old = read.old(data);
        let serving = read.leaf(data, LEAF, &signers(data));
        (Kept { maker: Maker::Plugin, ca, next, old, serving }, read.problems)
    }

    /// The scheduler's certificate, signed by a CA of the Secret with this.
    pub(super) fn client(
        data: &Data,
        kept: &Data,
        now: Moment,
    ) -> (Part<Certificate>, Vec<Problem>) {
        let mut read = Self { object: CLIENT, now, problems: Vec::new() };
        let certificate = read.leaf(data, LEAF, &signers(kept));
        (certificate, read.problems)
    }

    /// The CAs in a bundle; none, if it cannot be read.
    pub(super) fn bundle(text: &str) -> (Vec<Fingerprint>, Vec<Problem>) {
        let mut read = Self { object: BUNDLE, now: Moment::default(), problems: Vec::new() };
        let all: Result<Vec<Pem>, _> = Pem::iter_from_buffer(text.as_bytes()).collect();
        match all {
            Ok(all) => (all.iter().map(|pem| id(&pem.contents)).collect(), read.problems),
            Err(_) => {
                read.wrong(CA.certificate, "is not PEM");
                (Vec::new(), read.problems)
            }
        }
    }

    fn authority(&mut self, data: &Data, names: Names) -> Part<Authority> {
        match self.pair(data, names, is_ca) {
            Part::Is((id, from, until, ())) => Part::Is(Authority { id, from, until }),
            Part::Absent => Part::Absent,
            Part::Broken => Part::Broken,
        }
    }

    fn old(&mut self, data: &Data) -> Part<Authority> {
        let Some(bytes) = data.get(OLD) else { return Part::Absent };
        let read = certificate(bytes).and_then(|pem| {
            let certificate = parse(&pem)?;
            let (from, until) = validity(&certificate);
            Ok(Authority { id: id(&pem.contents), from, until })
        });
        match read {
            Ok(authority) => Part::Is(authority),
            Err(why) => self.broken(OLD, why),
        }
    }

    fn leaf(&mut self, data: &Data, names: Names, signers: &[Signer]) -> Part<Certificate> {
        let read = self.pair(data, names, |certificate| {
            let is_of = |(_, signer): &&Signer| {
                parse(signer).is_ok_and(|ca| {
                    let by = ca.public_key();
                    certificate.verify_signature(Some(by)).is_ok()
                })
            };
            let signer = signers.iter().find(is_of).map(|(id, _)| *id);
            Ok((signer, names_of(certificate)))
        });
        match read {
            Part::Is((_, from, until, (signer, names))) => {
                Part::Is(Certificate { signer, from, until, names })
            }
            Part::Absent => Part::Absent,
            Part::Broken => Part::Broken,
        }
    }

    /// A certificate whose key fits: its fingerprint, its time, and what else is read of it.
    fn pair<T>(
        &mut self,
        data: &Data,
        names: Names,
        read: impl FnOnce(&X509Certificate<'_>) -> Result<T, &'static str>,
    ) -> Part<(Fingerprint, Moment, Moment, T)> {
        let (pem, key) = match (data.get(names.certificate), data.get(names.key)) {
            (None, None) => return Part::Absent,
            (None, Some(_)) => return self.broken(names.certificate, "is missing"),
            (Some(_), None) => return self.broken(names.key, "is missing"),
            (Some(pem), Some(key)) => (pem, key),
        };
        let pem = match certificate(pem) {
            Ok(pem) => pem,
            Err(why) => return self.broken(names.certificate, why),
        };
        let certificate = match parse(&pem) {
            Ok(certificate) => certificate,
            Err(why) => return self.broken(names.certificate, why),
        };
        let Some(key) = key_pair(key) else {
            return self.broken(names.key, "holds no private key in PEM");
        };
        if key.subject_public_key_info() != certificate.public_key().raw {
            return self.broken(names.key, &format!("does not go with {}", names.certificate));
        }
        let (from, until) = validity(&certificate);
        match read(&certificate) {
            Ok(more) => {
                if self.now >= until {
                    self.wrong(names.certificate, "has ended");
                }
                Part::Is((id(&pem.contents), from, until, more))
            }
            Err(why) => self.broken(names.certificate, why),
        }
    }

    fn broken<T>(&mut self, key: &'static str, why: &str) -> Part<T> {
        self.wrong(key, why);
        Part::Broken
    }

    fn wrong(&mut self, key: &'static str, why: &str) {
        self.problems.push(Problem { object: self.object, key, why: why.to_owned() });
    }
}

/// The certificates of all CAs of a Secret that can be read, in PEM: the one that signs first.
pub(super) fn bundle_of(data: &Data) -> Vec<u8> {
    let is_read = |pem: &&Vec<u8>| certificate(pem).is_ok_and(|pem| parse(&pem).is_ok());
    let all = [CA.certificate, NEXT.certificate, OLD].into_iter().filter_map(|name| data.get(name));
    all.filter(is_read).flatten().copied().collect()
}

/// A private key in PEM.
pub(super) fn key_pair(pem: &[u8]) -> Option<KeyPair> {
    KeyPair::from_pem(std::str::from_utf8(pem).ok()?).ok()
}

fn signers(data: &Data) -> Vec<Signer> {
    let names = [CA.certificate, NEXT.certificate, OLD];
    let all = names.into_iter().filter_map(|name| certificate(data.get(name)?).ok());
    all.map(|pem| (id(&pem.contents), pem)).collect()
}

/// The first certificate of a PEM file.
fn certificate(bytes: &[u8]) -> Result<Pem, &'static str> {
    let first = Pem::iter_from_buffer(bytes).next().and_then(Result::ok);
    first.filter(|pem| pem.label == "CERTIFICATE").ok_or("holds no certificate in PEM")
}

fn parse(pem: &Pem) -> Result<X509Certificate<'_>, &'static str> {
    pem.parse_x509().map_err(|_| "holds a certificate that cannot be read")
}

fn is_ca(certificate: &X509Certificate<'_>) -> Result<(), &'static str> {
    if certificate.is_ca() { Ok(()) } else { Err("is not the certificate of a CA") }
}

fn validity(certificate: &X509Certificate<'_>) -> (Moment, Moment) {
    let moment = |time: ASN1Time| {
        Moment::from_millis(u64::try_from(time.timestamp()).unwrap_or(0).saturating_mul(1000))
    };
    let validity = certificate.validity();
    (moment(validity.not_before), moment(validity.not_after))
}

/// The hosts that it is for, or else its common name.
fn names_of(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let hosts = certificate.subject_alternative_name().ok().flatten();
    let hosts = hosts.into_iter().flat_map(|hosts| &hosts.value.general_names);
    let text = |name: &GeneralName<'_>| {
        if let GeneralName::DNSName(name) = name {
            return Some((*name).to_owned());
        }
        let GeneralName::IPAddress(bytes) = name else { return None };
        let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
        let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
        address.ok().map(|address| address.to_string())
    };
    let common = certificate.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok().map(str::to_owned));
    hosts.filter_map(text).chain(common).collect()
}

fn id(der: &[u8]) -> Fingerprint {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, der).as_ref());
    Fingerprint(id)
}
