/// \file
/// Call sites: defined once, at their first record, and static afterwards.
#ifndef LOGSPOOL_SITE_HPP
#define LOGSPOOL_SITE_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#if __has_include(<source_location>)
#include <source_location>
#endif

#include "api.hpp"
#include "values.hpp"

namespace logspool {
namespace detail {

#if defined(__cpp_lib_source_location)
using call_location = std::source_location;
#else
/// Replaces std::source_location if the compiler lacks it.
class call_location {
  public:
    constexpr call_location(const char *file, std::uint32_t line, const char *function)
        : file_(file), function_(function), line_(line) {}
    constexpr const char *file_name() const { return file_; }
    constexpr const char *function_name() const { return function_; }
    constexpr std::uint32_t line() const { return line_; }
    constexpr std::uint32_t column() const { return 0; }

  private:
    const char *file_;
    const char *function_;
    std::uint32_t line_;
};
#endif

/// Records that were refused before the library could count them: their site could not be defined, or they are larger
/// than any record can be.
inline std::atomic<std::uint64_t> refused_here{0};

/// A handle without ids: the writer takes the slow path, which defines the site.
inline constinit const logspool_handle undefined_site{0, 0, 0};

/// Type of an argument's value.
template <class Type>
inline constexpr value_kind kind_of = std::remove_cvref_t<decltype(encoded(std::declval<const Type &>()))>::kind;

/// Types of the arguments of a template, without key-values.
template <class... Types> struct site_types {
    static constexpr std::size_t count = (std::size_t{0} + ... + (kind_of<Types> == value_kind::part ? 0 : 1));
    /// Whether a type is not in `LOGSPOOL_ARG_*`.
    static constexpr bool has_own_kind = (false || ... || (kind_of<Types> == value_kind::tuple ||
                                                           kind_of<Types> == value_kind::digits));
    static constexpr std::array<std::uint8_t, count + 1> types = [] {
        std::array<std::uint8_t, count + 1> all{};
        std::size_t next = 0;
        ((kind_of<Types> == value_kind::part ? void() : void(all[next++] = static_cast<std::uint8_t>(kind_of<Types>))),
         ...);
        return all;
    }();
};

/// The parts of a site, apart from its place.
struct site_template {
    const char *message; ///< Null: each record carries its text.
    const std::uint8_t *types;
    std::uint32_t type_count;
};

/// One call site.
struct site_slot {
    const char *file;
    const char *function;
    std::uint32_t line;
    std::uint16_t level;
    std::uint8_t flags;
    std::atomic<std::uint32_t> id{0};
    std::atomic<const logspool_handle *> handle{&undefined_site};

    constexpr site_slot(const char *in_file, const char *in_function, std::uint32_t in_line, std::uint16_t at_level,
                        std::uint8_t with_flags = 0)
        : file(in_file), function(in_function), line(in_line), level(at_level), flags(with_flags) {}

    /// Defines the site at its first record. Two threads may both define it: no thread waits for another one here, so a
    /// fork at any time leaves nothing locked. 0: it cannot be defined now, for example in a signal handler.
    [[gnu::noinline, gnu::cold]] std::uint32_t define(const site_template &what) {
        if (const std::uint32_t known = id.load(std::memory_order_acquire)) {
            return known;
        }
        logspool_site_info info{};
        info.size = sizeof info;
        info.line = line;
        info.file = file;
        info.function = function;
        info.message = what.message;
        info.level = level;
        info.grammar = LOGSPOOL_FMT;
        info.flags = flags;
        info.types = what.types;
        info.type_count = what.types == nullptr ? 0 : what.type_count;
        const logspool_id defined = api().site(&info);
        const logspool_handle *const found = defined == 0 ? nullptr : api().site_handle(defined);
        if (found == nullptr) {
            return 0;
        }
        std::uint32_t none = 0;
        if (!id.compare_exchange_strong(none, defined, std::memory_order_acq_rel)) {
            return none;
        }
        handle.store(found, std::memory_order_release);
        return defined;
    }
};

/// A site that functions found by its place. Entries are never removed. The template is kept by value and compared: a
/// plugin that is unloaded, changed and loaded again has another text at the same address.
struct found_site : site_slot {
    std::uint32_t column;
    const char *message;
    std::string text;
    const std::uint8_t *types;
    found_site *next = nullptr;

