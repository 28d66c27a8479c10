/// \file
/// Keeps the last records in memory, and logs them when a serious one is logged.
#ifndef LOGSPOOL_BACKTRACE_HPP
#define LOGSPOOL_BACKTRACE_HPP

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call.hpp"

namespace logspool {
namespace detail {

/// Tag of the wall time that a line shows instead of its stamp: 8 bytes, nanoseconds since the epoch.
inline constexpr unsigned char time_tag = 0x49;
inline constexpr std::size_t time_value_bytes = 9;

/// Id of the calling thread, as the kernel has it. A forked child asks again.
inline std::int32_t thread_number() {
    thread_local std::int32_t number = 0;
    thread_local std::uint64_t generation = 0;
    const std::uint64_t now = api().generation();
    if (number == 0 || generation != now) {
        number = static_cast<std::int32_t>(syscall(SYS_gettid));
        generation = now;
    }
    return number;
}

/// A record by value: nothing in it refers to the code that made it, which may be a plugin that is unloaded.
struct kept_record {
    const logspool_handle *site; ///< Of the library, valid for the life of the process. Null: only a text is kept.
    logspool_id id;
    std::uint32_t line;
    std::uint16_t level;
    std::size_t bytes;
    std::size_t capacity;
    unsigned char *values; ///< Values; or file, function and text, the first two with a NUL each.
};

/// The last records of one thread. Its memory comes from mmap: malloc would wait for itself in a signal handler.
class thread_ring {
  public:
    static thread_ring *make(std::size_t records, std::int32_t owner) {
        constexpr std::size_t each = sizeof(kept_record) + slot_bytes;
        if (records > (SIZE_MAX / 2) / each) {
            return nullptr;
        }
        void *const place = map(sizeof(thread_ring) + records * each);
        return place == nullptr ? nullptr : new (place) thread_ring(records, owner);
    }

    thread_ring *next = nullptr;

    /// The place for a record of `bytes` bytes. Null: this call interrupts another call of its thread, or there is no
    /// memory. After it `publish` must be called.
    kept_record *begin(std::size_t bytes) {
        if (is_busy_.load(std::memory_order_relaxed)) {
            return nullptr;
        }
        is_busy_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        kept_record &place = record(count_ % records_);
        if (bytes > place.capacity && !grow(place, bytes)) {
            leave();
            return nullptr;
        }
        place.bytes = bytes;
        return &place;
    }

    void publish() {
        ++count_;
        leave();
    }

    /// Logs the kept records, the oldest first, and removes them.
    void flush(const logger &to) {
        if (is_busy_.load(std::memory_order_relaxed)) {
            return;
        }
        is_busy_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const std::size_t kept = count_ < records_ ? count_ : records_;
        for (std::size_t index = count_ - kept; index < count_; ++index) {
            kept_record &each = record(index % records_);
            each.site == nullptr ? write_text(to, each) : write(to, each);
            shrink(index % records_);
        }
        count_ = 0;
        leave();
    }

    bool is_of(std::int32_t thread) const { return owner_.load(std::memory_order_relaxed) == thread; }

    /// Takes the ring of a thread that has ended.
    bool adopt(std::int32_t thread) {
        std::int32_t former = owner_.load(std::memory_order_relaxed);
        if (syscall(SYS_tgkill, getpid(), former, 0) == 0 || errno != ESRCH ||
            !owner_.compare_exchange_strong(former, thread, std::memory_order_relaxed)) {
            return false;
        }
        // Makes the writes of the former thread visible. In a forked child that thread may have ended in the middle of
        // a call, so its records are dropped before one is read.
        static_cast<void>(is_busy_.load(std::memory_order_acquire));
        count_ = 0;
        is_busy_.store(false, std::memory_order_relaxed);
        return true;
    }

  private:
    /// Chosen: a record with some numbers and short texts. A longer one gets pages of its own.
    static constexpr std::size_t slot_bytes = 256;
    /// Chosen: pages above this size are given back when their record is logged.
    static constexpr std::size_t lasting_bytes = 65536;

