/// \file
/// Writes a record into the calling thread's lane without a call of the library.
///
/// This is the list of rules of `crates/logspool-lanes/src/lane/cursor.rs` in C++; `logspool.h` has its steps, which
/// the comments below name. Records that the lane cannot take now go through `logspool_reserve` and `logspool_commit`.
#ifndef LOGSPOOL_LANE_HPP
#define LOGSPOOL_LANE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "api.hpp"
#include "utf8.hpp"

namespace logspool::detail {

/// Bytes of the head of a record.
inline constexpr std::size_t head_bytes = 24;
static_assert(sizeof(logspool_head) == head_bytes && sizeof(logspool_view) == 104 && sizeof(logspool_handle) == 16);

/// Bytes of the value that names the thread.
inline constexpr std::size_t thread_value_bytes = 9;

/// The lane of this thread; null before its first record.
inline constinit thread_local logspool_view *this_view = nullptr;

template <class Number> inline Number load_relaxed(const Number *word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

inline std::uint64_t stamp(std::uint32_t clock) {
#if defined(__x86_64__)
    if (__builtin_expect(clock == LOGSPOOL_CLOCK_TSC, 1)) {
        return __rdtsc();
    }
#else
    static_cast<void>(clock);
#endif
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

inline unsigned char *store_thread(unsigned char *to, std::int64_t thread) {
    *to = LOGSPOOL_TAG_THREAD;
    std::memcpy(to + 1, &thread, sizeof thread);
    return to + thread_value_bytes;
}

/// Stores the fields one by one. A copy of the whole struct would load 16 bytes right after four stores to them, and
/// such a load waits until all earlier stores have reached the cache.
[[gnu::always_inline]] inline void store_head(unsigned char *to, const logspool_head &head) {
    std::memcpy(to + offsetof(logspool_head, length), &head.length, sizeof head.length);
    std::memcpy(to + offsetof(logspool_head, site), &head.site, sizeof head.site);
    std::memcpy(to + offsetof(logspool_head, route), &head.route, sizeof head.route);
    std::memcpy(to + offsetof(logspool_head, level), &head.level, sizeof head.level);
    std::memcpy(to + offsetof(logspool_head, flags), &head.flags, sizeof head.flags);
    std::memcpy(to + offsetof(logspool_head, ticks), &head.ticks, sizeof head.ticks);
}

/// Writes a record of `bytes` bytes of values, which `store` stores. `store` only stores. False: the caller must take
/// the slow path; nothing was written.
template <class Store>
[[gnu::always_inline]] inline bool try_write(const logspool_handle *logger, const logspool_handle *site,
                                             std::uint16_t level, std::size_t bytes, const Store &store) {
    logspool_view *const view = this_view;
    // Step 1.
    if (__builtin_expect(view == nullptr || view->version != LOGSPOOL_VIEW_VERSION || view->flags != 0, 0)) {
        return false;
    }
    const std::uint32_t needs = load_relaxed(&logger->needs);
    // The name of the thread costs a system call, which is for the slow path.
    if (__builtin_expect(needs > LOGSPOOL_NEEDS_THREAD, 0)) {
        return false;
    }
    const bool needs_thread = needs != 0;
    bytes += needs_thread ? thread_value_bytes : 0;
    const std::uint64_t needed = (head_bytes + bytes + 7) & ~std::uint64_t{7};
    const std::uint64_t ring_bytes = view->bytes;
    if (__builtin_expect(view->generation != load_relaxed(view->generation_word) || needed > ring_bytes / 4, 0)) {
        return false;
    }
    // Step 2. A mark that is set belongs to a call that this one interrupts.
    std::uint32_t *const busy = view->busy_word;
    if (__builtin_expect(load_relaxed(busy) != 0, 0)) {
        return false;
    }
    __atomic_store_n(busy, 1U, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Step 3. Between the mark and here a signal handler may have renewed the view, so everything is read now.
    const std::uint64_t logger_ids = load_relaxed(&logger->ids);
    const std::uint64_t site_ids = load_relaxed(&site->ids);
    const auto pipeline = static_cast<std::uint32_t>(view->pipeline);
    const std::uint64_t start = view->head;
    const std::uint64_t size = view->bytes;
    const std::uint64_t offset = (start - view->start) & (size - 1);
    const std::uint64_t skipped = needed > size - offset ? size - offset : 0;
    const std::uint64_t reserved = level < LOGSPOOL_ERROR ? size / 8 : 0;
    const bool is_current = view->generation == load_relaxed(view->generation_word) && busy == view->busy_word &&
                            size == ring_bytes && (logger_ids >> 32) == pipeline && (site_ids >> 32) == pipeline &&
                            static_cast<std::uint32_t>(site_ids) != 0;
    // Step 4.
    if (__builtin_expect(!is_current || start + skipped + needed + reserved > view->limit, 0)) {
        __atomic_store_n(busy, 0U, __ATOMIC_RELEASE);
        return false;
    }
    // Steps 5 and 6.
    const logspool_head head{static_cast<std::uint32_t>(head_bytes + bytes),
                             static_cast<std::uint32_t>(site_ids),
                             static_cast<std::uint32_t>(logger_ids),
                             level,
                             0,
                             stamp(view->clock)};
    unsigned char *place = view->ring + offset;
    if (__builtin_expect(skipped != 0, 0)) {
        if (skipped >= head_bytes) {
            logspool_head filler = head;
            filler.length = static_cast<std::uint32_t>(skipped);
            filler.flags = LOGSPOOL_FLAG_FILLER;
            store_head(place, filler);
        }
        place = view->ring;
    }
    store_head(place, head);
    place += head_bytes;
    if (__builtin_expect(needs_thread, 0)) {
        place = store_thread(place, view->thread);
    }
    store(place);
    // Step 7.
    const std::uint64_t end = start + skipped + needed;
    view->head = end;
    __atomic_store_n(view->head_word, end, __ATOMIC_RELEASE);
    __atomic_store_n(busy, 0U, __ATOMIC_RELEASE);
    // Step 8.
    if (__builtin_expect(level >= LOGSPOOL_ERROR || end >= view->wake_at, 0)) {
        api().wake(level);
    }
    return true;
}

/// The kernel's name of the calling thread, as a value of a record.
class thread_name {
  public:
    void read() {
        char name[16] = {};
        prctl(PR_GET_NAME, name);
        text_.assign(name, strnlen(name, sizeof name));
        if (!is_utf8(text_.data(), text_.size())) {
            text_ = mended_utf8(text_);
        }
    }
    std::size_t size() const { return 5 + text_.size(); }
    unsigned char *store(unsigned char *to) const {
        const auto bytes = static_cast<std::uint32_t>(text_.size());
        *to = LOGSPOOL_TAG_THREAD_NAME;
        std::memcpy(to + 1, &bytes, sizeof bytes);
        std::memcpy(to + 5, text_.data(), bytes);
        return to + 5 + bytes;
    }

  private:
    std::string text_;
};

/// Stores values at a place, whatever their types.
struct stored_values {
    const void *values;
    void (*store)(const void *values, unsigned char *to);
};

/// Writes a record by the functions of the library. True: the record is accepted.
[[gnu::noinline, gnu::cold]] inline bool write_slowly(logspool_id logger, const logspool_handle *logger_handle,
                                                      logspool_id site, std::size_t bytes, stored_values values) {
    const std::uint32_t needs = load_relaxed(&logger_handle->needs);
    thread_name name;
    if ((needs & LOGSPOOL_NEEDS_THREAD) != 0) {
        bytes += thread_value_bytes;
    }
    if ((needs & LOGSPOOL_NEEDS_THREAD_NAME) != 0) {
        name.read();
        bytes += name.size();
    }
    void *const room = api().reserve(logger, site, bytes);
    if (room == nullptr) {
        return false;
    }
    auto *place = static_cast<unsigned char *>(room);
    if ((needs & LOGSPOOL_NEEDS_THREAD) != 0) {
        place = store_thread(place, syscall(SYS_gettid));
    }
    if ((needs & LOGSPOOL_NEEDS_THREAD_NAME) != 0) {
        place = name.store(place);
    }
    values.store(values.values, place);
    api().commit();
    if (this_view == nullptr || this_view->generation != load_relaxed(this_view->generation_word)) {
        this_view = api().lane_view();
    }
    return true;
}

} // namespace logspool::detail

#endif
