/// \file
/// The functions of the library: linked, or called through a table that the program passes.
#ifndef LOGSPOOL_API_HPP
#define LOGSPOOL_API_HPP

#include <cstdio>

#include <logspool.h>

namespace logspool {

#if defined(LOGSPOOL_NO_LINK)

namespace detail {

// Hidden: each shared library of a process has its own table, whatever else uses this header there.
[[gnu::visibility("hidden")]] inline const logspool_api *table = nullptr;
[[gnu::visibility("hidden")]] inline thread_local char use_error[128] = "logspool::use() was not called";

[[gnu::visibility("hidden")]] inline const logspool_api &api() { return *table; }
[[gnu::visibility("hidden")]] inline bool has_api() { return table != nullptr; }
[[gnu::visibility("hidden")]] inline const char *missing_api() { return use_error; }

} // namespace detail

/// Sets the table that all calls go through. For programs that link nothing: the table is in the capsule
/// `logspool._native._C_API` of Python (`logspool_python.hpp` gets it from there). Call it before any other function.
/// False: the table has another major version, or lacks functions that this header calls. `last_error()` says which;
/// loggers and sinks then fail with this text, unless another table was set before.
[[gnu::visibility("hidden")]] inline bool use(const logspool_api *table) {
    if (table == nullptr) {
        std::snprintf(detail::use_error, sizeof detail::use_error, "logspool::use() got no table");
        return false;
    }
    if (table->major != LOGSPOOL_ABI_MAJOR) {
        std::snprintf(detail::use_error, sizeof detail::use_error,
                      "the core of logspool has major version %u of the interface; this header has %u", table->major,
                      static_cast<unsigned>(LOGSPOOL_ABI_MAJOR));
        return false;
    }
    if (table->size < sizeof(logspool_api)) {
        std::snprintf(detail::use_error, sizeof detail::use_error,
                      "the core of logspool has version %u.%u of the interface; this header needs %u.%u", table->major,
                      table->minor, static_cast<unsigned>(LOGSPOOL_ABI_MAJOR),
                      static_cast<unsigned>(LOGSPOOL_ABI_MINOR));
        return false;
    }
    detail::table = table;
    return true;
}

#else

namespace detail {

inline const logspool_api &api() { return *logspool_api_table(); }
inline constexpr bool has_api() { return true; }
inline const char *missing_api() { return ""; }

} // namespace detail

#endif

} // namespace logspool

#endif
