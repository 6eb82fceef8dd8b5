//! A control plane: etcd and an API server with RBAC, and what talks to them.
//!
//! Every program has its own data, ports and log in the control plane's folder, so that any number of them
//! run beside each other. [`ControlPlane::until`] ends its wait when one of these programs ends.

use crate::audit::{self, Asked};
use crate::identity::{self, Identity};
use crate::program::{Program, ports};
use crate::programs;
use http::Request;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use windlass_testkit::{Folder, wait::PATIENCE};

/// How often a control plane is started, if another process takes its ports meanwhile, or if it is not ready in time.
const TRIES: usize = 3;

/// A control plane takes 3 s to be ready, and several times that on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(40);

/// How the words of a wait in vain begin.
const NOT_IN_TIME: &str = "not so within";

/// Between two looks at something that is waited for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A control plane. It ends with its value, and with the test.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the folder, so that it ends before its files go.
    etcd: Mutex<Program>,
    api_server: Mutex<Program>,
    url: String,
    ports: [u16; 3],
    /// Whether the API server writes down what Windlass asks.
    is_audited: bool,
    folder: Folder,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts a control plane, and waits until it is ready.
    ///
    /// # Panics
    /// With what the programs said last, if one of them ends, or if they are not ready in time.
    pub async fn start() -> Self {
        Self::start_with(false).await
    }

    /// The same, and its API server writes down what the programs of Windlass ask of it: [`Self::asked`].
    ///
    /// # Panics
    /// As [`Self::start`] does.
    pub async fn start_audited() -> Self {
        Self::start_with(true).await
    }

    async fn start_with(is_audited: bool) -> Self {
        for _ in 1..TRIES {
            let plane = Self::launch(is_audited);
            match plane.readiness(READY_WITHIN).await {
                Ok(()) => return plane,
                Err(words) if words.contains("address already in use") => {}
                Err(words) if words.starts_with(NOT_IN_TIME) => eprintln!("{words}"),
                Err(words) => panic!("{words}"),
            }
        }
        let plane = Self::launch(is_audited);
        plane.readiness(PATIENCE).await.unwrap_or_else(|words| panic!("{words}"));
        plane
    }

    fn launch(is_audited: bool) -> Self {
        let folder = Folder::create().unwrap();
        let ports = ports();
        let etcd = Mutex::new(start_etcd(&folder, ports));
        let api_server = Mutex::new(start_api_server(&folder, ports, is_audited));
        let url = format!("https://127.0.0.1:{}", ports[2]);
        Self { etcd, api_server, url, ports, is_audited, folder }
    }

    /// Copies what the store has at this moment, for [`Self::go_back`].
    pub fn copy_store(&self) {
        let etcd = self.etcd();
        // What it wrote is there whether or not it goes on.
        etcd.signal("STOP");
        copy(&self.folder.at(STORE), &self.folder.at(COPY));
        etcd.signal("CONT");
    }

    /// Puts the copy of the store in its place, as a person does who restores a backup, and starts both programs again.
    ///
    /// # Panics
    /// With what the programs said last, if they are not ready in time.
    pub async fn go_back(&self) {
        {
            let (mut etcd, mut api_server) = (self.etcd(), self.api_server());
            api_server.kill();
            etcd.kill();
            fs::remove_dir_all(self.folder.at(STORE)).unwrap();
            copy(&self.folder.at(COPY), &self.folder.at(STORE));
            *etcd = start_etcd(&self.folder, self.ports);
            *api_server = start_api_server(&self.folder, self.ports, self.is_audited);
        }
        self.until("the API server is ready", async || self.ready().await).await;
    }

    /// Until the API server says that it is ready.
    async fn readiness(&self, within: Duration) -> Result<(), String> {
        let ca = self.folder.at(CERTIFICATE);
        self.look("the API server's certificate", within, async || {
            fs::read_to_string(&ca).map(drop).map_err(|error| error.to_string())
        })
        .await?;
        for identity in Identity::ALL {
            identity::put_kubeconfig(&self.folder, identity, &self.url, Some(&ca));
        }
        let client = self.client(Identity::Admin).await;
        self.look("the API server is ready", within, async || ready(&client).await).await
    }

    /// A client that is this identity. It is for the runtime of the test that asks for it.
    pub async fn client(&self, who: Identity) -> Client {
        Self::client_of(Kubeconfig::read_from(self.kubeconfig(who)).unwrap()).await
    }

    /// A client that shows this token.
    pub async fn client_with(&self, token: &str) -> Client {
        let mut config = Kubeconfig::read_from(self.kubeconfig(Identity::Stranger)).unwrap();
        for user in &mut config.auth_infos {
            user.auth_info.as_mut().unwrap().token = Some(token.to_owned().into());
        }
        Self::client_of(config).await
    }

    /// The file, of this name, by which a program shows this token.
    pub fn kubeconfig_with(&self, name: &str, token: &str) -> PathBuf {
        identity::put_token(&self.folder, &self.kubeconfig(Identity::Stranger), name, token)
    }

    async fn client_of(config: Kubeconfig) -> Client {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(config, &options).await.unwrap();
        // A test says what it expects, and wants no second try.
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// The file by which a program is this identity.
    pub fn kubeconfig(&self, who: Identity) -> PathBuf {
        self.folder.at(&identity::file(who))
    }

    /// Applies the manifests of a file or folder; of a folder with a `kustomization.yaml`, what that makes of them.
    ///
    /// # Panics
    /// With kubectl's words, if it refuses.
    pub async fn apply(&self, manifests: &Path) {
        let kustomized = manifests.join("kustomization.yaml").is_file();
        let how = if kustomized { "-k" } else { "-f" };
        self.kubectl(&["apply", "--server-side", how, manifests.to_str().unwrap()]).await;
    }

    /// Runs kubectl as the admin, and gives what it prints.
    ///
    /// # Panics
    /// With kubectl's words, if it fails.
    pub async fn kubectl(&self, args: &[&str]) -> String {
        let mut command = Command::new(programs::path("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig(Identity::Admin));
        command.arg("--cache-dir").arg(self.folder.at("kubectl")).args(args);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?}: {}\n{words}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether the API server says that it is ready.
    ///
    /// # Errors
    /// With the API server's words on why it is not.
    pub async fn ready(&self) -> Result<(), String> {
        ready(&self.client(Identity::Admin).await).await
    }

    /// Looks until there is what is looked for, and gives it.
    ///
    /// # Panics
    /// If one of the programs ends, or what is looked for is not there in time, with the look's last words.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
        self.look(what, PATIENCE, look).await.unwrap_or_else(|words| panic!("{words}"))
    }

    /// Looks until this program listens on a port of the loopback interface.
    ///
    /// # Panics
    /// With what it said last, if it ends; as [`Self::until`] does.
    pub(crate) async fn until_listens(&self, what: &str, program: &mut Program, port: u16) {
        self.until(what, async || {
            if let Some(complaint) = program.complaint() {
                panic!("{complaint}");
            }
            TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    async fn look<T>(
        &self,
        what: &str,
        within: Duration,
        mut look: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            let seen = match look().await {
                Ok(found) => return Ok(found),
                Err(seen) => seen,
            };
            if let Some(complaint) = self.complaint() {
                return Err(format!("while waiting for this: {what}\n{complaint}"));
            }
            if start.elapsed() > within {
                return Err(format!(
                    "{NOT_IN_TIME} {within:?}: {what}; last seen: {seen}\netcd:\n{}\nkube-apiserver:\n{}",
                    self.etcd().tail(),
                    self.api_server().tail()
                ));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Which of its programs has ended, how, and what it said last; nothing while they run.
    pub fn complaint(&self) -> Option<String> {
        let etcd = self.etcd().complaint();
        etcd.or_else(|| self.api_server().complaint())
    }

    /// How many requests of each kind the programs of Windlass have sent so far; none of a control plane that is not
    /// [audited](Self::start_audited).
    pub fn asked(&self) -> BTreeMap<Asked, u64> {
        audit::asked(&self.folder)
    }

    /// Its store.
    pub fn etcd(&self) -> MutexGuard<'_, Program> {
        self.etcd.lock().unwrap()
    }

    /// Its API server.
    pub fn api_server(&self) -> MutexGuard<'_, Program> {
        self.api_server.lock().unwrap()
    }

    /// Where the API server listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The control plane's own folder, for files of programs that run beside it.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// What etcd stores, and a copy of it, below the control plane's folder.
const STORE: &str = "etcd";
const COPY: &str = "etcd-copy";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn start_etcd(folder: &Folder, [client, peer, _]: [u16; 3]) -> Program {
    Program::start("etcd", folder.path(), etcd_args(folder, client, peer))
}

fn start_api_server(folder: &Folder, [client, _, secure]: [u16; 3], is_audited: bool) -> Program {
    let mut args = api_server_args(folder, client, secure);
    if is_audited {
        args.extend(audit::args(folder));
    }
    Program::start("kube-apiserver", folder.path(), args)
}

/// The pair that the API server makes for itself, below the control plane's folder.
const CERTIFICATE: &str = "certs/apiserver.crt";
const KEY: &str = "certs/apiserver.key";

async fn ready(client: &Client) -> Result<(), String> {
    let request = Request::get("/readyz").body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(text) if text == "ok" => Ok(()),
        Ok(text) => Err(text),
        Err(error) => Err(error.to_string()),
    }
}

fn etcd_args(folder: &Folder, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    [
        ("--data-dir", folder.at(STORE).display().to_string()),
        ("--listen-client-urls", client.clone()),
        ("--advertise-client-urls", client),
        ("--listen-peer-urls", peer.clone()),
        ("--initial-advertise-peer-urls", peer.clone()),
        ("--initial-cluster", format!("default={peer}")),
        // What a test stores need not outlive the machine.
        ("--unsafe-no-fsync", "true".to_owned()),
        ("--log-level", "warn".to_owned()),
    ]
    .map(|(flag, value)| format!("{flag}={value}"))
    .to_vec()
}

fn api_server_args(folder: &Folder, etcd: u16, secure: u16) -> Vec<String> {
    let tokens = folder.put("tokens.csv", identity::tokens());
    // Service accounts' tokens are signed by the pair that the API server makes for TLS.
    let key = folder.at(KEY).display().to_string();
    [
        ("--etcd-servers", format!("http://127.0.0.1:{etcd}")),
        ("--bind-address", "127.0.0.1".to_owned()),
        ("--advertise-address", "127.0.0.1".to_owned()),
        ("--secure-port", secure.to_string()),
        ("--cert-dir", folder.at("certs").display().to_string()),
        ("--service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("--service-account-key-file", key.clone()),
        ("--service-account-signing-key-file", key),
        ("--service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        // What each identity may do is what its roles say.
        ("--authorization-mode", "RBAC".to_owned()),
        ("--token-auth-file", tokens.display().to_string()),
        // No controller makes service accounts, or takes the taint of a new node away.
        ("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition".to_owned()),
        ("--allow-privileged", "true".to_owned()),
        ("--profiling", "false".to_owned()),
    ]
    .map(|(flag, value)| format!("{flag}={value}"))
    .to_vec()
}
