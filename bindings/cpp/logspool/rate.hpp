/// \file
/// Sites that log some of their calls: every n-th one, or one in each interval.
#ifndef LOGSPOOL_RATE_HPP
#define LOGSPOOL_RATE_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace logspool::detail {

/// Lets the first of every `n` calls pass.
struct every_n {
    std::atomic<std::uint64_t> calls{0};

    bool passes(std::uint64_t n) {
        return n <= 1 || calls.fetch_add(1, std::memory_order_relaxed) % n == 0;
    }
};

/// Lets one call pass in each interval, and counts the others.
struct one_per_interval {
    std::atomic<std::int64_t> next{0};
    std::atomic<std::uint64_t> held_back{0};

    /// Number of calls held back since the last call that passed; negative: this call is held back, too.
    template <class Duration> std::int64_t passes(Duration interval) {
        // The coarse clock of the kernel costs no system call and is exact to some milliseconds.
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        const std::int64_t at = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
        std::int64_t due = next.load(std::memory_order_relaxed);
        const std::int64_t later = at + std::chrono::duration_cast<std::chrono::nanoseconds>(interval).count();
        if (at < due || !next.compare_exchange_strong(due, later, std::memory_order_relaxed)) {
            held_back.fetch_add(1, std::memory_order_relaxed);
            return -1;
        }
        return static_cast<std::int64_t>(held_back.exchange(0, std::memory_order_relaxed));
    }
};

} // namespace logspool::detail

#endif
