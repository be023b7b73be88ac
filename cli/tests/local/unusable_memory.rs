//! Directories that cannot be a memory are refused at the start, with the reason. Tests with mounts use a separate mount
//! namespace, which needs root. A preloaded library simulates file systems that cannot protect a log.

use super::setup::{CommandOutput, SAYS_HELLO, Setup};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

const RUN: &str = "run --skill ./skill.yaml --goal Greet --model scripted";

/// Returns whether tests can mount file systems. If root cannot, `BLOOMERY_NO_MOUNTS` has to be set, so that these tests are not
/// skipped unnoticed.
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let can = tried.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let is_known = std::env::var_os("BLOOMERY_NO_MOUNTS").is_some();
        assert!(!is_root || is_known, "root cannot mount here; set BLOOMERY_NO_MOUNTS to test without: {tried:?}");
        eprintln!("not tested: mounting needs root");
    }
    can
}

/// Runs a Skill after the shell script `mounts`.
async fn run_after(setup: &Setup, mounts: &str) -> CommandOutput {
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), setup.url());
    let script = format!("set -e; set -- --run-key k-1; {mounts}\n{program} {RUN} \"$@\" --model-url {url}");
    let mut command = tokio::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(setup.dir.path());
    CommandOutput::new(command.output().await.unwrap())
}

#[tokio::test]
async fn a_read_only_memory_is_refused() {
    if !can_mount() {
        return;
    }
    let setup = Setup::new(SAYS_HELLO).await;
    let empty = run_after(&setup, "mkdir memory; mount -t tmpfs -o ro none memory").await;
    empty.assert(2, "is read-only");
    // A memory that was used before is refused too.
    setup
        .bloomery(
            &[&RUN.split(' ').collect::<Vec<_>>()[..], &["--run-key", "k-1", "--model-url", &setup.url()]].concat(),
        )
        .await
        .assert(0, "");
    let before = setup.all_contents();
    let read_only = "mount --bind memory memory; mount -o remount,bind,ro memory";
    let other = format!("{read_only}\nset -- --run-key k-2");
    run_after(&setup, &other).await.assert(2, "Name another one with --memory");
    // A Job that has ended can be shown.
    let shown = run_after(&setup, read_only).await;
    shown.assert(0, "Succeeded");
    assert_eq!((shown.out.as_str(), setup.all_contents()), ("Hello.\n", before));
}

#[tokio::test]
async fn a_full_memory_is_refused() {
    if !can_mount() {
        return;
    }
    let setup = Setup::new(SAYS_HELLO).await;
    // Directories that were created for the check are removed.
    let script = "mkdir memory; mount -t tmpfs -o size=64k none memory; head -c 64k /dev/zero >memory/filled || true
        trap 'ls memory' EXIT";
    let full = run_after(&setup, script).await;
    full.assert(2, "no space left for the memory");
    assert_eq!(full.out, "filled\n");
    // The file system has free blocks, but no free inodes.
    let names = "mount -t tmpfs -o nr_inodes=2 none memory; : >memory/filled";
    run_after(&setup, names).await.assert(2, "no space left for the memory");
}

#[tokio::test]
async fn a_job_that_has_ended_is_shown_from_a_full_memory() {
    if !can_mount() {
        return;
    }
    let setup = Setup::new(SAYS_HELLO).await;
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), setup.url());
    let fill = format!(
        "mkdir memory; mount -t tmpfs -o size=1m none memory
        {program} {RUN} --run-key k-1 --model-url {url} >/dev/null
        head -c 2m /dev/zero >memory/filled || true"
    );
    let shown = run_after(&setup, &fill).await;
    shown.assert(0, "Succeeded");
    assert_eq!(shown.out, "Hello.\n", "{shown:#?}");
    run_after(&setup, &format!("rmdir memory; {fill}\nset -- --run-key k-2")).await.assert(2, "no space left");
}

