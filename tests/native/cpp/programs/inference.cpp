// Logs as ONNX Runtime and TensorRT do, with small headers in place of theirs.
#include <NvInferRuntimeCommon.h>
#include <onnxruntime_c_api.h>

#include <logspool_onnxruntime.hpp>
#include <logspool_tensorrt.hpp>

int main(int, char **argv) {
    const char *const form = "{\"json\": {\"level\": \"levelname\", \"logger\": \"name\", \"message\": \"message\"}, \"extras\": true}";
    const logspool::sink output(argv[1], form);
    logspool::logger onnx("onnxruntime", logspool::level::info, output);
    const OrtLoggingFunction log_onnx = logspool::onnxruntime_log;
    for (int level = ORT_LOGGING_LEVEL_VERBOSE; level <= ORT_LOGGING_LEVEL_FATAL; ++level) {
        log_onnx(&onnx, static_cast<OrtLoggingLevel>(level), "onnxruntime", "model", "session.cc:1 Run", "{} ready");
    }
    log_onnx(&onnx, ORT_LOGGING_LEVEL_INFO, nullptr, nullptr, nullptr, nullptr);
    log_onnx(nullptr, ORT_LOGGING_LEVEL_FATAL, "", "", "", "");

    logspool::tensorrt_logger tensorrt(logspool::logger("tensorrt", logspool::level::debug, output));
    nvinfer1::ILogger &base = tensorrt;
    for (int severity = 0; severity <= 4; ++severity) {
        base.log(static_cast<nvinfer1::ILogger::Severity>(severity), "built {}");
    }
    return 0;
}
