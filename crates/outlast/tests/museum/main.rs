//! What earlier versions wrote and said, and what this one makes of it: job folders, recorded conversations with keepers,
//! and, at full size, the real program of 0.1.0 beside this one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod both;
mod folders;
mod old_client;
mod old_keeper;

use std::path::{Path, PathBuf};

use outlast_testkit::Sandbox;
use outlast_testkit::recorded::{self, Scene};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_outlast");

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM)
}

/// The jobs that `jobs --all` lists.
fn all_jobs(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.json(["jobs", "--all"])["jobs"].as_array().unwrap().clone()
}

fn museum(piece: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum").join(piece)
}

/// A recorded conversation of 0.1.0.
fn recording(name: &str) -> Vec<Scene> {
    recorded::parse(&std::fs::read_to_string(museum("wire/0.1.0").join(name).with_extension("txt")).unwrap())
}

/// The names of all of them.
fn recordings() -> Vec<String> {
    let files = std::fs::read_dir(museum("wire/0.1.0")).unwrap().map(|file| file.unwrap().path());
    let mut names: Vec<String> =
        files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Makes a test of each recording, with a function that takes its name; and one that none was forgotten.
macro_rules! each_recording {
    ($judge:path) => {
        $crate::each_recording!($judge: asks attach follow keys pipes port raw secret signals tools waits watches);
    };
    ($judge:path: $($name:ident)*) => {
        $(#[test]
        fn $name() {
            $judge(stringify!($name));
        })*

        #[test]
        fn every_recording_has_a_test() {
            assert_eq!($crate::recordings(), [$(stringify!($name)),*]);
        }
    };
}
use each_recording;
