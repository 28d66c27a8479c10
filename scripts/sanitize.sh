#!/bin/sh
# Run the tests of the core under a sanitizer: `scripts/sanitize.sh address`, `thread` or `miri`.
# The stable compiler is told to accept the unstable flag; nothing built this way is ever shipped.
set -eu
cd "$(dirname "$0")/.."

kind=${1:?address, thread or miri}

# Miri interprets the tests and finds undefined behaviour that no machine shows. It has no mmap with a file, no fork and
# no futex of another process: tests that need these are marked for it. Record, lanes and spool are mostly pure.
if [ "$kind" = miri ]; then
    toolchain=${MIRI_TOOLCHAIN:-nightly}
    if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
        echo "miri: NOT RUN, the toolchain $toolchain has no component miri (rustup component add miri --toolchain $toolchain)" >&2
        exit 0
    fi
    # Without isolation, so that tests can make temporary files.
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance ${MIRIFLAGS:-}"
    export CARGO_TARGET_DIR="build/target-miri"
    cargo "+$toolchain" miri test -p logspool-lanes --lib
    # Without the crash proof: it would take hours, and its only unsafe code is its own allocator.
    exec cargo "+$toolchain" miri test -p logspool-record -p logspool-spool --lib -- --skip proof::
fi

host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Zsanitizer=$kind -Cforce-frame-pointers=yes"
threads=$(nproc)
std=
case $kind in
address)
    # Reports read freed stack frames too; a leak is one of the findings.
    export ASAN_OPTIONS="detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
    ;;
thread)
    # The standard library is built with the sanitizer as well: what its locks and channels order is seen only then,
    # and correct programs would be reported.
    std=-Zbuild-std
    sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library
    [ -d "$sources" ] || rustup component add rust-src || {
        echo "error: the thread sanitizer needs the sources of the standard library: rustup component add rust-src" >&2
        exit 1
    }
    # One test at a time, so that a report names the test it comes from.
    threads=1
    export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"
    ;;
*)
    echo "unknown sanitizer $kind: address, thread or miri" >&2
    exit 2
    ;;
esac

# A sanitizer costs ten times the time; how often the simulated disk crashes does not matter to it.
: "${LOGSPOOL_CRASH_STATES:=2000}"
export LOGSPOOL_CRASH_STATES
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="$flags"
export CARGO_TARGET_DIR="build/target-$kind-sanitizer"
# A sanitizer takes terabytes of address space: a test that limits it cannot run.
limited=a_record_shown_thousands_of_times_takes_no_memory_and_costs_itself
# Without TLS: its code here has nothing unsafe, and the assembler of its library is not instrumented.
# shellcheck disable=SC2086 # no word or one
exec cargo test $std -p logspool-sys -p logspool-record -p logspool-lanes -p logspool-spool -p logspool-pool \
    -p logspool --no-default-features --target "$host" --lib --tests -- \
    --test-threads="$threads" --skip "$limited"
