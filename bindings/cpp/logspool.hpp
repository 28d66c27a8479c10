/// \file
/// logspool for C++20: logging that formats after the call, in another thread. Header only; link `liblogspool`.
///
///     logspool::logger log("shop", logspool::level::info, logspool::sink("stdout"));
///     LOGSPOOL_INFO(log, "user {} did {} in {:.3f} ms", name, count, milliseconds);
///
/// A call compares the level, stores its arguments in the lane of its thread and returns. It makes no call of the
/// library, takes no lock and allocates nothing, unless the lane is full, the record is its site's or thread's first,
/// or the options ask for durable calls. The template is checked at compile time; `docs/how-to/log-from-cpp.md` has
/// types, adapters and the way from other loggers.
///
/// Every call may be made by any thread. A call that logs throws only the exceptions of the program's own codecs,
/// visitors and conversions, and nothing is logged then.
#ifndef LOGSPOOL_HPP
#define LOGSPOOL_HPP

#if __cplusplus < 201709L
#error "logspool.hpp is C++20: compile with -std=c++20; with CMake: target_compile_features(program PRIVATE cxx_std_20)"
#else

#include "logspool/api.hpp"
#include "logspool/backtrace.hpp"
#include "logspool/call.hpp"
#include "logspool/counters.hpp"
#include "logspool/format.hpp"
#include "logspool/lane.hpp"
#include "logspool/logger.hpp"
#include "logspool/rate.hpp"
#include "logspool/site.hpp"
#include "logspool/values.hpp"

/// Macros with a level below this one are checked, but make no code. Define it before the header is included.
#ifndef LOGSPOOL_ACTIVE_LEVEL
#define LOGSPOOL_ACTIVE_LEVEL 0
#endif

namespace logspool {

namespace detail {

/// Whether macros with this level make code.
constexpr bool is_active(long level, long floor) { return level >= floor; }

} // namespace detail

/// Logs at any level: `log(logger, level, "template", arguments...)`. The site has the place of the call, which is
/// found in a table: some nanoseconds more than a macro. Functions have no compile-time floor.
template <class... Types>
inline void log(const logger &to, std::uint16_t level, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level, format, arguments...);
}

template <class... Types>
inline void trace(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::trace, format, arguments...);
}

template <class... Types>
inline void debug(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::debug, format, arguments...);
}

template <class... Types>
inline void info(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::info, format, arguments...);
}

template <class... Types>
inline void warning(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::warning, format, arguments...);
}

template <class... Types>
inline void error(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::error, format, arguments...);
}

template <class... Types>
inline void critical(const logger &to, format_string<Types...> format, const Types &...arguments) {
    detail::log_here<Types...>(to, level::critical, format, arguments...);
}

/// Logs a finished text, which is not parsed, with the place of another logger's call. `file` and `function` may be
/// null; they are copied. For adapters: a place that is a string literal is better served by `LOGSPOOL_TEXT`.
inline void log_text(const logger &to, std::uint16_t level, std::string_view text, const char *file = nullptr,
                     std::uint32_t line = 0, const char *function = nullptr) {
    if (to && to.logs(level)) {
        if (level >= level::warning && to.backtrace() != nullptr) {
            detail::flush_backtrace(*to.backtrace(), to, level);
        }
        if (detail::is_uncounted(detail::api().text(to.id(), level, text.data(), text.size(), file, line, function))) {
            detail::refused_here.fetch_add(1, std::memory_order_relaxed);
        }
    }
}

} // namespace logspool

/// The common part of the macros: a floor, a level, a static site.
#define LOGSPOOL_DETAIL_SITE(level_)                                                                                   \
    static constinit ::logspool::detail::site_slot logspool_site(__FILE__, __builtin_FUNCTION(), __LINE__, level_)
#define LOGSPOOL_DETAIL_IF(logger_, level_)                                                                            \
    if constexpr (::logspool::detail::is_active(level_, LOGSPOOL_ACTIVE_LEVEL))                                        \
        if (const ::logspool::logger &logspool_to = (logger_); logspool_to.logs(level_))

/// Logs at a constant level. The logger is evaluated once, the arguments only if the level is logged.
#define LOGSPOOL_LOG(logger_, level_, ...)                                                                             \
    do {                                                                                                               \
        LOGSPOOL_DETAIL_IF(logger_, level_) {                                                                          \
            LOGSPOOL_DETAIL_SITE(level_);                                                                              \
            ::logspool::detail::log_at<level_>(logspool_to, logspool_site, __VA_ARGS__);                               \
        }                                                                                                              \
    } while (false)

