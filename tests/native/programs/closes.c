#include "closes.h"
#include "logspool.h"

#include <pthread.h>
#include <sys/wait.h>

static logspool_id logger, site;

static void log_number(int number) {
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    arg.value.i = number;
    if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) abort();
}

static void *log_busily(void *count) {
    for (int i = 0; i < *(int *)count; i++) {
        log_number(i);
        if (i % 4 == 0) usleep(150);
    }
    return NULL;
}

/* Prints whether the flush succeeded, and how many of the program's files changed. */
static int tell(void) {
    int flushed = logspool_flush(60) == LOGSPOOL_OK;
    printf("%d %d\n", flushed, changed_files());
    return 0;
}

/* closes ADDRESS WAY COUNT: logs the numbers below COUNT once, and closes all descriptors on the way. "files" opens
   others then, "numbers" takes the very numbers, "child" does both in a forked child, "daemon" after a double fork,
   "busy" does both twenty times while a thread logs. */
int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *way = argv[2];
    int count = atoi(argv[3]);
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}");
    logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info; info.message = "{}"; info.level = LOGSPOOL_INFO; info.grammar = LOGSPOOL_FMT;
    site = logspool_site(&info);
    if (strcmp(way, "busy") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, log_busily, &count)) return 3;
        for (int i = 0; i < 20; i++) {
            usleep((useconds_t)(rand() % 2000));
            close_all();
            open_files();
        }
        pthread_join(thread, NULL);
        return tell();
    }
    log_number(0);
    if (logspool_flush(60) != LOGSPOOL_OK) return 4;
    int forks = strcmp(way, "child") == 0 ? 1 : strcmp(way, "daemon") == 0 ? 2 : 0;
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        int status = 0;
        if (child != 0) return waitpid(child, &status, 0) == child && status == 0 ? 0 : 5;
        if (setsid() < 0) return 6;
    }
    close_all();
    if (strcmp(way, "files") != 0) take_numbers();
    open_files();
    for (int i = 1; i < count; i++) log_number(i);
    return tell();
}
