/* Logs to a file and to standard error. cc hello.c -llogspool */
#include <logspool.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    logspool_id sinks[2] = {
        logspool_sink_open("hello.log", NULL),
        logspool_sink_open("stderr", "{\"template\": \"[%(levelname)s] %(message)s\"}"),
    };
    logspool_id logger = logspool_logger("hello", LOGSPOOL_INFO, sinks, 2);

    static const uint8_t types[] = {LOGSPOOL_ARG_TEXT, LOGSPOOL_ARG_DOUBLE};
    struct logspool_site_info info = {0};
    info.size = sizeof info;
    info.file = __FILE__;
    info.line = __LINE__;
    info.function = __func__;
    info.message = "{} took {:.3f} ms";
    info.level = LOGSPOOL_INFO;
    info.grammar = LOGSPOOL_FMT;
    info.types = types;
    info.type_count = 2;
    logspool_id site = logspool_site(&info);
    if (!logger || !site) {
        fprintf(stderr, "cannot log: %s\n", logspool_last_error());
        return 1;
    }

    struct logspool_arg args[2];
    memset(args, 0, sizeof args);
    args[0].type = LOGSPOOL_ARG_TEXT;
    args[0].value.p = "start";
    args[0].length = 5;
    args[1].type = LOGSPOOL_ARG_DOUBLE;
    args[1].value.d = 1.25;
    logspool_emit(logger, site, args, 2);
    return 0; /* exit() writes the queued records */
}
