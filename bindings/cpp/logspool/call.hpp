/// \file
/// One log call: its values, its site, the lane.
#ifndef LOGSPOOL_CALL_HPP
#define LOGSPOOL_CALL_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cut.hpp"
#include "lane.hpp"
#include "logger.hpp"
#include "site.hpp"
#include "values.hpp"

namespace logspool::detail {

/// Flushes the kept records of a logger, if it has any; defined in `backtrace.hpp`.
void flush_backtrace(backtrace_ring &ring, const logger &to, std::uint16_t level);

/// Stores key-values first, then the arguments, as the form of a record asks.
template <class... Values> [[gnu::always_inline]] inline void store_all(unsigned char *to, const Values &...values) {
    static_cast<void>(to);
    ((to = Values::kind == value_kind::part ? values.store(to) : to), ...);
    ((to = Values::kind == value_kind::part ? to : values.store(to)), ...);
}

/// Whether the last call of the library was refused without being counted there.
inline bool is_uncounted(int status) {
    return status != LOGSPOOL_OK && status != LOGSPOOL_DISABLED && status != LOGSPOOL_REFUSED;
}

/// Writes a record whose texts are too long for one.
[[gnu::noinline, gnu::cold]] inline void write_cut(const logger &to, std::uint32_t site, std::size_t bytes,
                                                   stored_values values) {
    std::string whole(bytes, '\0');
    values.store(values.values, reinterpret_cast<unsigned char *>(whole.data()));
    const std::string cut = cut_values(whole);
    const stored_values stored{&cut, [](const void *all, unsigned char *place) {
                                   const std::string &from = *static_cast<const std::string *>(all);
                                   std::memcpy(place, from.data(), from.size());
                               }};
    if (!write_slowly(to.id(), to.handle(), site, cut.size(), stored) && is_uncounted(api().last_status())) {
        refused_here.fetch_add(1, std::memory_order_relaxed);
    }
}

template <class... Values>
[[gnu::noinline, gnu::cold]] inline void write_defined(const logger &to, site_slot &site, const site_template &what,
                                                       std::size_t bytes, const Values &...values) {
    const std::uint32_t id = site.define(what);
    if (id == 0) {
        // Of a site that cannot be defined now only the template is logged; the library counts it if it refuses it.
        const std::string_view text = what.message == nullptr ? std::string_view{} : what.message;
        if (is_uncounted(api().text(to.id(), site.level, text.data(), text.size(), site.file, site.line,
                                    site.function))) {
            refused_here.fetch_add(1, std::memory_order_relaxed);
        }
        return;
    }
    const auto store = [&values...](unsigned char *place) { store_all(place, values...); };
    const stored_values stored{&store, [](const void *all, unsigned char *place) {
                                   (*static_cast<decltype(&store)>(all))(place);
                               }};
    if (bytes > max_record_bytes) {
        write_cut(to, id, bytes, stored);
        return;
    }
    if (!write_slowly(to.id(), to.handle(), id, bytes, stored) && is_uncounted(api().last_status())) {
        refused_here.fetch_add(1, std::memory_order_relaxed);
    }
}

/// Logs values whose texts are UTF-8.
template <class... Values>
[[gnu::always_inline]] inline void write_values(const logger &to, site_slot &site, const site_template &what,
                                                std::uint16_t level, const Values &...values) {
    const std::size_t bytes = (std::size_t{0} + ... + values.size());
    const logspool_handle *const handle = site.handle.load(std::memory_order_acquire);
    if (!try_write(to.handle(), handle, level, bytes, [&](unsigned char *place) { store_all(place, values...); })) {
        write_defined(to, site, what, bytes, values...);
    }
}

template <class... Values>
[[gnu::noinline, gnu::cold]] inline void write_mended(const logger &to, site_slot &site, const site_template &what,
                                                      std::uint16_t level, Values &...values) {
    mended_texts owners;
    (values.mend(owners), ...);
    write_values(to, site, what, level, values...);
}

/// Logs values. The caller has compared the level.
template <class... Values>
[[gnu::always_inline]] inline void write_encoded(const logger &to, site_slot &site, const site_template &what,
                                                 std::uint16_t level, Values &&...values) {
    if (level >= level::warning && __builtin_expect(to.backtrace() != nullptr, 0)) {
        flush_backtrace(*to.backtrace(), to, level);
    }
    if (__builtin_expect((true && ... && values.is_well_formed()), 1)) {
        write_values(to, site, what, level, values...);
    } else {
        write_mended(to, site, what, level, values...);
    }
}

/// Logs a record of a static site.
template <std::uint16_t Level, class... Types>
[[gnu::always_inline]] inline void log_at(const logger &to, site_slot &site, const format_string<Types...> &format,
                                          const Types &...arguments) {
    write_encoded(to, site, format.site(), Level, encoded(arguments)...);
}

/// Logs a record of the site that has the place of the call.
template <class... Types>
[[gnu::always_inline]] inline void log_here(const logger &to, std::uint16_t level,
                                            const format_string<Types...> &format, const Types &...arguments) {
    if (to.logs(level)) {
        const site_template what = format.site();
        write_encoded(to, site_at(format.place(), level, what), what, level, encoded(arguments)...);
    }
}

/// A finished text as the message of a site without a template.
using message_value = text_value<value_kind::text, LOGSPOOL_TAG_MESSAGE>;

/// Key-values come after the message tag or before it: both are parts that are no arguments.
template <class... Types>
[[gnu::always_inline]] inline void text_at(const logger &to, site_slot &site, std::uint16_t level,
                                           std::string_view text, const Types &...key_values) {
    static_assert((true && ... && (kind_of<Types> == value_kind::part)), "only key-values can follow a finished text");
    write_encoded(to, site, site_template{nullptr, nullptr, 0}, level, message_value(text), encoded(key_values)...);
}

} // namespace logspool::detail

#endif