/// A log that could not grow is valid up to its end, and is continued when there is space.
#[tokio::test]
async fn a_job_can_be_resumed_after_the_memory_was_full() {
    if !can_mount() {
        return;
    }
    let setup = Setup::new(SAYS_HELLO).await;
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), setup.url());
    // The space is enough for the start only.
    let script = format!(
        "set -e; mkdir memory; mount -t tmpfs -o size=20k none memory
        {program} {RUN} --run-key k-1 --model-url {url} && exit 9 || [ $? -eq 1 ]
        mount -o remount,size=1m memory
        exec {program} run --resume k-1 --model scripted --model-url {url}"
    );
    let mut command = tokio::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(setup.dir.path());
    let result = CommandOutput::new(command.output().await.unwrap());
    result.assert(0, "no space left for the memory");
    assert_eq!(result.err.matches("Job k-1 of the Skill greeter").count(), 2, "{result:#?}");
    assert_eq!(result.out, "Hello.\n", "{result:#?}");
}

/// C implementations of system calls, as on file systems that cannot protect a log: without hard links, with links that replace
/// a file, and without exclusive creation.
const NO_LINKS: &str = "int linkat(int a, const char *b, int c, const char *d, int e) { errno = EPERM; return -1; }";
const LINKS_REPLACE: &str = "int linkat(int a, const char *b, int c, const char *d, int e) {
    unlinkat(c, d, 0);
    return syscall(SYS_linkat, a, b, c, d, e);
}";
const NOT_EXCLUSIVE: &str = "int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    return syscall(SYS_openat, AT_FDCWD, path, flags & ~O_EXCL, va_arg(rest, int));
}";

/// A C implementation of `linkat` that finds no space for the segments of a log.
const NO_ROOM_FOR_A_LOG: &str = "int linkat(int a, const char *b, int c, const char *d, int e) {
    if (strstr(d, \".jsonl\")) { errno = ENOSPC; return -1; }
    return syscall(SYS_linkat, a, b, c, d, e);
}";

const RUN_ARGS: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

/// Runs a Skill with replaced system calls. `calls` is their C source.
async fn run_with_replaced(setup: &Setup, calls: &str) -> CommandOutput {
    let heads =
        ["errno", "fcntl", "stdarg", "string", "sys/syscall", "unistd"].map(|head| format!("#include <{head}.h>\n"));
    setup.write("lacks.c", &format!("#define _GNU_SOURCE\n{}{calls}\n", heads.concat()));
    let library = setup.path("lacks.so");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(setup.path("lacks.c")).status();
    assert!(made.unwrap().success(), "{calls}");
    CommandOutput::new(setup.run_command(&RUN_ARGS).env("LD_PRELOAD", &library).output().await.unwrap())
}

#[tokio::test]
async fn a_file_system_that_cannot_protect_a_log_is_refused() {
    for (name, does, lacks) in [
        ("no-links", NO_LINKS, "does not support hard links"),
        ("links-replace", LINKS_REPLACE, "does not support exclusive hard links"),
        ("not-exclusive", NOT_EXCLUSIVE, "does not support exclusive creation of files"),
    ] {
        let setup = Setup::new(SAYS_HELLO).await;
        let result = run_with_replaced(&setup, does).await;
        result.assert(2, lacks);
        assert!(
            result.err.contains("two processes could write the same log: name a directory on a local disk"),
            "{result:#?}"
        );
        assert!(!setup.path("memory/greeter/jobs").exists(), "{name}");
    }
}

/// The disk fails between the check of the memory and the first line of the log. The arguments are valid, so the exit code is 1 and
/// not 2.
#[tokio::test]
async fn a_log_that_cannot_be_created_is_a_failure() {
    let setup = Setup::new(SAYS_HELLO).await;
    run_with_replaced(&setup, NO_ROOM_FOR_A_LOG).await.assert(1, "no space left for the memory");
    assert!(setup.log("greeter/jobs/k-1").is_empty());
    setup.run(&RUN_ARGS).await.assert(0, "Succeeded");
}
