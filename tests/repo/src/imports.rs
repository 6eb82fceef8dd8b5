//! Which files of a crate import which, by the names that each of them uses.
//!
//! A name counts as imported from the file that defines it: a module that only re-exports the
//! name is looked through. Code that is compiled for tests only does not count.

#![expect(clippy::wildcard_enum_match_arm, reason = "the list of kinds of items is open")]

use crate::{read, root};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// For each file of a crate, the other files that it imports from.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// The path of a module or item, from the root of its crate.
type Path = Vec<String>;

/// The imports between the files of the crate with this root file.
///
/// # Panics
/// If a file is no Rust.
pub fn imports(crate_root: &str) -> Imports {
    let mut modules = Modules::default();
    let text = syn::parse_file(&read(crate_root));
    let folder = crate_root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text = text.unwrap_or_else(|error| panic!("{crate_root}: {error}"));
    modules.add(Vec::new(), crate_root, folder, &text.items);
    modules.imports()
}

/// The files that import each other in a circle, each circle sorted by name.
pub fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let mut circles = BTreeSet::new();
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reachable(imports, file))).collect();
    for (file, reaches) in &reached {
        let circle: Vec<String> = (reaches.iter().copied())
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)))
            .cloned()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reachable<'a>(imports: &'a Imports, from: &'a String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in imports.get(file).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// A module: where it stands, what it defines, and what its names mean.
#[derive(Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    renamed: BTreeMap<String, Path>,
    globs: Vec<Path>,
    used: Vec<Path>,
}

#[derive(Default)]
struct Modules(BTreeMap<Path, Module>);

impl Modules {
    /// Reads a module, and those below it. `folder`: where files of modules below it are.
    fn add(&mut self, path: Path, file: &str, folder: &str, items: &[Item]) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            if let Some(name) = name(item) {
                module.defined.insert(name);
            }
            match item {
                Item::Use(item) => module.read(&item.tree, &mut Vec::new()),
                Item::Mod(item) => {
                    let name = item.ident.to_string();
                    let mut below = path.clone();
                    below.push(name.clone());
                    let folder = format!("{folder}/{name}");
                    match &item.content {
                        Some((_, items)) => self.add(below, file, &folder, items),
                        None => self.open(below, &folder),
                    }
                }
                other => module.visit_item(other),
            }
        }
        self.0.insert(path, module);
    }

    /// Reads the file of a module.
    fn open(&mut self, path: Path, folder: &str) {
        let file = [format!("{folder}.rs"), format!("{folder}/mod.rs")]
            .into_iter()
            .find(|file| root().join(file).is_file());
        let file = file.unwrap_or_else(|| panic!("module {} has no file", path.join("::")));
        let text = syn::parse_file(&read(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add(path, &file, folder, &text.items);
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (path, module) in &self.0 {
            let from: &mut BTreeSet<String> = imports.entry(module.file.clone()).or_default();
            let named = module.renamed.values().chain(&module.globs).chain(&module.used);
            let files = named.filter_map(|used| self.file_of(path, used, 0));
            from.extend(files.filter(|file| *file != module.file));
        }
        imports
    }

    /// The file that defines what a path means in a module; `None` if it is not of this crate.
    fn file_of(&self, module: &Path, path: &[String], depth: usize) -> Option<String> {
        // A re-export of a re-export is followed so far; a circle of globs ends here too.
        if depth > 8 {
            return None;
        }
        let mut at = module.clone();
        let mut rest = path;
        let mut is_rooted = false;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => break,
            }
            is_rooted = true;
            rest = others;
        }
        for (index, name) in rest.iter().enumerate() {
            let mut below = at.clone();
            below.push(name.clone());
            if self.0.contains_key(&below) {
                at = below;
                continue;
            }
            let here = self.0.get(&at)?;
            if here.defined.contains(name) {
                return Some(here.file.clone());
            }
            if let Some(meant) = here.renamed.get(name) {
                let whole: Path = meant.iter().chain(&rest[index + 1..]).cloned().collect();
                // A name in its own import is that of another crate.
                let is_other =
                    !is_rooted && index == 0 && at == *module && meant.first() == Some(name);
                return if is_other { None } else { self.file_of(&at, &whole, depth + 1) };
            }
            return here.globs.iter().find_map(|glob| {
                let whole: Path = glob.iter().chain(&rest[index..]).cloned().collect();
                self.file_of(&at, &whole, depth + 1)
            });
        }
        (is_rooted || !rest.is_empty())
            .then(|| self.0.get(&at).map(|module| module.file.clone()))?
    }
}

impl Module {
    fn read(&mut self, tree: &UseTree, before: &mut Path) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read(&path.tree, before);
                before.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = before.last() {
                    self.renamed.insert(last.clone(), before.clone());
                }
            }
            UseTree::Name(name) => {
                self.name(before, name.ident.to_string(), name.ident.to_string())
            }
            UseTree::Rename(new) => {
                self.name(before, new.ident.to_string(), new.rename.to_string())
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.read(tree, before)),
        }
    }

    fn name(&mut self, before: &Path, old: String, new: String) {
        let mut path = before.clone();
        path.push(old);
        if new == "_" {
            self.used.push(path);
        } else {
            self.renamed.insert(new, path);
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.used.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// It says who may see something, and uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.read(&item.tree, &mut Vec::new());
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}
