//! Passes options to the linker that make the program small: each running Job has a worker process, and most of its memory is the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")) {
        return;
    }
    // Packed relocations make the start faster. They need glibc 2.36, which the base of the images has.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // Merges functions with identical code. This needs lld, which is the default linker of rustc on x86_64.
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
