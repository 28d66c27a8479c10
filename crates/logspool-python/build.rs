//! Makes PyO3's `Py_3_12`, `Py_GIL_DISABLED`, ... known to this crate: the hot path follows CPython's structs per
//! version.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    // The core keeps threads and handlers for the life of the process, so the library is never unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A thread that Python ends is unwound by the unwinder of the C library: the module must have the same one.
    println!("cargo:rerun-if-env-changed=LOGSPOOL_UNWINDER");
    if let Ok(library) = std::env::var("LOGSPOOL_UNWINDER") {
        println!("cargo:rustc-link-search=native={library}");
        println!("cargo:rustc-link-lib=dylib=gcc_s_of_target");
    }
}
