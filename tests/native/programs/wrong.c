/* wrong FILE: wrong inputs. Each prints a line: what, the result, the error. */
#include "logspool.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <math.h>

static logspool_id logger, site;
static void on_signal(int number) {
    (void)number;
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    printf("in a handler|%d|%s\n", logspool_emit(logger, site, &arg, 1), "");
}
#define SHOW(what, call)                                                       \
    do {                                                                       \
        long long result = (long long)(call);                                  \
        printf("%s|%lld|%s\n", what, result, result ? logspool_last_error() : ""); \
    } while (0)
#define SHOW_ID(what, call)                                            \
    do {                                                               \
        long long result = (long long)(call);                          \
        printf("%s|%lld|%s\n", what, result, logspool_last_error());   \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    SHOW("null options", logspool_configure(NULL));
    SHOW("no json", logspool_configure("{"));
    SHOW("no object", logspool_configure("[1]"));
    SHOW("unknown option", logspool_configure("{\"queue_byte\": 65536}"));
    SHOW("bad value", logspool_configure("{\"queue_bytes\": 1}"));
    SHOW("bad type", logspool_configure("{\"queue_bytes\": \"x\"}"));
    SHOW("python option", logspool_configure("{\"uncaught\": true}"));
    SHOW_ID("null address", logspool_sink_open(NULL, NULL));
    SHOW_ID("empty address", logspool_sink_open("", NULL));
    SHOW_ID("no folder", logspool_sink_open("/nonexistent/a.log", NULL));
    SHOW_ID("bad descriptor", logspool_sink_open("fd:x", NULL));
    SHOW_ID("unknown kind", logspool_sink_open("{\"kind\": \"fil\"}", NULL));
    SHOW_ID("no kind", logspool_sink_open("{}", NULL));
    SHOW_ID("bad format", logspool_sink_open(argv[1], "{\"template\": 1}"));
    SHOW_ID("unknown format key", logspool_sink_open(argv[1], "{\"templat\": \"x\"}"));
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}"), unknown = 99;
    SHOW_ID("unknown name", logspool_sink_open("a.log", "{\"pattern\": \"{{x}} {leve:<5} {message}\"}"));
    SHOW_ID("open brace", logspool_sink_open("a.log", "{\"pattern\": \"{message\"}"));
    SHOW_ID("bad width", logspool_sink_open("a.log", "{\"pattern\": \"{level:x}\"}"));
    SHOW_ID("two times", logspool_sink_open("a.log", "{\"pattern\": \"{time} {time}\"}"));
    SHOW_ID("pattern and template", logspool_sink_open("a.log", "{\"pattern\": \"\", \"template\": \"\"}"));
    SHOW_ID("no pattern", logspool_sink_open("a.log", "{\"pattern\": 1}"));
    SHOW_ID("unknown words", logspool_sink_open("a.log", "{\"level_words\": \"big\"}"));
    SHOW_ID("typing error", logspool_sink_open("stderr", "{\"template\": \"%(mesage)s\"}"));
    SHOW_ID("typing error in braces", logspool_sink_open("stderr", "{\"style\": \"{\", \"template\": \"{levelnam}\"}"));
    SHOW_ID("no letter at the end", logspool_sink_open("stderr", "{\"template\": \"%(message)\"}"));
    SHOW_ID("open brace in a template", logspool_sink_open("stderr", "{\"style\": \"{\", \"template\": \"{message\"}"));
    SHOW_ID("typing error in JSON", logspool_sink_open("stderr", "{\"json\": {\"m\": \"mesage\"}}"));
    SHOW_ID("key named as an attribute", logspool_sink_open("stderr", "{\"template\": \"%(fields.name)s\"}"));
    SHOW_ID("typing error in date", logspool_sink_open("stderr", "{\"date_format\": \"%H:%Q\"}"));
    SHOW_ID("date ends early", logspool_sink_open("stderr", "{\"date_format\": \"%H:%\"}"));
    SHOW_ID("typing error in time", logspool_sink_open("stderr", "{\"pattern\": \"{time:%H:%Q}\"}"));
    SHOW_ID("bad level", logspool_sink_open("stderr", "{\"level\": \"loud\"}"));
    SHOW_ID("bad switch", logspool_sink_open("stderr", "{\"escape_control\": 1}"));
    SHOW_ID("null name to find", logspool_logger_find(NULL));
    SHOW_ID("no such logger", logspool_logger_find("nobody"));
    SHOW_ID("null name", logspool_logger(NULL, 20, &sink, 1));
    SHOW_ID("null sinks", logspool_logger("a", 20, NULL, 1));
    SHOW_ID("unknown sink", logspool_logger("a", 20, &unknown, 1));
    logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    int others = 0;
    for (int i = 0; i < 3000; ++i) others += logspool_logger("app", LOGSPOOL_INFO, &sink, 1) != logger;
    SHOW("found 3000 times", others);
    SHOW_ID("null site", logspool_site(NULL));
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    SHOW_ID("size 0", logspool_site(&info));
    info.size = sizeof info;
    info.level = LOGSPOOL_INFO;
    info.grammar = 9;
    SHOW_ID("unknown grammar", logspool_site(&info));
    info.grammar = LOGSPOOL_FMT;
    uint8_t types[] = {LOGSPOOL_ARG_DOUBLE};
    info.types = types;
    info.type_count = 1;
    info.message = "took {:.3d} ms";
    SHOW_ID("bad template", logspool_site(&info));
    info.types = NULL;
    info.message = "took {:.3f ms";
    SHOW_ID("bad template without types", logspool_site(&info));
    info.types = types;
    info.message = "n {}";
    types[0] = LOGSPOOL_ARG_INT;
    site = logspool_site(&info);
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    SHOW("unknown logger", logspool_emit(99, site, NULL, 0));
    SHOW("unknown site", logspool_emit(logger, 99, NULL, 0));
    SHOW("null arguments", logspool_emit(logger, site, NULL, 1));
    SHOW("unknown type", logspool_emit(logger, site, &arg, 1));
    arg.type = LOGSPOOL_ARG_TEXT;
    arg.length = 3;
    SHOW("null text", logspool_emit(logger, site, &arg, 1));
    arg.type = LOGSPOOL_ARG_KEY;
    arg.length = 0;
    SHOW("key without value", logspool_emit(logger, site, &arg, 1));
    SHOW("null record", logspool_text(logger, 20, NULL, 3, NULL, 0, NULL));
    SHOW("nothing reserved", logspool_commit());
    SHOW("nothing to abandon", logspool_abandon());
    SHOW("no number", logspool_flush(NAN));
    SHOW("null buffer", logspool_stats(NULL, 3));
    arg.type = LOGSPOOL_ARG_TEXT;
    arg.length = 4;
    arg.value.p = "a\xff\xc0" "b";
    SHOW("ill-formed text", logspool_emit(logger, site, &arg, 1));
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    void *place = logspool_reserve(logger, site, 9);
    raise(SIGUSR1);
    if (place == NULL) return 3;
    SHOW("abandon", logspool_abandon());
    logspool_flush(5);
    return 0;
}
