//! An archive of an image: an OCI image layout, which also has what `docker load` reads.
//!
//! What refers to a blob is followed by its digest, and the blob must have that digest and the size that is said.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_testkit::Folder;

/// An image, unpacked into the parts of its layout.
#[derive(Debug)]
pub struct Image {
    layout: Folder,
    /// The one descriptor of its index.
    pub descriptor: Value,
    /// Its manifest.
    pub manifest: Value,
    /// Its configuration.
    pub config: Value,
    /// What `docker load` reads.
    pub docker: Value,
}

/// A file or folder of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its kind and permissions, as `ls` writes them.
    pub mode: String,
    /// Its owner and group, as numbers.
    pub owner: String,
    /// When it was changed.
    pub time: String,
    /// Its path.
    pub path: String,
}

// === impl Image ===

impl Image {
    /// Reads an archive.
    pub fn read(archive: &Path) -> Self {
        let layout = Folder::create().unwrap();
        unpack(archive, layout.path());
        let index = json(&layout.at("index.json"));
        let [descriptor] = &index["manifests"].as_array().unwrap()[..] else {
            panic!("one image: {index}")
        };
        let docker = json(&layout.at("manifest.json"));
        let mut image = Self {
            descriptor: descriptor.clone(),
            layout,
            manifest: Value::Null,
            config: Value::Null,
            docker,
        };
        image.manifest = json(&image.blob(&image.descriptor));
        image.config = json(&image.blob(&image.manifest["config"]));
        image
    }

    /// The archive of its one layer.
    pub fn layer(&self) -> PathBuf {
        let [layer] = &self.manifest["layers"].as_array().unwrap()[..] else {
            panic!("one layer: {}", self.manifest)
        };
        self.blob(layer)
    }

    /// The digest of that archive before it was compressed.
    pub fn content(&self) -> String {
        let plain = self.layout.at("layer.tar");
        let text = run("gzip", &["--decompress", "--stdout", self.layer().to_str().unwrap()]);
        fs::write(&plain, text).unwrap();
        digest(&plain)
    }

    /// How many blobs it has.
    pub fn blobs(&self) -> usize {
        fs::read_dir(self.layout.at("blobs/sha256")).unwrap().count()
    }

    /// The blob that this descriptor refers to.
    fn blob(&self, descriptor: &Value) -> PathBuf {
        let named = descriptor["digest"].as_str().unwrap();
        let path = self.layout.at(&format!("blobs/{}", named.replace(':', "/")));
        assert_eq!(digest(&path), named);
        assert_eq!(descriptor["size"], fs::metadata(&path).unwrap().len(), "{descriptor}");
        path
    }
}

/// Makes the images in this folder, of programs that are built as tests are, and gives their archives.
pub fn make(into: &Path) -> Vec<PathBuf> {
    let into = into.to_str().unwrap();
    let said = run("../../dev/images", &["--profile", "dev", "--into", into]);
    let said = String::from_utf8(said).unwrap();
    said.lines().map(|line| line.split(' ').next().unwrap().into()).collect()
}

/// What is in an archive, in its order.
pub fn entries(archive: &Path) -> Vec<Entry> {
    let how = ["--list", "--verbose", "--numeric-owner", "--full-time", "--file"];
    let listed = run("tar", &[&how[..], &[archive.to_str().unwrap()]].concat());
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, owner, _size, day, hour, path] = words[..] else { panic!("{line}") };
        let [mode, owner, path] = [mode, owner, path].map(str::to_owned);
        Entry { mode, owner, time: format!("{day} {hour}"), path }
    };
    String::from_utf8(listed).unwrap().lines().map(entry).collect()
}

/// Unpacks an archive into a folder.
pub fn unpack(archive: &Path, into: &Path) {
    let [archive, into] = [archive, into].map(|path| path.to_str().unwrap());
    run("tar", &["--extract", "--preserve-permissions", "--file", archive, "--directory", into]);
}

/// The digest of a file, as images write it.
pub fn digest(path: &Path) -> String {
    let said = String::from_utf8(run("sha256sum", &[path.to_str().unwrap()])).unwrap();
    format!("sha256:{}", said.split(' ').next().unwrap())
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What a program says, that is to succeed.
fn run(program: &str, args: &[&str]) -> Vec<u8> {
    // Times are told in UTC.
    let output = Command::new(program).args(args).env("TZ", "UTC").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {errors}");
    output.stdout
}
