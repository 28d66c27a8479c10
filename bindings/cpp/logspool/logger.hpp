/// \file
/// Sinks, loggers, and the functions of the whole process.
#ifndef LOGSPOOL_LOGGER_HPP
#define LOGSPOOL_LOGGER_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api.hpp"
#include "lane.hpp"

namespace logspool {

/// Levels, as Python's logging numbers them. Every number from 1 to 65535 is a level.
namespace level {

inline constexpr std::uint16_t trace = 5;
inline constexpr std::uint16_t debug = 10;
inline constexpr std::uint16_t info = 20;
inline constexpr std::uint16_t warning = 30;
inline constexpr std::uint16_t error = 40;
inline constexpr std::uint16_t critical = 50;

} // namespace level

/// A definition failed. Calls that log throw nothing.
class setup_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Text of the last error of this thread.
inline const char *last_error() {
    return detail::has_api() ? detail::api().last_error() : detail::missing_api();
}

namespace detail {

/// Throws; without exceptions the caller returns an object that is false.
inline void fail_setup() {
#if defined(__cpp_exceptions)
    throw setup_error(last_error());
#endif
}

/// The handle of a logger that logs nothing.
inline constinit const logspool_handle no_logger{0, 0xFFFFFFFFU, 0};

class backtrace_ring;

/// A C string or the bytes of a `std::string`, which the caller keeps until the end of the call.
class c_text {
  public:
    c_text(const char *text) : text_(text) {}
    c_text(const std::string &text) : text_(text.c_str()) {}
    operator const char *() const { return text_; }

  private:
    const char *text_;
};

} // namespace detail

/// Sets options of the process's queue: a JSON object, see `logspool_configure` in `logspool.h`. Call it first.
inline void configure(detail::c_text options) {
    if (!detail::has_api() || detail::api().configure(options) != LOGSPOOL_OK) {
        detail::fail_setup();
    }
}

/// Where records are written. A copy is the same sink.
class sink {
  public:
    sink() = default;

    /// Opens "stdout", "stderr", "fd:N", the path of a file, the address of a service (of several with one store:
    /// "tcp://a:9020,b:9020"), or a JSON object; `format` is a JSON object or null. See `logspool_sink_open` in
    /// `logspool.h`. Throws `setup_error`.
    explicit sink(const char *address, detail::c_text format = nullptr)
        : id_(detail::has_api() ? detail::api().sink_open(address, format) : 0) {
        if (id_ == 0) {
            detail::fail_setup();
        }
    }
    explicit sink(const std::string &address, detail::c_text format = nullptr) : sink(address.c_str(), format) {}

    /// Closes the sink: it is gone when its last logger is closed, or has other sinks, and its records are written. Every
    /// copy of it is useless then. False: it is closed.
    bool close() { return id_ != 0 && detail::api().sink_close(std::exchange(id_, 0)) == LOGSPOOL_OK; }

    logspool_id id() const { return id_; }
    explicit operator bool() const { return id_ != 0; }

  private:
    logspool_id id_ = 0;
};

/// Names the program's part that logs, and the lowest level that is logged. A copy is the same logger. A default logger
/// logs nothing.
class logger {
  public:
    logger() = default;

    /// Makes a logger, or finds the logger of this name. Throws `setup_error`.
    logger(detail::c_text name, std::uint16_t level, std::initializer_list<sink> sinks = {}) {
        define(name, level, ids_of(sinks));
    }
    logger(detail::c_text name, std::uint16_t level, const std::vector<sink> &sinks) {
        define(name, level, ids_of(sinks));
    }
    logger(detail::c_text name, std::uint16_t level, const sink &only) { define(name, level, {only.id()}); }

    /// Finds a logger by its name and changes nothing. The result is false if there is no such logger.
    static logger find(detail::c_text name) {
        logger found;
        if (const logspool_id id = detail::has_api() ? detail::api().logger_find(name) : 0) {
            found.refer_to(id);
        }
        return found;
    }

