//! Link options of liblogspool.so.

fn main() {
    // The core keeps threads and handlers for the life of the process, so the library is never unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblogspool.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