    thread_ring(std::size_t records, std::int32_t owner) : owner_(owner), records_(records) {
        for (std::size_t index = 0; index < records; ++index) {
            new (&record(index)) kept_record{nullptr, 0, 0, 0, 0, slot_bytes, slot(index)};
        }
    }

    static void *map(std::size_t bytes) {
        void *const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return place == MAP_FAILED ? nullptr : place;
    }

    kept_record &record(std::size_t index) { return reinterpret_cast<kept_record *>(this + 1)[index]; }
    unsigned char *slot(std::size_t index) {
        return reinterpret_cast<unsigned char *>(&record(records_)) + index * slot_bytes;
    }

    static bool grow(kept_record &place, std::size_t bytes) {
        const std::size_t capacity = (bytes + 4095) & ~std::size_t{4095};
        void *const values = map(capacity);
        if (values == nullptr) {
            return false;
        }
        if (place.capacity > slot_bytes) {
            munmap(place.values, place.capacity);
        }
        place.values = static_cast<unsigned char *>(values);
        place.capacity = capacity;
        return true;
    }

    void shrink(std::size_t index) {
        kept_record &place = record(index);
        if (place.capacity > lasting_bytes) {
            munmap(place.values, place.capacity);
            place.values = slot(index);
            place.capacity = slot_bytes;
        }
    }

    void leave() { is_busy_.store(false, std::memory_order_release); }

    static void write(const logger &to, const kept_record &kept) {
        const auto store = [&kept](unsigned char *place) { std::memcpy(place, kept.values, kept.bytes); };
        if (try_write(to.handle(), kept.site, kept.level, kept.bytes, store)) {
            return;
        }
        const stored_values stored{&store, [](const void *all, unsigned char *place) {
                                       (*static_cast<decltype(&store)>(all))(place);
                                   }};
        if (!write_slowly(to.id(), to.handle(), kept.id, kept.bytes, stored) && is_uncounted(api().last_status())) {
            refused_here.fetch_add(1, std::memory_order_relaxed);
        }
    }

    static void write_text(const logger &to, const kept_record &kept) {
        const char *const file = reinterpret_cast<const char *>(kept.values);
        const char *const function = file + std::strlen(file) + 1;
        const char *const text = function + std::strlen(function) + 1;
        const std::size_t bytes = kept.bytes - static_cast<std::size_t>(text - file);
        if (is_uncounted(api().text(to.id(), kept.level, text, bytes, file, kept.line, function))) {
            refused_here.fetch_add(1, std::memory_order_relaxed);
        }
    }

    std::atomic<std::int32_t> owner_;
    std::atomic<bool> is_busy_{false};
    std::size_t records_;
    std::size_t count_ = 0;
};

/// The kept records of one logger. Each thread has a ring of its own, which only this thread reads and writes.
class backtrace_ring {
  public:
    backtrace_ring(std::size_t records, std::uint16_t flush_level) : records_(records), flush_level_(flush_level) {}

    std::uint16_t flush_level() const { return flush_level_; }

