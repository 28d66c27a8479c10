/// \file
/// The functions of the library: linked, or called through a table that the program passes.
#ifndef LOGSPOOL_API_HPP
#define LOGSPOOL_API_HPP

#include <logspool.h>

namespace logspool {

#if defined(LOGSPOOL_NO_LINK)

namespace detail {

inline const logspool_api *table = nullptr;

inline const logspool_api &api() { return *table; }
inline bool has_api() { return table != nullptr; }

} // namespace detail

/// Sets the table that all calls go through. For extension modules, which link nothing: the table is in the capsule
/// `logspool._native._C_API` of Python. Call it before any other function. False: the table has another major version.
inline bool use(const logspool_api *table) {
    if (table == nullptr || table->major != LOGSPOOL_ABI_MAJOR || table->size < sizeof(logspool_api)) {
        return false;
    }
    detail::table = table;
    return true;
}

#else

namespace detail {

inline const logspool_api &api() { return *logspool_api_table(); }
inline constexpr bool has_api() { return true; }

} // namespace detail

#endif

} // namespace logspool

#endif
