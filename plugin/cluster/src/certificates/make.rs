//! Makes keys and certificates.

use super::names::{CA, Data, LEAF, NEXT, Names, OLD};
use super::read::key_pair;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use thiserror::Error;
use windlass_plugin_core::certificates::{
    CA_LASTS, CLIENT_LASTS, Ca, Keeping, NextCa, OldCa, SERVING_LASTS, valid,
};
use windlass_protocol::Moment;
use x509_parser::pem::Pem;

/// A certificate that could not be made.
#[derive(Debug, Error)]
#[error("a certificate cannot be made: {0}")]
pub(super) struct MakeError(String);

/// For what a certificate is.
#[derive(Clone, Copy)]
pub(super) enum Use<'a> {
    /// For a server of these hosts.
    Serving(&'a BTreeSet<String>),
    /// For a client of this common name.
    Client(&'a str),
}

/// A certificate and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

/// What the kept object holds after this write.
pub(super) fn kept(
    data: &Data,
    keeping: Keeping,
    hosts: &BTreeSet<String>,
    now: Moment,
) -> Result<Data, MakeError> {
    let mut made = data.clone();
    let ours =
        [CA.certificate, CA.key, NEXT.certificate, NEXT.key, OLD, LEAF.certificate, LEAF.key];
    for key in ours {
        made.remove(key);
    }
    let Keeping { ca, next, old, new_serving } = keeping;
    match ca {
        Ca::Same => copy(data, CA, &mut made, CA),
        Ca::Next => copy(data, NEXT, &mut made, CA),
        Ca::New => put(&mut made, CA, authority(now)?),
    }
    match next {
        NextCa::Same => copy(data, NEXT, &mut made, NEXT),
        NextCa::New => put(&mut made, NEXT, authority(now)?),
        NextCa::None => {}
    }
    let before = match old {
        OldCa::Same => data.get(OLD),
        OldCa::Before => data.get(CA.certificate),
        OldCa::None => None,
    };
    if let Some(before) = before {
        made.insert(OLD.to_owned(), before.clone());
    }
    if new_serving {
        let of = leaf(&made, Use::Serving(hosts), now)?;
        made.extend(of);
    } else {
        copy(data, LEAF, &mut made, LEAF);
    }
    Ok(made)
}

/// A certificate of this use and its key, signed by the CA of the kept object.
pub(super) fn leaf(kept: &Data, of: Use<'_>, now: Moment) -> Result<Data, MakeError> {
    let (pem, key) = (kept.get(CA.certificate), kept.get(CA.key));
    let (Some(pem), Some(key)) = (pem, key.and_then(|key| key_pair(key))) else {
        return Err(MakeError("the CA is not there".to_owned()));
    };
    let (_, ca) = x509_parser::pem::parse_x509_pem(pem).map_err(failed)?;
    let until = until(&ca)?;
    let issuer = Issuer::from_ca_cert_der(&ca.contents.as_slice().into(), key).map_err(failed)?;
    let (lasts, purpose, hosts, name) = match of {
        Use::Serving(hosts) => {
            let hosts: Vec<String> = hosts.iter().cloned().collect();
            (SERVING_LASTS, ExtendedKeyUsagePurpose::ServerAuth, hosts, "windlass-plugin")
        }
        Use::Client(name) => (CLIENT_LASTS, ExtendedKeyUsagePurpose::ClientAuth, Vec::new(), name),
    };
    let mut params = CertificateParams::new(hosts).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = times(now, lasts, until);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?.pem();
    let mut made = Data::new();
    put(&mut made, LEAF, Pair { certificate, key: key.serialize_pem() });
    Ok(made)
}

/// A new CA. No two have one name, so that a bundle of several leads to the right one.
fn authority(now: Moment) -> Result<Pair, MakeError> {
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::default();
    let number = fastrand::u64(..);
    params.distinguished_name.push(DnType::CommonName, format!("windlass-plugin CA {number:016x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = times(now, CA_LASTS, Moment::from_millis(u64::MAX));
    let certificate = params.self_signed(&key).map_err(failed)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

fn times<T: From<SystemTime>>(now: Moment, lasts: Duration, until: Moment) -> (T, T) {
    let (from, until) = valid(now, lasts, until);
    let time = |moment: Moment| {
        // Certificates count in whole seconds.
        T::from(SystemTime::UNIX_EPOCH + Duration::from_secs(moment.millis() / 1000))
    };
    (time(from), time(until))
}

fn until(ca: &Pem) -> Result<Moment, MakeError> {
    let ca = ca.parse_x509().map_err(failed)?;
    let seconds = u64::try_from(ca.validity().not_after.timestamp()).unwrap_or(0);
    Ok(Moment::from_millis(seconds.saturating_mul(1000)))
}

fn put(data: &mut Data, names: Names, pair: Pair) {
    data.insert(names.certificate.to_owned(), pair.certificate.into_bytes());
    data.insert(names.key.to_owned(), pair.key.into_bytes());
}

fn copy(from: &Data, of: Names, into: &mut Data, to: Names) {
    for (of, to) in [(of.certificate, to.certificate), (of.key, to.key)] {
        if let Some(bytes) = from.get(of) {
            into.insert(to.to_owned(), bytes.clone());
        }
    }
}

fn failed(error: impl std::fmt::Display) -> MakeError {
    MakeError(error.to_string())
}
