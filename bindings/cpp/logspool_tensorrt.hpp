/// \file
/// An `ILogger` of TensorRT.
///
///     logspool::tensorrt_logger log(logspool::logger("tensorrt", logspool::level::info, output));
///     auto *runtime = nvinfer1::createInferRuntime(log);
///
/// Include `NvInferRuntimeCommon.h` or `NvInfer.h` first. The object must live as long as what TensorRT made with it.
/// Any thread may log.
#ifndef LOGSPOOL_TENSORRT_HPP
#define LOGSPOOL_TENSORRT_HPP

#include "logspool.hpp"

namespace logspool {

class tensorrt_logger final : public nvinfer1::ILogger {
  public:
    explicit tensorrt_logger(const logger &to) : to_(to) {}

    void log(Severity severity, const char *message) noexcept override {
        const std::string_view text = detail::view_of(message);
        switch (severity) {
        case Severity::kINTERNAL_ERROR:
            LOGSPOOL_TEXT(to_, level::critical, text);
            break;
        case Severity::kERROR:
            LOGSPOOL_TEXT(to_, level::error, text);
            break;
        case Severity::kWARNING:
            LOGSPOOL_TEXT(to_, level::warning, text);
            break;
        case Severity::kINFO:
            LOGSPOOL_TEXT(to_, level::info, text);
            break;
        default:
            LOGSPOOL_TEXT(to_, level::debug, text);
        }
    }

  private:
    logger to_;
};

} // namespace logspool

#endif
