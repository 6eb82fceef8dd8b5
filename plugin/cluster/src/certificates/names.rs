//! What the objects with the plugin's own certificates are called, and their keys.

use std::collections::BTreeMap;

/// The Secret with the plugin's CA and certificate.
pub const KEPT: &str = "windlass-plugin-tls";
/// The ConfigMap with the CAs that agents and the scheduler trust.
pub const BUNDLE: &str = "windlass-plugin-ca";
/// The Secret with the scheduler's certificate.
pub const CLIENT: &str = "windlass-scheduler-tls";
/// The Service by which the leader is reached.
pub const SERVICE: &str = "windlass-plugin";

/// The label of an object that the plugin made, and its value.
pub const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass-plugin");

/// The CA that signs; of the bundle all CAs.
pub const CA: Names = Names { certificate: "ca.crt", key: "ca.key" };
/// The CA that signs after it.
pub const NEXT: Names = Names { certificate: "next-ca.crt", key: "next-ca.key" };
/// The certificate of the CA that signed before.
pub const OLD: &str = "old-ca.crt";
/// The certificate of the plugin, or of the scheduler.
pub const LEAF: Names = Names { certificate: "tls.crt", key: "tls.key" };

/// Under which keys a certificate and its key are.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The certificate's.
    pub certificate: &'static str,
    /// Its key's.
    pub key: &'static str,
}

/// What a Secret holds.
pub(super) type Data = BTreeMap<String, Vec<u8>>;