    template <class... Values> void keep(site_slot &site, const site_template &what, const Values &...values) {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        const std::int64_t time = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
        thread_ring *const ring = own_ring();
        const std::uint32_t id = site.define(what);
        if (id == 0) {
            keep_text(ring, site, what);
            return;
        }
        const std::size_t bytes = time_value_bytes + (std::size_t{0} + ... + values.size());
        kept_record *const place = ring == nullptr ? nullptr : ring->begin(bytes);
        if (place == nullptr) {
            refused_here.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        // Another thread may have defined the site and not yet stored its handle.
        const logspool_handle *const handle = site.handle.load(std::memory_order_acquire);
        place->site = load_relaxed(&handle->ids) == 0 ? api().site_handle(id) : handle;
        place->id = id;
        place->level = site.level;
        *place->values = time_tag;
        store_all(store_number(place->values + 1, time), values...);
        ring->publish();
    }

    /// Logs what this thread has kept.
    void flush(const logger &to) {
        if (thread_ring *const ring = find(thread_number())) {
            ring->flush(to);
        }
    }

  private:
    /// Chosen: 64 lists take 512 bytes for each logger with a backtrace.
    static constexpr std::size_t lists = 64;

    std::atomic<thread_ring *> &list(std::int32_t thread) { return rings_[static_cast<std::uint32_t>(thread) % lists]; }

    thread_ring *find(std::int32_t thread) {
        thread_ring *ring = list(thread).load(std::memory_order_acquire);
        while (ring != nullptr && !ring->is_of(thread)) {
            ring = ring->next;
        }
        return ring;
    }

    thread_ring *own_ring() {
        const std::int32_t thread = thread_number();
        thread_ring *const known = find(thread);
        return known == nullptr ? add(thread) : known;
    }

    [[gnu::noinline, gnu::cold]] thread_ring *add(std::int32_t thread) {
        const int saved = errno;
        std::atomic<thread_ring *> &first = list(thread);
        thread_ring *ring = first.load(std::memory_order_acquire);
        while (ring != nullptr && !ring->adopt(thread)) {
            ring = ring->next;
        }
        if (ring == nullptr && (ring = thread_ring::make(records_, thread)) != nullptr) {
            ring->next = first.load(std::memory_order_acquire);
            while (!first.compare_exchange_weak(ring->next, ring, std::memory_order_acq_rel)) {
            }
        }
        errno = saved;
        return ring;
    }

    /// Keeps the template of a site that cannot be defined now, as in a signal handler that interrupts the library.
    [[gnu::noinline, gnu::cold]] static void keep_text(thread_ring *ring, const site_slot &site,
                                                       const site_template &what) {
        const std::string_view file = site.file;
        const std::string_view function = site.function;
        const std::string_view text = what.message == nullptr ? std::string_view{} : what.message;
        const std::size_t bytes = file.size() + 1 + function.size() + 1 + text.size();
        kept_record *const place = ring == nullptr ? nullptr : ring->begin(bytes);
        if (place == nullptr) {
            refused_here.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        place->site = nullptr;
        place->line = site.line;
        place->level = site.level;
        unsigned char *to = place->values;
        for (const std::string_view part : {file, function}) {
            to = store_bytes(to, part.data(), part.size());
            *to++ = 0;
        }
        store_bytes(to, text.data(), text.size());
        ring->publish();
    }

    std::atomic<thread_ring *> rings_[lists]{};
    std::size_t records_;
    std::uint16_t flush_level_;
};

[[gnu::noinline, gnu::cold]] inline void flush_backtrace(backtrace_ring &ring, const logger &to, std::uint16_t level) {
    if (level >= ring.flush_level()) {
        ring.flush(to);
    }
}

template <std::uint16_t Level, class... Types>
inline void keep_at(const logger &to, site_slot &site, const format_string<Types...> &format,
                    const Types &...arguments) {
    const auto keep = [&](auto &&...values) {
        mended_texts owners;
        if (!(true && ... && values.is_well_formed())) {
            (values.mend(owners), ...);
        }
        to.backtrace()->keep(site, format.site(), values...);
    };
    if (to.backtrace() != nullptr) {
        keep(encoded(arguments)...);
    }
}

} // namespace detail

/// Gives a logger, and the copies that are made of it from now on, a memory of the last `records` records of
/// `LOGSPOOL_BACKTRACE` of each thread. Before a record of `flush_level` or above, the records in the memory of its
/// thread are logged. The lowest flush level is WARNING, since calls below it do not look for a backtrace. The memory
/// lives as long as the process; a later thread uses the memory of a thread that has ended. Keeping a record takes no
/// lock and no memory of the heap, so signal handlers may do it; a handler that interrupts a call that keeps is refused
/// and counted.
inline void enable_backtrace(logger &to, std::size_t records, std::uint16_t flush_level = level::error) {
    const std::uint16_t lowest = flush_level < level::warning ? level::warning : flush_level;
    to.set_backtrace(new detail::backtrace_ring(records == 0 ? 1 : records, lowest));
}

/// Logs the records of a logger that this thread has kept.
inline void flush_backtrace(const logger &to) {
    if (to.backtrace() != nullptr) {
        to.backtrace()->flush(to);
    }
}

} // namespace logspool

#endif
