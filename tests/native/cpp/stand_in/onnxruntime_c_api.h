/* Stands for ONNX Runtime's header of this name in the tests: only what its logging function needs, with the names,
 * numbers and parameters of ONNX Runtime's documentation. Written for these tests. */
#ifndef STAND_IN_ONNXRUNTIME_C_API_H
#define STAND_IN_ONNXRUNTIME_C_API_H

#define ORT_API_CALL

typedef enum OrtLoggingLevel {
    ORT_LOGGING_LEVEL_VERBOSE,
    ORT_LOGGING_LEVEL_INFO,
    ORT_LOGGING_LEVEL_WARNING,
    ORT_LOGGING_LEVEL_ERROR,
    ORT_LOGGING_LEVEL_FATAL,
} OrtLoggingLevel;

typedef void(ORT_API_CALL *OrtLoggingFunction)(void *param, OrtLoggingLevel severity, const char *category,
                                               const char *logid, const char *code_location, const char *message);

#endif
