#include "logspool.h"
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORMAT "{\"template\": \"%(name)s %(message)s\"}"

static char path[4096];
static logspool_id site;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, logspool_last_error());
    exit(3);
}

static logspool_id sink_of(const char *folder, int number) {
    snprintf(path, sizeof path, "%s/%d.log", folder, number);
    logspool_id sink = logspool_sink_open(path, FORMAT);
    if (sink == 0) fail("sink");
    return sink;
}

static logspool_id logger_of(const char *name, logspool_id sink) {
    logspool_id logger = logspool_logger(name, LOGSPOOL_INFO, &sink, 1);
    if (logger == 0) fail("logger");
    return logger;
}

static int log_number(logspool_id logger, int number) {
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    arg.value.i = number;
    return logspool_emit(logger, site, &arg, 1);
}

static void close_all(logspool_id logger, logspool_id sink) {
    if (logger != 0 && logspool_logger_close(logger) != LOGSPOOL_OK) fail("close of a logger");
    if (sink != 0 && logspool_sink_close(sink) != LOGSPOOL_OK) fail("close of a sink");
}

static void show(const char *what, long long value) { printf("%s %lld\n", what, value); }

/* The results of calls on closed loggers and sinks, and which close counts. */
static void show_rules(const char *folder) {
    logspool_id sink = sink_of(folder, 0), logger = logger_of("twice", sink);
    show("the same logger", logger_of("twice", sink) == logger);
    close_all(logger, 0);
    show("record after one close of two", log_number(logger, 1));
    close_all(logger, 0);
    show("record after both", log_number(logger, 2));
    show("one close too many", logspool_logger_close(logger));
    show("level of a closed logger", logspool_logger_level(logger, 10));
    show("found", logspool_logger_find("twice"));
    show("another logger of the name", logger_of("twice", sink) != logger);
    logspool_id keeps = logger_of("keeps its sink", sink);
    close_all(0, sink);
    show("record to a closed sink", log_number(keeps, 3));
    show("second close of a sink", logspool_sink_close(sink));
    show("logger of a closed sink", logspool_logger("other", LOGSPOOL_INFO, &sink, 1));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close_all(keeps, 0);
        logspool_id own = sink_of(folder, 1);
        exit(log_number(logger_of("of a child", own), 4) == LOGSPOOL_OK ? 0 : 4);
    }
    int status = -1;
    waitpid(child, &status, 0);
    show("end of the child", status);
    show("record of the parent", log_number(keeps, 5));
}

/* closing FOLDER WAY COUNT: makes COUNT loggers or sinks, one after the other; "changes" gives one logger COUNT sinks;
   "kill" is "loggers" with SIGKILL at the end; "recover" delivers its records. */
int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *folder = argv[1], *way = argv[2];
    int count = atoi(argv[3]);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info; info.message = "{}"; info.level = LOGSPOOL_INFO; info.grammar = LOGSPOOL_FMT;
    site = logspool_site(&info);
    if (strcmp(way, "recover") == 0) return logspool_recover(NULL) < 0;
    if (strcmp(way, "rules") == 0) return show_rules(folder), 0;
    logspool_id lasting = sink_of(folder, -1), lasting_logger = logger_of("lasting", lasting);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "connection %d", i);
        int has_sink = strcmp(way, "sinks") == 0 || strcmp(way, "changes") == 0;
        logspool_id sink = has_sink ? sink_of(folder, i % 200) : 0;
        logspool_id logger = logger_of(strcmp(way, "changes") == 0 ? "one" : name, has_sink ? sink : lasting);
        if (log_number(logger, i) != LOGSPOOL_OK) fail("record");
        if (i % 100 == 0 && log_number(lasting_logger, i) != LOGSPOOL_OK) fail("record");
        close_all(strcmp(way, "changes") == 0 ? 0 : logger, sink);
    }
    if (strcmp(way, "kill") == 0) kill(getpid(), SIGKILL);
    return 0;
}
