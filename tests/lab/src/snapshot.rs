//! Booted guests on disk, so that an emulated boot is paid for once.
//!
//! A snapshot is QEMU's migration stream of a guest whose load program is about to serve and
//! whose informant was not started yet; what a clone shares with its siblings is the kernel's
//! state (boot id, seeds), nothing of Windlass. The name is a hash of everything that the
//! guest was made of, but for the informant's versions: a clone is told of these. A snapshot that does not come back to life is removed, and the guest
//! booted cold.

use crate::spec::Wiring;
use crate::{Accel, Guest, GuestSpec, Lab, LabError, wait};
use serde_json::json;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What the load program says on the console before it serves.
const WORD: &str = "LAB-SERVING";

/// How long boot and saving may take.
const LIMIT: Duration = Duration::from_secs(180);

/// How often one is made, if the clock of its guest is wrong.
const TRIES: usize = 5;

/// How long the clock of a guest is compared with the host's.
const COMPARED: Duration = Duration::from_secs(1);

/// How fast the clock of a guest may be: figures take a while on a busy host.
const FAIR: RangeInclusive<f64> = 0.5..=2.0;

/// Snapshots that are kept; each has some 80 MiB.
const KEPT: usize = 6;

/// The snapshot for this spec, made if it is not there; `None` where a boot is quick anyway.
pub(crate) async fn of(lab: &Lab, spec: &GuestSpec) -> Result<Option<PathBuf>, LabError> {
    match lab.accel() {
        Accel::Kvm => return Ok(None),
        Accel::Tcg => {}
    }
    let spec = &common(spec);
    let folder = lab.snapshots();
    let file = |path: &Path, source| LabError::File { path: path.to_owned(), source };
    fs::create_dir_all(folder).map_err(|source| file(folder, source))?;
    let path = folder.join(name(lab, spec)?);
    if path.is_file() {
        return Ok(Some(path));
    }
    let lock = path.with_extension("lock");
    let held = File::create(&lock).map_err(|source| file(&lock, source))?;
    let taken = tokio::task::spawn_blocking(move || held.lock().map(|()| held)).await;
    let _held = taken.map_err(std::io::Error::other).and_then(|held| held);
    if !path.is_file() {
        tidy(folder);
        make(lab, spec, &path).await?;
    }
    // Whoever waits for the lock has the file open.
    let _left = fs::remove_file(&lock);
    Ok(Some(path))
}

/// Makes a snapshot whose guest's clock is right. On a host that is crowded the guest's kernel may find at its boot that
/// its processor is several times as slow as it is; from then on its clock runs as many times too fast, in every clone.
async fn make(lab: &Lab, spec: &GuestSpec, path: &Path) -> Result<(), LabError> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut fast = 0.0;
    for _ in 0..TRIES {
        save(lab, spec, &fresh).await?;
        fast = clock(&Guest::from_snapshot(lab, spec.clone(), &fresh).await?).await?;
        if FAIR.contains(&fast) {
            let kept = fs::rename(&fresh, path);
            return kept.map_err(|source| LabError::File { path: path.to_owned(), source });
        }
    }
    let _gone = fs::remove_file(&fresh);
    let words = format!("runs {fast:.1} times as fast as the host's");
    Err(LabError::Broken { peer: "the clock of a guest".to_owned(), words })
}

/// How many times as fast as the host's the clock of a guest runs; 0 where it does not say.
async fn clock(guest: &Guest) -> Result<f64, LabError> {
    let (begin, before) = (Instant::now(), guest.inside().await?.uptime);
    tokio::time::sleep(COMPARED).await;
    let (took, after) = (begin.elapsed(), guest.inside().await?.uptime);
    let passed = before.zip(after).map_or(0.0, |(before, after)| after - before);
    Ok(passed / took.as_secs_f64())
}

async fn save(lab: &Lab, spec: &GuestSpec, fresh: &Path) -> Result<(), LabError> {
    let guest = Guest::start(lab, spec.clone())?;
    let look = async || match guest.exited() {
        Some(status) => Ok(Err(guest.ended(status))),
        None => Ok::<_, LabError>(Ok(guest.serial())),
    };
    let serving = |seen: &Result<String, LabError>| match seen {
        Ok(serial) => serial.contains(WORD),
        Err(_) => true,
    };
    wait::until(WORD, LIMIT, look, serving).await??;

    let monitor = guest.lab_monitor();
    monitor.execute("stop", json!({})).await?;
    let fast = json!({"max-bandwidth": 10_u64 << 30});
    monitor.execute("migrate-set-parameters", fast).await?;
    let target = format!("exec:cat > {}", quoted(fresh));
    monitor.execute("migrate", json!({"uri": target})).await?;
    let status = async || monitor.execute("query-migrate", json!({})).await;
    wait::until("snapshot", LIMIT, status, |answer| answer["status"] == "completed").await.map(drop)
}

/// What QEMU is to be told, so that it starts from a snapshot.
pub(crate) fn incoming(path: &Path) -> String {
    format!("exec:cat {}", quoted(path))
}

/// For the shell that QEMU calls.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The guest that everybody starts from who wants one like this. No monitor is any part of it.
fn common(spec: &GuestSpec) -> GuestSpec {
    let (name, reboots, monitors, versions) = ("snapshot".to_owned(), false, 0, None);
    GuestSpec { name, reboots, monitors, versions, group: false, ..spec.clone() }
}

fn name(lab: &Lab, spec: &GuestSpec) -> Result<String, LabError> {
    let nowhere = Path::new("");
    let (program, arguments) = spec.command_line(&Wiring {
        qemu: lab.qemu(),
        accel: lab.accel(),
        kernel: nowhere,
        image: nowhere,
        monitors: &[],
        serial: nowhere,
        address: Ipv4Addr::LOCALHOST,
        snapshot: None,
    });
    let mut hasher = DefaultHasher::new();
    for path in [&program, &lab.vmlinuz()] {
        let found =
            fs::metadata(path).map_err(|source| LabError::File { path: path.clone(), source })?;
        (path, found.len(), found.modified().ok()).hash(&mut hasher);
    }
    arguments.hash(&mut hasher);
    lab.image()?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Removes the oldest, so that there is room for one more.
fn tidy(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let age = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    let mut snapshots: Vec<(Option<SystemTime>, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none_or(|extension| extension == "new"))
        .map(|path| (age(&path), path))
        .collect();
    snapshots.sort();
    let surplus = (snapshots.len() + 1).saturating_sub(KEPT);
    for (_, path) in snapshots.into_iter().take(surplus) {
        // Somebody else may have been faster.
        let _left = fs::remove_file(path);
    }
}
