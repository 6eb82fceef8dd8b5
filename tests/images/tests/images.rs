//! The images as `dev/images` makes them, of programs that are built as tests are.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::json;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use windlass_images::elf;
use windlass_images::image::{Entry, Image, digest, entries, make};
use windlass_images::name_server::{self, RESOLVER};
use windlass_images::root::{Root, is_not_run};
use windlass_testkit::http::{self, Server};
use windlass_testkit::qmp::Machine;
use windlass_testkit::tls::Ca;
use windlass_testkit::{Process, wait};

/// Each program, the folder of its manifests, and the file with its pod.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("windlass-plugin", "../../deploy/kustomize/plugin", "deployment.yaml"),
    ("windlass-agent", "../../deploy/kustomize/agent", "daemonset.yaml"),
];
/// Where the manifests reach the plugin.
const PLUGIN: &str = "windlass-plugin.windlass.svc";
/// Where every cluster has its API server.
const API_SERVER: &str = "kubernetes.default.svc";
/// Where a pod finds the API server's CA and its token.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// An agent whose VMs are declared by files, but for the plugin.
const CONFIG: &str = "\
plugin_ca = \"/etc/windlass-plugin/ca.crt\"\nstate_dir = \"/run/state\"\n\
socket = \"/run/agent.sock\"\nvms_dir = \"/etc/windlass/vms.d\"\n\
admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
compute_unit = { cpu = 1, memory = \"256MiB\" }\n";
/// A VM without an informant, but for where its figures are.
const VM: &str = "\
qmp = \"/vm/a.sock\"\ninformant = \"127.0.0.1:9\"\nadvertise = \"127.0.0.1\"\n\
load_window = \"5s\"\n[min]\ncpu = 1\nmemory = \"256MiB\"\n[max]\ncpu = 2\nmemory = \"1GiB\"\n";
/// Its figures.
const METRICS: &str = "\
windlass_load{window=\"5s\"} 1.5\nwindlass_load{window=\"15s\"} 1.5\nwindlass_cpus_online 2\n\
windlass_memory_total_bytes 268435456\nwindlass_memory_available_bytes 201326592\n";

#[test]
fn an_image_has_one_static_program_and_nothing_else() {
    for (program, ..) in PROGRAMS {
        let image = Image::read(&archive(program));
        let layer = image.layer();
        let file = Entry {
            mode: "-r-xr-xr-x".to_owned(),
            owner: "0/0".to_owned(),
            time: "1970-01-01 00:00:00".to_owned(),
            path: program.to_owned(),
        };
        assert_eq!(entries(&layer), [file]);
        assert_eq!(image.config["rootfs"]["diff_ids"], json!([image.content()]));
        assert_eq!(image.blobs(), 3, "a manifest, a configuration, a layer");
        let root = Root::of(&image);
        let bytes = fs::read(root.path().join(program)).unwrap();
        assert_eq!(elf::needs(&bytes), 0, "{program}");
    }
}

#[test]
fn an_image_is_what_its_manifests_say() {
    for (program, folder, pod) in PROGRAMS {
        let image = Image::read(&archive(program));
        let manifests = fs::read_to_string(Path::new(folder).join("kustomization.yaml")).unwrap();
        let pod = fs::read_to_string(Path::new(folder).join(pod)).unwrap();
        let (name, tag) = (after(&manifests, "newName: "), after(&manifests, "newTag: "));
        assert_eq!((after(&pod, " image: "), name), (name, program));
        assert_eq!(tag, env!("CARGO_PKG_VERSION"));
        assert_eq!(image.docker[0]["RepoTags"], json!([format!("{name}:{tag}")]));
        let names = json!({
            "io.containerd.image.name": format!("docker.io/library/{name}:{tag}"),
            "org.opencontainers.image.ref.name": tag,
        });
        assert_eq!(image.descriptor["annotations"], names);
        for (from, blob) in [
            (&image.docker[0]["Config"], &image.manifest["config"]),
            (&image.docker[0]["Layers"][0], &image.manifest["layers"][0]),
        ] {
            let blob = blob["digest"].as_str().unwrap().replace(':', "/");
            assert_eq!(from, &json!(format!("blobs/{blob}")));
        }

        let user = format!("{}:{}", after(&pod, "runAsUser: "), after(&pod, "runAsGroup: "));
        let mut config = image.config["config"].clone();
        let labels = config["Labels"].take();
        let expected = json!({
            "User": user,
            // The manifests name the program alone.
            "Env": ["PATH=/"],
            "Entrypoint": [format!("/{}", after(&pod, "command: ").trim_matches(['[', ']']))],
            "WorkingDir": "/",
            "Labels": null,
        });
        assert_eq!((&config, user.as_str()), (&expected, "65532:65532"));
        let said = |label: &str| labels[format!("org.opencontainers.image.{label}")].clone();
        assert_eq!(["title", "version", "licenses"].map(said), [program, tag, "Apache-2.0"]);
        assert!(said("revision").is_string() && labels.as_object().unwrap().len() == 4);
        let built_for = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
        let built_for = json!({"architecture": built_for, "os": "linux"});
        assert_eq!(image.descriptor["platform"], built_for);
        for (key, value) in built_for.as_object().unwrap() {
            assert_eq!(&image.config[key], value);
        }
    }
}

#[test]
fn an_image_that_is_made_again_is_the_same() {
    let other = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("images-again");
    for again in make(&other) {
        let once =
            archive(again.file_name().unwrap().to_str().unwrap().trim_end_matches("-image.tar"));
        assert_eq!(digest(&again), digest(&once));
    }
}

#[test]
fn a_program_runs_as_its_user_where_nothing_else_is_and_writes_nothing() {
    if is_not_run("images: their programs run") {
        return;
    }
    for (program, ..) in PROGRAMS {
        let root = Root::of(&Image::read(&archive(program)));
        let before = root.files();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(root.run(&["--version"]), format!("{program} {version}"));
        assert_eq!(root.files(), before);
    }
}

/// The plugin has the file, the account and the name of the API server that its pod has.
#[test]
fn a_plugin_reaches_the_api_server_by_its_name() {
    if is_not_run("images: the plugin looks up names") {
        return;
    }
    let image = Image::read(&archive("windlass-plugin"));
    for names in [Names::Files, Names::Server] {
        let root = Root::of(&image);
        names.mount(&root, API_SERVER);
        let shipped = fs::read_to_string("../../deploy/kustomize/plugin/plugin.toml").unwrap();
        // Ports that others do not have.
        let ports = ["10297", "10305"].iter().fold(shipped, |text, port| text.replace(port, "0"));
        root.mount("etc/windlass/plugin.toml", &format!("{ports}permits = \"127.0.0.1:0\"\n"));
        root.mount(&format!("{ACCOUNT}/ca.crt"), Ca::new("cluster").pem());
        root.mount(&format!("{ACCOUNT}/token"), "token");
        root.mount(&format!("{ACCOUNT}/namespace"), "windlass");
        let before = root.files();
        let (listener, port) = listen();
        let at = [("KUBERNETES_SERVICE_HOST", API_SERVER), ("KUBERNETES_SERVICE_PORT", &port)];
        let pod = [("K8S_POD_NAME", "windlass-plugin-0"), at[0], at[1]];
        let args = ["--config=/etc/windlass/plugin.toml", "--log-format=json"];
        let plugin = root.start(&args, &pod);
        is_greeted(&listener, API_SERVER, plugin);
        assert_eq!(root.files(), before);
    }
}

/// The agent has a VM that uses more than it has, so that it asks for a permit.
#[test]
fn an_agent_reaches_the_plugin_by_its_name() {
    if is_not_run("images: the agent looks up names") {
        return;
    }
    let image = Image::read(&archive("windlass-agent"));
    let shipped = fs::read_to_string("../../deploy/kustomize/agent/agent.toml").unwrap();
    assert!(shipped.contains(&format!("plugin = \"https://{PLUGIN}:")), "{shipped}");
    let guest = Server::start(|_| http::answer(200, METRICS));
    // It takes seconds until it asks.
    let agents = [Names::Files, Names::Server].map(|names| {
        let root = Root::of(&image);
        names.mount(&root, PLUGIN);
        let (listener, port) = listen();
        root.mount("etc/windlass-plugin/ca.crt", Ca::new("plugin").pem());
        let at = format!("plugin = \"https://{PLUGIN}:{port}\"\n");
        root.mount("etc/windlass/agent.toml", &(at + CONFIG));
        let figures = format!("metrics = \"{}\"\n", guest.address());
        root.mount("etc/windlass/vms.d/a.toml", &(figures + VM));
        root.volume("run");
        let machine = Machine::start(root.volume("vm").join("a.sock"), 0);
        fs::set_permissions(machine.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let agent = root.start(&["--config=/etc/windlass/agent.toml"], &[("K8S_NODE_NAME", "n1")]);
        (agent, listener, machine, root)
    });
    for one in agents {
        is_greeted(&one.1, PLUGIN, one.0);
        // The machine goes now, and after it the folder of its socket, by which it is woken.
    }
}

/// Where a name is looked up.
#[derive(Clone, Copy)]
enum Names {
    /// In `/etc/hosts`; the name server does not know it.
    Files,
    /// At the name server.
    Server,
}

// === impl Names ===

impl Names {
    /// Mounts what a kubelet mounts, by which this name is the loopback address.
    fn mount(self, root: &Root, name: &str) {
        let (own, served) = match self {
            Self::Files => (name, "another"),
            Self::Server => ("another", name),
        };
        root.mount("etc/hosts", &format!("127.0.0.1 localhost\n127.0.0.1 {own}\n"));
        let at = name_server::serve(served);
        root.mount("etc/resolv.conf", &format!("nameserver {at}\n{RESOLVER}"));
    }
}

/// The archive of a program. The programs are built, and the images made, once.
fn archive(program: &str) -> PathBuf {
    static MADE: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("images");
    let made = MADE.get_or_init(|| make(&folder));
    assert_eq!(made.len(), PROGRAMS.len(), "{made:?}");
    let name = format!("{program}-image.tar");
    made.iter().find(|path| path.ends_with(&name)).unwrap().clone()
}

/// What follows these words on their line.
fn after<'a>(text: &'a str, words: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.split_once(words)).expect(words);
    line.1.trim()
}

/// Listens at a port of its own.
fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

/// Waits until a program connects, and says over TLS that it looks for a server of this name.
fn is_greeted(listener: &TcpListener, name: &str, mut program: Process) {
    let mut stream: TcpStream = wait::until_some("the program connects", || {
        assert!(program.ended().is_none(), "it ended: {:?}", program.err().to_end());
        listener.accept().ok().map(|(stream, _)| stream)
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(wait::PATIENCE)).unwrap();
    let mut heard = vec![0; 4096];
    let size = stream.read(&mut heard).unwrap();
    let has_name = heard[..size].windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(heard[0] == 22 && has_name, "no greeting of TLS for {name}: {:?}", &heard[..size]);
}
