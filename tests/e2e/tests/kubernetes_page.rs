//! The commands of `docs/kubernetes.md`, as a reader runs them, from a cluster without Windlass to one without Windlass again.
//!
//! Whatever the page says will be so is asked for by a command of the page itself, so a command that succeeds is what this shows. What cannot be
//! run here stands in blocks of `text`; each of them is argued in [`STAND_INS`].

use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use windlass_e2e::Platform;
use windlass_e2e::page::{Shell, blocks};

const PAGE: &str = "../../docs/kubernetes.md";

/// The namespace of the page's VMs.
const VMS: &str = "shop";

/// The port to which the page forwards the plugin's permits.
const FORWARDED: &str = "8443";

/// What is done in place of a block of `text`.
#[derive(Clone, Copy, Debug)]
enum StandIn {
    /// Nothing.
    Nothing,
    /// So many processes of this guest use a vCPU each.
    Load(&'static str, u32),
}

/// The blocks that are not run, by how they begin.
const STAND_INS: [(&str, StandIn); 6] = [
    // Pods run as processes of this machine, from no image.
    ("make images\n", StandIn::Nothing),
    // These are typed in guests, on which the test has no console: the lab's own program makes the load.
    ("db1# for _ in 1 2 3 4", StandIn::Load("db1", 4)),
    ("db1# killall", StandIn::Load("db1", 0)),
    ("db2# for _ in 1 2 3 4", StandIn::Load("db2", 4)),
    ("db2# killall", StandIn::Load("db2", 0)),
    // The static pod of a control plane's own scheduler is a file of its machine; `deploy/scheduler/own` has a test of its own.
    ("# /etc/kubernetes/manifests/kube-scheduler.yaml", StandIn::Nothing),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_does_what_the_page_says() -> Result<()> {
    let page = fs::read_to_string(PAGE)?;
    let platform = Platform::start(VMS).await?;
    let shell = reader(&platform)?;
    for block in blocks(&page)? {
        let start = Instant::now();
        let what = || format!("{PAGE}:{}:\n{}", block.line, block.text);
        match block.info.as_str() {
            "sh" => {
                let here = block.text.replace(FORWARDED, &platform.permits().to_string());
                let ran = shell.run(&here).await;
                let words = || format!("{}\n{}", what(), platform.last_words());
                println!("{}", ran.with_context(words)?);
            }
            "text" => stand_in(&platform, &block.text).await.with_context(what)?,
            other => bail!("a block of {other:?} is shown and not run: {}", what()),
        }
        let line = block.text.lines().next().unwrap_or_default();
        eprintln!("    {:5.1} s  {PAGE}:{} {line}", start.elapsed().as_secs_f64(), block.line);
    }
    Ok(())
}

async fn stand_in(platform: &Platform, text: &str) -> Result<()> {
    let found = STAND_INS.iter().find(|(begins, _)| text.starts_with(begins));
    match found.context("nothing says why this is not run")?.1 {
        StandIn::Nothing => Ok(()),
        StandIn::Load(vm, processes) => Ok(platform.booted(vm).await?.cpu(processes).await?),
    }
}

/// A shell in a folder that has what a release has, with `kubectl` and `windlass`.
fn reader(platform: &Platform) -> Result<Shell> {
    let folder = platform.folder().join("reader");
    let programs = folder.join("bin");
    fs::create_dir_all(&programs)?;
    let copied = Command::new("cp").args(["-r", "../../deploy"]).arg(&folder).status()?;
    anyhow::ensure!(copied.success(), "cp: {copied}");
    std::os::unix::fs::symlink(platform.windlass(), programs.join("windlass"))?;
    put_kubectl(&programs.join("kubectl"))?;
    let path = std::env::var("PATH")?;
    let variables = [
        ("PATH", format!("{}:{path}", programs.display())),
        ("KUBECONFIG", platform.kubeconfig().display().to_string()),
        ("HOME", folder.display().to_string()),
    ];
    Ok(Shell::new(&folder, &variables))
}

/// kubectl as it is, but for `port-forward`, which needs a container runtime: the port is that of the test's stand-in for the Service, and
/// the command succeeds where the Service has the port that it names.
fn put_kubectl(at: &Path) -> Result<()> {
    let kubectl = windlass_e2e::kubectl();
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in\n\
         *' port-forward service/windlass-plugin '*)\n\
         ports=$('{kubectl}' --namespace windlass get service windlass-plugin --output 'jsonpath={{.spec.ports[*].port}}')\n\
         case \" $ports \" in *\" ${{*##*:}} \"*) exec sleep 600 ;; esac\n\
         echo \"no port ${{*##*:}} in $ports\" >&2; exit 1 ;;\n\
         esac\n\
         exec '{kubectl}' \"$@\"\n",
        kubectl = kubectl.display(),
    );
    fs::write(at, script)?;
    fs::set_permissions(at, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
