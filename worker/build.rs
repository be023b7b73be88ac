//! Passes options to the linker that make the program small: each running Job has a worker process, and most of its memory is the program.
//! The command line, which runs Jobs too, has the same build script.

use std::process::Command;

/// The first version of glibc that can start a program with packed relocations.
const GLIBC_WITH_PACKED_RELOCATIONS: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=../worker/build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")) {
        return;
    }
    // They make the start faster. The base of the images has a new glibc, but the machine of an author may have an older one.
    if glibc().is_some_and(|version| version >= GLIBC_WITH_PACKED_RELOCATIONS) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Both need lld, which is the default linker of rustc on x86_64. The first merges functions with identical code, and the second places
    // those of a start next to each other.
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        println!("cargo:rerun-if-changed=../worker/start.ld");
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/../worker/start.ld", env!("CARGO_MANIFEST_DIR"));
    }
}

/// Returns the version of glibc on this machine. `None` if it is not known.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