    /// Takes back one definition of the logger of this name. The last one closes it: its queued records are written
    /// under its name, and its place is free for another logger. No copy of it may be used during this call or later.
    /// False: it is closed.
    bool close() {
        const logspool_id id = std::exchange(*this, logger()).id_;
        return id != 0 && detail::api().logger_close(id) == LOGSPOOL_OK;
    }

    logspool_id id() const { return id_; }
    explicit operator bool() const { return id_ != 0; }

    /// The lowest level that is logged.
    std::uint16_t level() const { return static_cast<std::uint16_t>(detail::load_relaxed(&handle_->level)); }

    /// Whether records of this level are logged: one relaxed load and a comparison.
    bool logs(std::uint16_t level) const { return level >= detail::load_relaxed(&handle_->level); }

    /// Changes the lowest level that is logged, for all copies.
    void set_level(std::uint16_t level) const {
        if (id_ != 0) {
            detail::api().logger_level(id_, level);
        }
    }

    const logspool_handle *handle() const { return handle_; }

    /// Records that are kept in memory until a serious one is logged; see `backtrace.hpp`. Null: it keeps no records.
    detail::backtrace_ring *backtrace() const { return backtrace_; }
    void set_backtrace(detail::backtrace_ring *ring) { backtrace_ = ring; }

  private:
    template <class Sinks> static std::vector<logspool_id> ids_of(const Sinks &sinks) {
        std::vector<logspool_id> ids;
        for (const sink &each : sinks) {
            ids.push_back(each.id());
        }
        return ids;
    }

    void define(const char *name, std::uint16_t level, const std::vector<logspool_id> &sinks) {
        const logspool_id id =
            detail::has_api() ? detail::api().logger(name, level, sinks.data(), sinks.size()) : 0;
        if (id == 0) {
            detail::fail_setup();
            return;
        }
        refer_to(id);
    }

    void refer_to(logspool_id id) {
        id_ = id;
        if (const logspool_handle *const found = detail::api().logger_handle(id)) {
            handle_ = found;
        }
    }

    logspool_id id_ = 0;
    const logspool_handle *handle_ = &detail::no_logger;
    detail::backtrace_ring *backtrace_ = nullptr;
};

/// A logger or a sink that its destructor closes, for a connection or a job: `logspool::scoped<logspool::logger>`. It can
/// be moved.
template <class Handle> class scoped : public Handle {
  public:
    using Handle::Handle;
    scoped(scoped &&other) noexcept : Handle(std::exchange(static_cast<Handle &>(other), Handle())) {}
    scoped &operator=(scoped &&other) noexcept {
        if (this != &other) {
            this->close();
            Handle::operator=(std::exchange(static_cast<Handle &>(other), Handle()));
        }
        return *this;
    }
    ~scoped() { this->close(); }
};

/// Finds a logger by its name and changes nothing. The result is false if there is no such logger.
inline logger get(detail::c_text name) { return logger::find(name); }

/// Waits until all records that were logged before are handed to the system. Negative: for ever. False: the time was
/// up.
inline bool flush(double timeout_seconds = -1.0) {
    return detail::has_api() && detail::api().flush(timeout_seconds) == LOGSPOOL_OK;
}

/// Writes everything that is queued. Call it before `_exit`; `exit` and the end of `main` do it by themselves.
inline bool drain(double timeout_seconds = 5.0) {
    return detail::has_api() && detail::api().drain(timeout_seconds) == LOGSPOOL_OK;
}

/// Delivers the records that dead processes left in a queue folder; null is the folder of this process. Returns their
/// number, or a negative error.
inline long long recover(detail::c_text folder = nullptr) {
    return detail::has_api() ? detail::api().recover(folder) : static_cast<long long>(LOGSPOOL_FAILED);
}

} // namespace logspool

#endif
