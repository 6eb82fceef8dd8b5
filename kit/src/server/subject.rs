//! The common name of a certificate's subject.
//!
//! Only what a listener's own CA has signed is read here. A subject that is not understood has no name.

use x509_parser::parse_x509_certificate;

/// The last common name of the subject of a certificate in DER, as Go's `x509` takes it.
pub(super) fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let last = certificate.subject().iter_common_name().last()?;
    last.as_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::string::BmpString;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn of(names: &[(DnType, DnValue)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_common_name_counts_and_nothing_else() {
        let (group, name) = (DnType::OrganizationName, "system:kube-scheduler");
        let both =
            of(&[(group.clone(), "system:masters".into()), (DnType::CommonName, name.into())]);
        assert_eq!(common_name(&both).as_deref(), Some(name));
        assert_eq!(common_name(&of(&[(group, name.into())])), None);
        assert_eq!(common_name(&of(&[])), None);
    }

    #[test]
    fn what_is_not_understood_has_no_name() {
        let utf16 = DnValue::BmpString(BmpString::try_from("a").unwrap());
        assert_eq!(common_name(&of(&[(DnType::CommonName, utf16)])), None, "UTF-16");
        let whole = of(&[(DnType::CommonName, "system:kube-scheduler".into())]);
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None, "cut after {end}");
        }
        // Whatever a byte becomes, there is an answer.
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << bit;
                let _ = common_name(&bytes);
            }
        }
    }
}
