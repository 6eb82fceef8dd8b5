//! Tells the plugin why no permit is asked for some VMs, so that people who look there need not guess.
//!
//! A plugin of another kind refuses it, and is told again after a while: another may be in its place. Nothing depends on it, so a
//! failure is no warning: permits say whether the plugin answers.

use std::convert::Infallible;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use windlass_agent::{Agent, Remote};
use windlass_kit::watchdog::Pulse;
use windlass_protocol::plugin::{MOST_SPOKEN, Spoken};
use windlass_protocol::timing::ASK_EVERY;

/// Turns that are left out after a plugin has refused to be told: ten minutes.
const LEFT_OUT: u32 = 120;

/// Tells it until told to stop.
///
/// # Errors
/// None.
pub(crate) async fn run(
    agent: Agent,
    plugin: Arc<Remote>,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let (mut left_out, mut is_refused) = (0_u32, false);
    while pulse.rest("what the plugin is to be told", ASK_EVERY, &stop).await {
        if left_out > 0 {
            left_out -= 1;
            continue;
        }
        let vms = agent.told_unasked();
        for vms in vms.chunks(MOST_SPOKEN) {
            pulse.turn("the plugin, which is told of VMs");
            let answer = plugin.tell(&Spoken { vms: vms.to_vec() }).await;
            match answer {
                Ok((200, _)) => is_refused = false,
                // Whoever asks for permits is denied, too, and says so.
                Ok((401 | 403 | 500.., _)) => break,
                Ok((status, _)) => {
                    if !std::mem::replace(&mut is_refused, true) {
                        info!(status, "the plugin is not one that is told why a VM does not move");
                    }
                    left_out = LEFT_OUT;
                    break;
                }
                Err(why) => {
                    debug!(why, "the plugin was not told of VMs");
                    break;
                }
            }
        }
    }
    Ok(())
}
