#!/bin/sh
# Feed the decoders of the service with input that no program sends: `scripts/fuzz.sh [SECONDS] [TARGET...]`.
# Each target runs for SECONDS (60 by default). An input that breaks a target is left in fuzz/artifacts.
# The stable compiler accepts the unstable flags by RUSTC_BOOTSTRAP; nothing built this way is ever shipped.
set -eu
cd "$(dirname "$0")/.."

command -v cargo-fuzz >/dev/null || {
    echo "error: cargo-fuzz is missing: cargo install cargo-fuzz" >&2
    exit 1
}
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)

export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-build/target-fuzz}"
"${PYTHON:-python3}" fuzz/seeds.py build/fuzz/seeds

failed=
for target; do
    log="build/fuzz/$target.log"
    mkdir -p "build/fuzz/corpus/$target" "build/fuzz/seeds/$target"
    # Short messages find the same bugs as long messages, and run more often.
    if cargo fuzz run "$target" "build/fuzz/corpus/$target" "build/fuzz/seeds/$target" -- \
        ${LOGSPOOL_SEED:+"-seed=$LOGSPOOL_SEED"} -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 >"$log" 2>&1; then
        echo "$target: $(sed -n 's/^Done \([0-9]*\) runs in.*/\1 executions, nothing found/p' "$log")"
    else
        echo "$target: failed, see $log" >&2
        tail -n 30 "$log" >&2
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || {
    echo "error: these targets failed:$failed" >&2
    exit 1
}
