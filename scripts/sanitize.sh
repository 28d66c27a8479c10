#!/bin/sh
# Run the tests of the core under a sanitizer: `scripts/sanitize.sh address` or `scripts/sanitize.sh thread`.
# The stable compiler is told to accept the unstable flag; nothing built this way is ever shipped.
set -eu
cd "$(dirname "$0")/.."

kind=${1:?address or thread}
host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Zsanitizer=$kind -Cforce-frame-pointers=yes"
threads=$(nproc)
tests="--lib --tests"
case $kind in
address)
    # Reports read freed stack frames too; a leak is one of the findings.
    export ASAN_OPTIONS="detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
    ;;
thread)
    # The standard library is not built with the sanitizer, which the compiler asks to be told.
    # One test at a time keeps the harness, whose threads are std's, out of the picture.
    threads=1
    # A Condvar of that library hands a mutex over unseen, and correct programs that wait on one are reported as
    # races. So only the unit tests run here: the threads of the whole line need a standard library built with it
    # (`-Zbuild-std`), and that needs the rust-src component, which a toolchain of the minimal profile lacks.
    #
    # What is reported without it, for instance by `failing_sink` in `Outlet::next_chunk`: `waiting`, read by the
    # writer behind `Condvar::wait`, against the collector's `push`. It is no race by the discipline of the lock:
    # every access to `Waiting` is through the guard of its mutex, and `wait` returns that guard; the hand-over is a
    # futex inside of std, unseen. The chunk itself goes over by `Arc`: the writer clones it under the lock, its
    # bytes are never changed while two hold it, and `Arc::into_inner` gives it back under the lock, by an acquire
    # fence that the sanitizer does not model.
    tests=${LOGSPOOL_TSAN_TESTS:---lib}
    echo "thread sanitizer: cargo test $tests; the tests of the whole line wait on Condvars, which it cannot follow"
    flags="$flags -Cunsafe-allow-abi-mismatch=sanitizer"
    export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/scripts/tsan-suppressions.txt:${TSAN_OPTIONS:-}"
    ;;
*)
    echo "unknown sanitizer $kind: address or thread" >&2
    exit 2
    ;;
esac

export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="$flags"
export CARGO_TARGET_DIR="build/target-$kind-sanitizer"
# shellcheck disable=SC2086 # the options are words
exec cargo test -p logspool --target "$host" $tests -- --test-threads="$threads"
