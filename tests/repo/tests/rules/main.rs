//! The rules about this repository, each as a test. One program, because each links the command.

mod alerts;
mod circles;
mod configuration;
mod dependencies;
mod documents;
mod golden;
mod laws;
mod make;
mod manifests;
mod mutants;
mod reliability;
mod skew;
mod tidy;
mod versions;
mod words;
