//! Links the worker small: it is one process a Job, and most of what it holds is its program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")) {
        return;
    }
    // Relocations are read at every start. Loaders read packed ones since glibc 2.36, which the images' base has.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // Functions of the same code become one. Only lld can, which is rustc's own linker there.
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
