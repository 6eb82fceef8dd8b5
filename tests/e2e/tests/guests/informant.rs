//! The informant stays small.

use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::time::Duration;
use windlass_e2e::{Setting, Stage, Vm, get_tcp};
use windlass_lab::wait;

const LIMIT: Duration = Duration::from_secs(300);
const MOST: u64 = 4 << 20;
const SAMPLES: u64 = 3_600;
const REQUESTS: usize = 1_000;
const REGISTRATIONS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn the_informant_stays_within_four_mebibytes() -> Result<()> {
    let setting = Setting { room: 4, trust: true };
    let mut stage = Stage::boot(setting, &[Vm::named("a")]).await?;
    stage.guest("a").ask("informant stop").await?;
    stage.guest("a").ask("informant start --sample-every 10").await?;

    for turn in 1..=REGISTRATIONS {
        stage.host.start().await?;
        let what = format!("registration {turn}");
        stage.until("a", &what, |view| view.has_session()).await?;
        if turn < REGISTRATIONS {
            stage.host.kill()?;
        }
    }
    let informant = stage.guest("a").informant();
    for _ in 0..REQUESTS {
        assert_eq!(get_tcp(informant, "/metrics").await?.status, 200);
    }
    let samples = async || samples(informant).await.map_err(std::io::Error::other);
    wait::until("samples", LIMIT, samples, |samples| *samples >= SAMPLES).await?;

    let inside = stage.view("a").await.inside.unwrap();
    eprintln!("    resident: {:?}, peak: {:?}", inside.informant_resident, inside.informant_peak);
    assert!(inside.informant_peak.unwrap() <= MOST, "{inside:?}");
    assert_eq!(inside.informants_ended, 0);
    stage.close().await?;
    Ok(())
}

/// How often the informant has looked at memory.
async fn samples(informant: SocketAddr) -> Result<u64> {
    let page = get_tcp(informant, "/metrics").await?.body;
    let name = "windlass_informant_samples_total ";
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.with_context(|| page.clone())?.parse()?)
}
