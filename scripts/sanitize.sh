#!/bin/sh
# Run the tests of the core under a sanitizer: `scripts/sanitize.sh address`, `thread` or `miri`. `native` runs programs
# of C++ and the core in one binary under ThreadSanitizer.
# The stable compiler accepts the unstable flag by RUSTC_BOOTSTRAP; nothing built this way is ever shipped.
set -eu
cd "$(dirname "$0")/.."

kind=${1:?address, thread, miri or native}

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

# The header writes into the ring that the collector reads. Both sides are instrumented and share Rust's runtime of the
# sanitizer. A copy of the header whose store of the head is relaxed must be reported, or the check would see nothing.
if [ "$kind" = native ]; then
    compiler=
    for name in clang++-19 clang++-16 clang++; do
        command -v "$name" >/dev/null && compiler=$name && break
    done
    [ -n "$compiler" ] || { echo "error: clang++ is missing: apt-get install clang" >&2; exit 1; }
    sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library
    [ -d "$sources" ] || rustup component add rust-src || {
        echo "error: the thread sanitizer needs the sources of the standard library: rustup component add rust-src" >&2
        exit 1
    }
    target=build/target-thread-sanitizer
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cforce-frame-pointers=yes" CARGO_TARGET_DIR=$target \
        cargo build --quiet -Zbuild-std -p logspool-c --no-default-features --target "$host"
    runtime=$(echo "$(rustc --print sysroot)/lib/rustlib/$host/lib"/librustc-*_rt.tsan.a)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    export LOGSPOOL_QUEUE_DIR="$folder/queue" TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"
    mkdir -m 700 "$LOGSPOOL_QUEUE_DIR"
    # compiled HEADERS SOURCE: makes $folder/program.
    compiled() {
        "$compiler" -std=c++20 -O1 -g -fsanitize=thread "-I$1" -Icrates/logspool-c/include -c "$2" -o "$folder/program.o"
        c++ "$folder/program.o" "$target/$host/debug/liblogspool_c.a" -Wl,--whole-archive "$runtime" \
            -Wl,--no-whole-archive -Wl,--export-dynamic -pthread -ldl -lm -lrt -o "$folder/program"
    }
    # ran END COUNT LINES: runs the program `ends`, and counts its lines.
    ran() {
        rm -f "$folder/a.log"
        "$folder/program" "$folder/a.log" "$1" "$2" >/dev/null || { echo "native: $1 failed" >&2; exit 1; }
        lines=$(wc -l <"$folder/a.log")
        [ "$lines" -ge "$3" ] || { echo "native: $1 has $lines lines, not $3" >&2; exit 1; }
        echo "native: $1, $lines lines, no report"
    }
    compiled bindings/cpp tests/native/cpp/programs/ends.cpp
    ran return 5000 20000
    ran drain 5000 20000
    ran signals 20000 20000
    cp -r bindings/cpp "$folder/weak"
    sed -i 's/\(__atomic_store_n(view->head_word, end, __ATOMIC_\)RELEASE/\1RELAXED/' "$folder/weak/logspool/lane.hpp"
    ! cmp -s bindings/cpp/logspool/lane.hpp "$folder/weak/logspool/lane.hpp" || {
        echo "native: the header has no store of the head to weaken" >&2
        exit 1
    }
    compiled "$folder/weak" tests/native/cpp/programs/ends.cpp
    if "$folder/program" "$folder/weak.log" return 5000 >/dev/null 2>"$folder/report"; then
        echo "native: a relaxed store of the head is NOT reported" >&2
        exit 1
    fi
    grep -q "ThreadSanitizer: data race" "$folder/report" || { cat "$folder/report" >&2; exit 1; }
    echo "native: a relaxed store of the head is reported"
    exit 0
fi

flags="-Zsanitizer=$kind -Cforce-frame-pointers=yes"
threads=$(nproc)
std=
case $kind in
address)
    # Reports also cover reads of freed stack frames; a leak is a finding, too.
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
    echo "unknown sanitizer $kind: address, thread, miri or native" >&2
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
limited=a_record_shown_thousands_of_times_takes_no_memory_and_loses_only_itself
# Without TLS: its code here has nothing unsafe, and the assembler of its library is not instrumented.
# shellcheck disable=SC2086 # no word or one
exec cargo test $std -p logspool-sys -p logspool-record -p logspool-lanes -p logspool-spool -p logspool-pool \
    -p logspool --no-default-features --target "$host" --lib --tests -- \
    --test-threads="$threads" --skip "$limited"
