//! The host's sockets: which users may open them, and which limits they have.
//!
//! Access is a matter of file permissions: mode 0660 and the socket's group where there is such a
//! group, 0600 otherwise. A socket that a dead process left is replaced; one that answers is
//! not ours to take.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixListener;
use windlass_kit::program::Failure;
use windlass_kit::server::{Counts, Limits, bind_unix};

/// What a request may take, with its answer.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(15);

/// Listens at `path` for members of this group.
///
/// # Errors
/// Another process listens there, something that is no socket is in the way, or the folder
/// cannot be made or written to.
pub(crate) async fn listen(path: &Path, group: &str) -> Result<UnixListener, Failure> {
    let failed = |error: io::Error| {
        Failure::CannotCreate(format!("cannot serve the socket {}: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let listener = bind_unix(path, 0o600).await.map_err(failed)?;
    if let Some(group) = group_id(&fs::read_to_string("/etc/group").unwrap_or_default(), group) {
        chown(path, None, Some(group)).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(0o660)).map_err(failed)?;
    }
    Ok(listener)
}

/// A VM file as JSON is the largest body; a person types the commands.
pub fn limits(counts: Counts) -> Limits {
    Limits { body_size: 1 << 20, request_time: REQUEST_TIME, ..Limits::small(counts) }
}

fn group_id(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1))?.and_then(|id| id.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::GROUP;
    use windlass_testkit::Folder;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\nwindlassen:x:7:\nwindlass:x:998:ann,bob\n";
        assert_eq!(group_id(groups, GROUP), Some(998));
        assert_eq!(group_id("windlass:x:none:\n", GROUP), None);
        assert_eq!(group_id("", GROUP), None);
    }

    #[test]
    fn a_request_may_take_as_long_as_the_commands_reckon_with() {
        assert_eq!(limits(Counts::default()).request_time, REQUEST_TIME);
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_refused() {
        let dir = Folder::create().unwrap();
        let path = dir.path().join("run/host.sock");
        drop(listen(&path, GROUP).await.unwrap());
        let live = listen(&path, GROUP).await.unwrap();
        let error = listen(&path, GROUP).await.unwrap_err();
        assert!(error.to_string().contains("another process listens there"), "{error}");
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert!(mode == 0o600 || mode == 0o660, "{mode:o}");
        drop(live);
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_left_alone() {
        let dir = Folder::create().unwrap();
        let path = dir.path().join("host.sock");
        fs::write(&path, "precious").unwrap();
        let error = listen(&path, GROUP).await.unwrap_err();
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
