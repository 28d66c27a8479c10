/* Stands for TensorRT's header of this name in the tests: only the logger, with the names and numbers of TensorRT's
 * documentation. Written for these tests. */
#ifndef STAND_IN_NV_INFER_RUNTIME_COMMON_H
#define STAND_IN_NV_INFER_RUNTIME_COMMON_H

#include <cstdint>

namespace nvinfer1 {

class ILogger {
  public:
    enum class Severity : std::int32_t { kINTERNAL_ERROR = 0, kERROR = 1, kWARNING = 2, kINFO = 3, kVERBOSE = 4 };

    virtual void log(Severity severity, const char *message) noexcept = 0;

    ILogger() = default;
    virtual ~ILogger() = default;
};

} // namespace nvinfer1

#endif
