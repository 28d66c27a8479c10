/// \file
/// The logging function of ONNX Runtime, for `Ort::Env` and `OrtApi::CreateEnvWithCustomLogger`.
///
///     logspool::logger log("onnxruntime", logspool::level::info, output);
///     Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "model", logspool::onnxruntime_log, &log);
///
/// Include `onnxruntime_c_api.h` or `onnxruntime_cxx_api.h` first. The logger must live as long as the environment.
/// Each record has the key-values `category` and `log_id`.
#ifndef LOGSPOOL_ONNXRUNTIME_HPP
#define LOGSPOOL_ONNXRUNTIME_HPP

#ifndef ORT_API_CALL
#define ORT_API_CALL
#endif

#include "logspool.hpp"

namespace logspool {

namespace detail {

template <std::uint16_t Level>
inline void log_onnxruntime(const logger &to, const char *category, const char *log_id, const char *place,
                            const char *message) {
    LOGSPOOL_TEXT(to, Level, view_of(message), kv("category", category), kv("log_id", log_id), kv("place", place));
}

} // namespace detail

/// An `OrtLoggingFunction`. `parameter` is a pointer to the logger.
inline void ORT_API_CALL onnxruntime_log(void *parameter, OrtLoggingLevel severity, const char *category,
                                         const char *log_id, const char *place, const char *message) noexcept {
    if (parameter == nullptr) {
        return;
    }
    const logger &to = *static_cast<const logger *>(parameter);
    switch (severity) {
    case ORT_LOGGING_LEVEL_VERBOSE:
        return detail::log_onnxruntime<level::debug>(to, category, log_id, place, message);
    case ORT_LOGGING_LEVEL_INFO:
        return detail::log_onnxruntime<level::info>(to, category, log_id, place, message);
    case ORT_LOGGING_LEVEL_WARNING:
        return detail::log_onnxruntime<level::warning>(to, category, log_id, place, message);
    case ORT_LOGGING_LEVEL_ERROR:
        return detail::log_onnxruntime<level::error>(to, category, log_id, place, message);
    default:
        return detail::log_onnxruntime<level::critical>(to, category, log_id, place, message);
    }
}

} // namespace logspool

#endif
