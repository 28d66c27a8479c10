#include "logspool.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

static logspool_id logger, site;

static void say(const char *text) {
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_TEXT;
    arg.value.p = text;
    arg.length = (uint32_t)strlen(text);
    /* The first of two records takes the slow path, the second one may not. */
    logspool_emit(logger, site, &arg, 1);
    logspool_emit(logger, site, &arg, 1);
}

static void first(void) { say("registered first"); }
static void second(void) { say("registered second"); }
static void in_child(void) {
    pid_t child = fork();
    if (child == 0) say("in a child");
    else waitpid(child, NULL, 0);
}
__attribute__((destructor)) static void last(void) { say("destructor"); }

/* late FILE END: logs in functions that run after the drain at exit, since they were registered before the first call
   of the library. */
int main(int argc, char **argv) {
    int is_quick = argc == 3 && strcmp(argv[2], "quick_exit") == 0;
    (is_quick ? at_quick_exit : atexit)(first);
    (is_quick ? at_quick_exit : atexit)(second);
    if (strcmp(argv[2], "fork") == 0) atexit(in_child);
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}");
    logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info; info.message = "{}"; info.level = LOGSPOOL_INFO; info.grammar = LOGSPOOL_FMT;
    site = logspool_site(&info);
    if (strcmp(argv[2], "silent") != 0) say("in main");
    if (is_quick) quick_exit(0);
    return 0;
}
