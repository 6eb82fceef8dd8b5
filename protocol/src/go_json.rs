//! JSON exactly as Go's `encoding/json` reads and writes it, for the reference's messages.
//!
//! A request is read as a stream: the first value counts, and the rest is ignored. A reply must be one
//! value and nothing else. Keys match in any case; unknown keys are ignored; the last of repeated keys
//! wins; a missing key or `null` leaves the zero value. Numbers stay text until the type of their field is
//! known, so they are never rounded. The only difference: values nested deeper than 512 are invalid (Go:
//! 10,000).
//!
//! `parse` builds the tree, `read` fills fields from it, `write` produces the text.

pub(crate) mod parse;
pub(crate) mod read;
pub(crate) mod write;

pub(crate) use parse::{Json, Parser, first, whole};
pub(crate) use read::{Path, Read, read_object, read_written, read_written_but};
pub(crate) use write::{Write, Writer, encode};

use crate::BadBody;

/// Reads the first value of a body into a message.
pub(crate) fn decode_first<T: Read + Default>(body: &[u8]) -> Result<T, BadBody> {
    fill(&first(body)?)
}

/// Reads a body that must be one value, as the reference's clients do.
pub(crate) fn decode_whole<T: Read + Default>(body: &[u8]) -> Result<T, BadBody> {
    fill(&whole(body)?)
}

pub(crate) fn fill<T: Read + Default>(json: &Json) -> Result<T, BadBody> {
    let mut message = T::default();
    message.read(&Path::Body, json)?;
    Ok(message)
}

/// Implements reading and writing of a message (with `read` or `write`: only that) from its keys in the order in
/// which they are written. `{ … }` in place of a field is an object whose keys belong to the same message.
macro_rules! keys {
    ($type:ty { $($keys:tt)* }) => {
        $crate::go_json::keys!(read $type { $($keys)* });
        $crate::go_json::keys!(write $type { $($keys)* });
    };

    (write $type:ty { $($keys:tt)* }) => {
        impl $crate::go_json::Write for $type {
            fn write(&self, out: &mut $crate::go_json::Writer) {
                out.object($crate::go_json::keys!(@write self [] $($keys)*));
            }
        }
    };

    (read $type:ty { $($keys:tt)* }) => {
        impl $crate::go_json::Read for $type {
            fn read(
                &mut self,
                at: &$crate::go_json::Path<'_>,
                json: &$crate::go_json::Json,
            ) -> Result<(), $crate::BadBody> {
                $crate::go_json::read_object(
                    at, json, $crate::go_json::keys!(@read self [] $($keys)*),
                )
            }

            fn read_written(&mut self, from: &mut $crate::go_json::Parser<'_>) -> Option<()> {
                $crate::go_json::read_written(from, $crate::go_json::keys!(@read self [] $($keys)*))
            }
        }
    };

    (@read $self:ident [$($done:tt)*]) => { &mut [$($done)*] };
    (@read $self:ident [$($done:tt)*] $key:literal: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::go_json::keys!(@read $self [
            $($done)*
            ($key, &mut $crate::go_json::read::Group(
                $crate::go_json::keys!(@read $self [] $($inner)*),
            ) as &mut dyn $crate::go_json::Read),
        ] $($($rest)*)?)
    };
    (@read $self:ident [$($done:tt)*] $key:literal: $($place:tt).+ $(, $($rest:tt)*)?) => {
        $crate::go_json::keys!(@read $self [
            $($done)* ($key, &mut $self.$($place).+ as &mut dyn $crate::go_json::Read),
        ] $($($rest)*)?)
    };

    (@write $self:ident [$($done:tt)*]) => { &[$($done)*] };
    (@write $self:ident [$($done:tt)*] $key:literal: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::go_json::keys!(@write $self [
            $($done)*
            ($key, &$crate::go_json::write::Group(
                $crate::go_json::keys!(@write $self [] $($inner)*),
            ) as &dyn $crate::go_json::Write),
        ] $($($rest)*)?)
    };
    (@write $self:ident [$($done:tt)*] $key:literal: $($place:tt).+ $(, $($rest:tt)*)?) => {
        $crate::go_json::keys!(@write $self [
            $($done)* ($key, &$self.$($place).+ as &dyn $crate::go_json::Write),
        ] $($($rest)*)?)
    };
}

pub(crate) use keys;