/// Logs the first of every `n_` calls of this site.
#define LOGSPOOL_LOG_EVERY_N(logger_, level_, n_, ...)                                                                 \
    do {                                                                                                               \
        LOGSPOOL_DETAIL_IF(logger_, level_) {                                                                          \
            static constinit ::logspool::detail::every_n logspool_rate;                                                \
            if (logspool_rate.passes(n_)) {                                                                            \
                LOGSPOOL_DETAIL_SITE(level_);                                                                          \
                ::logspool::detail::log_at<level_>(logspool_to, logspool_site, __VA_ARGS__);                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (false)

/// Logs at most one call of this site in each interval, a std::chrono duration. If others were held back before it, the
/// record has their number as the key-value `suppressed`.
#define LOGSPOOL_LOG_LIMIT(logger_, level_, interval_, ...)                                                            \
    do {                                                                                                               \
        LOGSPOOL_DETAIL_IF(logger_, level_) {                                                                          \
            static constinit ::logspool::detail::one_per_interval logspool_rate;                                       \
            const auto logspool_held = logspool_rate.passes(interval_);                                                \
            if (logspool_held >= 0) {                                                                                  \
                LOGSPOOL_DETAIL_SITE(level_);                                                                          \
                if (logspool_held == 0) {                                                                              \
                    ::logspool::detail::log_at<level_>(logspool_to, logspool_site, __VA_ARGS__);                       \
                } else {                                                                                               \
                    ::logspool::detail::log_at<level_>(logspool_to, logspool_site, __VA_ARGS__,                        \
                                                       ::logspool::kv("suppressed", logspool_held));                   \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (false)

/// Logs a finished text, which is not parsed. Key-values may follow it.
#define LOGSPOOL_TEXT(logger_, level_, ...)                                                                            \
    do {                                                                                                               \
        LOGSPOOL_DETAIL_IF(logger_, level_) {                                                                          \
            LOGSPOOL_DETAIL_SITE(level_);                                                                              \
            ::logspool::detail::text_at(logspool_to, logspool_site, level_, __VA_ARGS__);                              \
        }                                                                                                              \
    } while (false)

/// Keeps a record in the memory of the logger, if it has one (`enable_backtrace`), at any level of the logger.
#define LOGSPOOL_BACKTRACE(logger_, level_, ...)                                                                       \
    do {                                                                                                               \
        if constexpr (::logspool::detail::is_active(level_, LOGSPOOL_ACTIVE_LEVEL)) {                                  \
            static constinit ::logspool::detail::site_slot logspool_site(                                              \
                __FILE__, __builtin_FUNCTION(), __LINE__, level_, LOGSPOOL_SITE_ALWAYS);                               \
            ::logspool::detail::keep_at<level_>(logger_, logspool_site, __VA_ARGS__);                                  \
        }                                                                                                              \
    } while (false)

#define LOGSPOOL_TRACE(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::trace, __VA_ARGS__)
#define LOGSPOOL_DEBUG(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::debug, __VA_ARGS__)
#define LOGSPOOL_INFO(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::info, __VA_ARGS__)
#define LOGSPOOL_WARNING(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::warning, __VA_ARGS__)
#define LOGSPOOL_ERROR(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::error, __VA_ARGS__)
#define LOGSPOOL_CRITICAL(logger_, ...) LOGSPOOL_LOG(logger_, ::logspool::level::critical, __VA_ARGS__)

#define LOGSPOOL_TRACE_EVERY_N(logger_, n_, ...)                                                                       \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::trace, n_, __VA_ARGS__)
#define LOGSPOOL_DEBUG_EVERY_N(logger_, n_, ...)                                                                       \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::debug, n_, __VA_ARGS__)
#define LOGSPOOL_INFO_EVERY_N(logger_, n_, ...)                                                                        \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::info, n_, __VA_ARGS__)
#define LOGSPOOL_WARNING_EVERY_N(logger_, n_, ...)                                                                     \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::warning, n_, __VA_ARGS__)
#define LOGSPOOL_ERROR_EVERY_N(logger_, n_, ...)                                                                       \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::error, n_, __VA_ARGS__)
#define LOGSPOOL_CRITICAL_EVERY_N(logger_, n_, ...)                                                                    \
    LOGSPOOL_LOG_EVERY_N(logger_, ::logspool::level::critical, n_, __VA_ARGS__)

#define LOGSPOOL_TRACE_LIMIT(logger_, interval_, ...)                                                                  \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::trace, interval_, __VA_ARGS__)
#define LOGSPOOL_DEBUG_LIMIT(logger_, interval_, ...)                                                                  \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::debug, interval_, __VA_ARGS__)
#define LOGSPOOL_INFO_LIMIT(logger_, interval_, ...)                                                                   \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::info, interval_, __VA_ARGS__)
#define LOGSPOOL_WARNING_LIMIT(logger_, interval_, ...)                                                                \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::warning, interval_, __VA_ARGS__)
#define LOGSPOOL_ERROR_LIMIT(logger_, interval_, ...)                                                                  \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::error, interval_, __VA_ARGS__)
#define LOGSPOOL_CRITICAL_LIMIT(logger_, interval_, ...)                                                               \
    LOGSPOOL_LOG_LIMIT(logger_, ::logspool::level::critical, interval_, __VA_ARGS__)

#endif // C++20
#endif // LOGSPOOL_HPP
