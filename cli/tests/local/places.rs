//! Places that no memory can be: each is refused at the start, with the reason. Mounts are made in a mount namespace of
//! their own, which needs root; file systems that lack what a log stands on are made by a library that is loaded first.

use super::stand::{Ran, SAYS_HELLO, Stand};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

const RUN: &str = "run --skill ./skill.yaml --goal Greet --model scripted";

/// Whether this machine lets us mount; says so where not. Root may, so where it may not, that has to be known
/// (`BLOOMERY_NO_MOUNTS`): a test that passes because it does nothing tells nobody.
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

/// Runs a Skill after `mounts`, a script of its own.
async fn after(stand: &Stand, mounts: &str) -> Ran {
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), stand.url());
    let script = format!("set -e; set -- --run-key k-1; {mounts}\n{program} {RUN} \"$@\" --model-url {url}");
    let mut command = tokio::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(stand.dir.path());
    Ran::of(command.output().await.unwrap())
}

#[tokio::test]
async fn a_memory_that_is_mounted_read_only() {
    if !can_mount() {
        return;
    }
    let stand = Stand::new(SAYS_HELLO).await;
    let empty = after(&stand, "mkdir memory; mount -t tmpfs -o ro none memory").await;
    empty.assert(2, "is read-only");
    // One that was used before, too.
    stand
        .bloomery(
            &[&RUN.split(' ').collect::<Vec<_>>()[..], &["--run-key", "k-1", "--model-url", &stand.url()]].concat(),
        )
        .await
        .assert(0, "");
    let before = stand.everything();
    let read_only = "mount --bind memory memory; mount -o remount,bind,ro memory";
    let other = format!("{read_only}\nset -- --run-key k-2");
    after(&stand, &other).await.assert(2, "Name another one with --memory");
    // A Job that has ended is told all the same.
    let told = after(&stand, read_only).await;
    told.assert(0, "Succeeded");
    assert_eq!((told.out.as_str(), stand.everything()), ("Hello.\n", before));
}

#[tokio::test]
async fn a_memory_that_is_full() {
    if !can_mount() {
        return;
    }
    let stand = Stand::new(SAYS_HELLO).await;
    // What it could not be tried in does not stay.
    let script = "mkdir memory; mount -t tmpfs -o size=64k none memory; head -c 64k /dev/zero >memory/filled || true
        trap 'ls memory' EXIT";
    let full = after(&stand, script).await;
    full.assert(2, "no space left for the memory");
    assert_eq!(full.out, "filled\n");
    // No names are left, where blocks are.
    let names = "mount -t tmpfs -o nr_inodes=2 none memory; : >memory/filled";
    after(&stand, names).await.assert(2, "no space left for the memory");
}

/// A Job that has ended is told again where there is no room left.
#[tokio::test]
async fn a_memory_that_is_full_after_a_job() {
    if !can_mount() {
        return;
    }
    let stand = Stand::new(SAYS_HELLO).await;
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), stand.url());
    let fill = format!(
        "mkdir memory; mount -t tmpfs -o size=1m none memory
        {program} {RUN} --run-key k-1 --model-url {url} >/dev/null
        head -c 2m /dev/zero >memory/filled || true"
    );
    let told = after(&stand, &fill).await;
    told.assert(0, "Succeeded");
    assert_eq!(told.out, "Hello.\n", "{told:#?}");
    after(&stand, &format!("rmdir memory; {fill}\nset -- --run-key k-2")).await.assert(2, "no space left");
}

/// A log that runs into the end of the room is whole as far as it goes, and goes on once there is room.
#[tokio::test]
async fn a_memory_that_becomes_full() {
    if !can_mount() {
        return;
    }
    let stand = Stand::new(SAYS_HELLO).await;
    let (program, url) = (env!("CARGO_BIN_EXE_bloomery"), stand.url());
    // Room for the start, and not for much more.
    let script = format!(
        "set -e; mkdir memory; mount -t tmpfs -o size=20k none memory
        {program} {RUN} --run-key k-1 --model-url {url} && exit 9 || [ $? -eq 1 ]
        mount -o remount,size=1m memory
        exec {program} run --resume k-1 --model scripted --model-url {url}"
    );
    let mut command = tokio::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(stand.dir.path());
    let ran = Ran::of(command.output().await.unwrap());
    ran.assert(0, "no space left for the memory");
    assert!(ran.err.contains("epoch 1, attempt 1") && ran.err.contains("epoch 2, attempt 2"), "{ran:#?}");
    assert_eq!(ran.out, "Hello.\n", "{ran:#?}");
}

/// What a file system does that is none for a log, instead of what it should.
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

const NO_ROOM_FOR_A_LOG: &str = "int linkat(int a, const char *b, int c, const char *d, int e) {
    if (strstr(d, \".jsonl\")) { errno = ENOSPC; return -1; }
    return syscall(SYS_linkat, a, b, c, d, e);
}";

const BEGUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

/// Runs a Skill where the file system does something else than it should.
async fn where_it(stand: &Stand, does: &str) -> Ran {
    let heads =
        ["errno", "fcntl", "stdarg", "string", "sys/syscall", "unistd"].map(|head| format!("#include <{head}.h>\n"));
    stand.write("lacks.c", &format!("#define _GNU_SOURCE\n{}{does}\n", heads.concat()));
    let library = stand.path("lacks.so");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(stand.path("lacks.c")).status();
    assert!(made.unwrap().success(), "{does}");
    Ran::of(stand.run_command(&BEGUN).env("LD_PRELOAD", &library).output().await.unwrap())
}

#[tokio::test]
async fn a_file_system_that_cannot_keep_a_log_from_forking() {
    for (name, does, lacks) in [
        ("no-links", NO_LINKS, "does not support hard links"),
        ("links-replace", LINKS_REPLACE, "does not support exclusive hard links"),
        ("not-exclusive", NOT_EXCLUSIVE, "does not support exclusive creation of files"),
    ] {
        let stand = Stand::new(SAYS_HELLO).await;
        let ran = where_it(&stand, does).await;
        ran.assert(2, lacks);
        assert!(
            ran.err.contains("two processes could write the same log: name a directory on a local disk"),
            "{ran:#?}"
        );
        assert!(!stand.path("memory/greeter/jobs").exists(), "{name}");
    }
}

/// A disk that fails between the start and the first line of the log is no wrong usage.
#[tokio::test]
async fn a_log_that_cannot_be_begun_is_a_failure() {
    let stand = Stand::new(SAYS_HELLO).await;
    where_it(&stand, NO_ROOM_FOR_A_LOG).await.assert(1, "no space left for the memory");
    assert!(stand.log("greeter/jobs/k-1").is_empty());
    stand.run(&BEGUN).await.assert(0, "Succeeded");
}
