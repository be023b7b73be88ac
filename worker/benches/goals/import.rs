//! Measures `bloomery import`: the time for a repository of skills, compared with reading and parsing its files with `serde_json` alone,
//! and the memory.

use crate::figures::{Figures, ms};
use crate::memory::memory;
use crate::process::COMMAND_LINE;
use crate::times::median;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of skills whose import is timed.
const SKILLS: usize = 1_000;

/// The number of skills of a very large repository.
const MANY_SKILLS: usize = 10_000;

/// The number of imports.
const RUNS: usize = 5;

/// The number of bytes at the end of the output that are not read while the memory is measured. A pipe holds fewer.
const UNREAD_BYTES: usize = 256 * 1024;

/// Measures the time and the memory.
pub(crate) fn measure(figures: &mut Figures, root: &Path) {
    let Some(program) = std::env::var_os(COMMAND_LINE) else {
        eprintln!("import: `bloomery import` is not measured, because {COMMAND_LINE} is not set");
        return;
    };
    let dir = repository(root, SKILLS);
    let imported = median((0..RUNS).map(|_| timed(|| import(&program, &dir))));
    let parsed = median((0..RUNS).map(|_| timed(|| parse(&dir))));
    figures.report("import", "1,000 skills: read and parsed with serde_json alone", ms(parsed), "ms");
    figures.report("import", "the whole import, in this unit", imported.as_secs_f64() / parsed.as_secs_f64(), "x");
    figures.require("import", "1,000 skills: from the process to the last manifest", (ms(imported), "ms"), 1_000.0);
    let many = repository(root, MANY_SKILLS);
    let imported = timed(|| import(&program, &many));
    figures.require("import", "10,000 skills: from the process to the last manifest", (ms(imported), "ms"), 10_000.0);
    let peak = peak_of_import(&program, &many);
    figures.require("import", "10,000 skills: peak memory", (peak, "MiB"), 48.0);
}

/// Creates a repository. Each tenth skill has a subskill.
fn repository(root: &Path, skills: usize) -> PathBuf {
    let dir = crate::new_dir(root);
    fs::create_dir(dir.join("memory-bank")).unwrap();
    fs::write(dir.join("memory-bank/projectbrief.md"), "Orders of a shop. ".repeat(20)).unwrap();
    for nth in 0..skills {
        let skill = dir.join(format!("skills/s{nth:05}"));
        fs::create_dir_all(&skill).unwrap();
        let ext =
            if nth % 10 == 1 { json!({"subskill": format!("s{:05}", nth - 1)}) } else { json!({"skill_md_ref": "#a"}) };
        let feature = |name: &str| {
            json!({
                "name": name,
                "test_scenario": "Given an order that was delivered, when the customer asks where it is, then its status is named",
                "expected_result": "The answer names the status of the order",
                "ext": ext,
            })
        };
        let content = json!({
            "goal": "Answer questions of customers about their orders",
            "acceptance_criteria": ["The answer names the order", "The answer names its status"],
            "features": [feature("status"), feature("delivery"), feature("refund")],
        });
        fs::write(skill.join("skill.json"), content.to_string()).unwrap();
        fs::write(skill.join("skill.md"), "# a\n\nAsk for the number of the order.\n".repeat(5)).unwrap();
    }
    dir
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn command(program: &OsStr, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("import").arg(dir).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn import(program: &OsStr, dir: &Path) {
    let status = command(program, dir).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "the import failed: {status}");
}

fn parse(dir: &Path) {
    for entry in fs::read_dir(dir.join("skills")).unwrap() {
        let skill = entry.unwrap().path();
        let parsed: Value = serde_json::from_slice(&fs::read(skill.join("skill.json")).unwrap()).unwrap();
        black_box((parsed, fs::read(skill.join("skill.md")).unwrap()));
    }
}

/// Returns the peak memory of an import, in MiB. The process waits with the end of its output while its memory is read.
fn peak_of_import(program: &OsStr, dir: &Path) -> f64 {
    let length = command(program, dir).output().unwrap().stdout.len();
    let mut child = command(program, dir).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut read = vec![0; length.checked_sub(UNREAD_BYTES).expect("the output is long")];
    output.read_exact(&mut read).unwrap();
    let peak = memory(child.id()).peak;
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    peak
}
