/// \file
/// A sink of spdlog that hands records to logspool.
///
///     auto sink = std::make_shared<logspool::spdlog_sink>(logspool::logger("shop", logspool::level::trace, output));
///     spdlog::logger old("shop", sink);
///
/// spdlog has made the message by then, so a call costs what spdlog's formatting costs; the line, the time and the
/// place are logspool's. The sink takes no lock: spdlog's own pattern is not used. Tested with spdlog 1.10.
#ifndef LOGSPOOL_SPDLOG_HPP
#define LOGSPOOL_SPDLOG_HPP

#include <memory>
#include <string_view>

#include <spdlog/sinks/sink.h>

#include "logspool.hpp"

namespace logspool {

/// Level of logspool for a level of spdlog.
constexpr std::uint16_t level_of(spdlog::level::level_enum of) {
    switch (of) {
    case spdlog::level::trace:
        return level::trace;
    case spdlog::level::debug:
        return level::debug;
    case spdlog::level::info:
        return level::info;
    case spdlog::level::warn:
        return level::warning;
    case spdlog::level::err:
        return level::error;
    default:
        return level::critical;
    }
}

/// Logs each record of spdlog with a logger of logspool. The record has the name of the logspool logger.
class spdlog_sink final : public spdlog::sinks::sink {
  public:
    explicit spdlog_sink(const logger &to) : to_(to) {}

    void log(const spdlog::details::log_msg &message) override {
        const std::string_view text(message.payload.data(), message.payload.size());
        log_text(to_, level_of(message.level), text, message.source.filename,
                 static_cast<std::uint32_t>(message.source.line), message.source.funcname);
    }
    /// Waits until the records are handed to the system.
    void flush() override { logspool::flush(); }
    void set_pattern(const std::string &) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

  private:
    logger to_;
};

} // namespace logspool

#endif