    found_site(const call_location &place, std::uint16_t at_level, const site_template &what)
        : site_slot(place.file_name(), place.function_name(), place.line(), at_level), column(place.column()),
          message(what.message), text(what.message == nullptr ? "" : what.message), types(what.types) {}

    bool is(const call_location &place, std::uint16_t wanted, const site_template &what) const {
        return line == place.line() && column == place.column() && file == place.file_name() && level == wanted &&
               message == what.message && types == what.types && function == place.function_name() &&
               (message == nullptr || text == what.message);
    }
};

/// Sites of the functions, by line and column. Chosen: 1,024 lists take 8 KiB and stay short in a program with as many
/// lines that log.
inline std::atomic<found_site *> found_sites[1024];

[[gnu::noinline, gnu::cold]] inline found_site &add_site(std::atomic<found_site *> &list, const call_location &place,
                                                         std::uint16_t level, const site_template &what) {
    auto *const added = new found_site(place, level, what);
    added->next = list.load(std::memory_order_acquire);
    while (!list.compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) {
    }
    return *added;
}

inline site_slot &site_at(const call_location &place, std::uint16_t level, const site_template &what) {
    std::atomic<found_site *> &list = found_sites[(place.line() * 31U + place.column()) % std::size(found_sites)];
    for (found_site *site = list.load(std::memory_order_acquire); site != nullptr; site = site->next) {
        if (site->is(place, level, what)) {
            return *site;
        }
    }
    return add_site(list, place, level, what);
}

/// A template that has passed the check for arguments of these types, with the place of the call.
template <class... Types> class checked_format {
  public:
    template <std::size_t Bytes>
#if defined(__cpp_lib_source_location)
    consteval checked_format(const char (&source)[Bytes], call_location place = call_location::current())
        : source_(source), place_(place) {
#else
    consteval checked_format(const char (&source)[Bytes], const char *file = __builtin_FILE(),
                             std::uint32_t line = __builtin_LINE(), const char *function = __builtin_FUNCTION())
        : source_(source), place_(file, line, function) {
#endif
        const std::array<checked_argument, sizeof...(Types) + 1> arguments{
            checked_argument{kind_of<Types>, name_of<Types>}..., checked_argument{value_kind::part, {}}};
        std::array<checked_argument, sizeof...(Types) + 1> seen = arguments;
        named_kinds<0, Types...>(seen);
        format_checker checker({source, Bytes - 1}, seen.data(), sizeof...(Types));
        checker.check();
        uses_names_ = checker.uses_names();
    }

    /// The definition of its site. Names and fields of a value are not among the types that the library checks again.
    constexpr site_template site() const {
        const bool is_fixed = !uses_names_ && !site_types<Types...>::has_own_kind;
        return {source_, is_fixed ? site_types<Types...>::types.data() : nullptr, site_types<Types...>::count};
    }
    constexpr const call_location &place() const { return place_; }

  private:
    /// A placeholder that names a key-value shows its value, so the check needs the value's type.
    template <std::size_t Index, class First, class... Rest>
    static consteval void named_kinds(std::array<checked_argument, sizeof...(Types) + 1> &seen) {
        if constexpr (!name_of<First>.empty()) {
            seen[Index].kind = kind_of<std::remove_cvref_t<decltype(std::declval<const First &>().value)>>;
        }
        named_kinds<Index + 1, Rest...>(seen);
    }
    template <std::size_t> static consteval void named_kinds(std::array<checked_argument, sizeof...(Types) + 1> &) {}

    const char *source_;
    call_location place_;
    bool uses_names_ = false;
};

} // namespace detail

/// The template of a function that logs: `template <class... Types> void log_twice(format_string<Types...> format,
/// const Types &...values)`.
template <class... Types>
using format_string = detail::checked_format<std::remove_cvref_t<std::type_identity_t<Types>>...>;

} // namespace logspool

#endif
