/// \file
/// Keeps the last records in memory, and logs them when a serious one is logged.
#ifndef LOGSPOOL_BACKTRACE_HPP
#define LOGSPOOL_BACKTRACE_HPP

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

#include "call.hpp"

namespace logspool {
namespace detail {

/// Tag of the wall time that a line shows instead of its stamp: 8 bytes, nanoseconds since the epoch.
inline constexpr unsigned char time_tag = 0x49;
inline constexpr std::size_t time_value_bytes = 9;

/// The last records of one logger. The memory of a place is used again.
class backtrace_ring {
  public:
    backtrace_ring(std::size_t records, std::uint16_t flush_level) : kept_(records), flush_level_(flush_level) {}

    std::uint16_t flush_level() const { return flush_level_; }

    template <class... Values> void keep(site_slot &site, const site_template &what, const Values &...values) {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        const std::int64_t time = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
        const std::size_t bytes = time_value_bytes + (std::size_t{0} + ... + values.size());
        const std::lock_guard<std::mutex> guard(lock_);
        kept_record &place = kept_[next_++ % kept_.size()];
        place.site = &site;
        place.what = what;
        place.values.resize(bytes);
        unsigned char *const start = place.values.data();
        *start = time_tag;
        store_all(store_number(start + 1, time), values...);
    }

    /// Logs the kept records, the oldest first, and removes them.
    void flush(const logger &to) {
        const std::lock_guard<std::mutex> guard(lock_);
        const std::size_t count = next_ < kept_.size() ? next_ : kept_.size();
        for (std::size_t index = next_ - count; index < next_; ++index) {
            const kept_record &record = kept_[index % kept_.size()];
            write_values(to, *record.site, record.what, record.site->level, kept_values{record.values});
        }
        next_ = 0;
    }

  private:
    struct kept_record {
        site_slot *site = nullptr;
        site_template what{};
        std::vector<unsigned char> values;
    };

    struct kept_values {
        static constexpr value_kind kind = value_kind::part;
        const std::vector<unsigned char> &values;
        std::size_t size() const { return values.size(); }
        unsigned char *store(unsigned char *to) const {
            std::memcpy(to, values.data(), values.size());
            return to + values.size();
        }
    };

    std::mutex lock_;
    std::vector<kept_record> kept_;
    std::size_t next_ = 0;
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
/// `LOGSPOOL_BACKTRACE`. A record of `flush_level` or above is preceded by them. The lowest flush level is WARNING,
/// since calls below it do not look for a backtrace. The ring lives as long as the process. Keeping a record takes a
/// lock and, until each place has been used, memory of the heap.
inline void enable_backtrace(logger &to, std::size_t records, std::uint16_t flush_level = level::error) {
    const std::uint16_t lowest = flush_level < level::warning ? level::warning : flush_level;
    to.set_backtrace(new detail::backtrace_ring(records == 0 ? 1 : records, lowest));
}

/// Logs the kept records of a logger now.
inline void flush_backtrace(const logger &to) {
    if (to.backtrace() != nullptr) {
        to.backtrace()->flush(to);
    }
}

} // namespace logspool

#endif
