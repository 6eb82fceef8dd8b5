//! The common name of a certificate's subject.
//!
//! Only what a listener's own CA has signed is read here. A subject that is not understood has no name; nothing of it
//! can panic.

/// The object identifier 2.5.4.3, as it is written.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;

/// The last common name of a subject, as Go's `x509` takes it; `subject` is the content of the sequence of names.
pub(super) fn common_name(mut subject: &[u8]) -> Option<&str> {
    let mut found = None;
    while !subject.is_empty() {
        let mut set = expect(&mut subject, SET)?;
        while !set.is_empty() {
            let mut pair = expect(&mut set, SEQUENCE)?;
            let kind = expect(&mut pair, OBJECT_IDENTIFIER)?;
            let (tag, text) = element(&mut pair)?;
            if kind == COMMON_NAME {
                let is_text = [UTF8_STRING, PRINTABLE_STRING, IA5_STRING].contains(&tag);
                found = Some(std::str::from_utf8(text).ok().filter(|_| is_text)?);
            }
        }
    }
    found
}

fn expect<'a>(from: &mut &'a [u8], wanted: u8) -> Option<&'a [u8]> {
    element(from).filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
}

/// The next element: its tag and its content.
fn element<'a>(from: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], rest) = from.split_first_chunk()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        // No name is that long.
        0x80 | 0x83.. => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        let length = if length < 0x80 { vec![length] } else { vec![0x81, length] };
        [&[tag], &length[..], content].concat()
    }

    fn name(kind: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let pair = [of(OBJECT_IDENTIFIER, kind), of(tag, text)].concat();
        of(SET, &of(SEQUENCE, &pair))
    }

    #[test]
    fn the_last_common_name_counts() {
        let organization = name(&[0x55, 0x04, 0x0a], UTF8_STRING, b"system:masters");
        let scheduler = name(&COMMON_NAME, PRINTABLE_STRING, b"system:kube-scheduler");
        let long = name(&COMMON_NAME, UTF8_STRING, &[b'x'; 100]);
        assert_eq!(common_name(&[]), None);
        assert_eq!(common_name(&organization), None);
        let both = [&organization[..], &scheduler].concat();
        assert_eq!(common_name(&both), Some("system:kube-scheduler"));
        assert_eq!(common_name(&[&both[..], &long].concat()).map(str::len), Some(100));
    }

    #[test]
    fn what_is_not_understood_has_no_name() {
        let whole = name(&COMMON_NAME, UTF8_STRING, b"system:kube-scheduler");
        for end in 1..whole.len() {
            assert_eq!(common_name(&whole[..end]), None, "cut after {end}");
        }
        assert_eq!(common_name(&name(&COMMON_NAME, UTF8_STRING, &[0xff])), None);
        assert_eq!(common_name(&name(&COMMON_NAME, 0x1e, b"\0a")), None, "UTF-16");
        assert_eq!(common_name(&[SET, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        // Whatever a byte becomes, there is an answer.
        for place in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = whole.clone();
                bytes[place] = byte;
                let _ = common_name(&bytes);
            }
        }
    }
}
