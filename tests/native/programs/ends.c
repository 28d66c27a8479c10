#include "logspool.h"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>
#include <pthread.h>

static logspool_id logger, site;
static int stop;
static long long logged;

/* Logs until `stop` is set. */
static void *load(void *nothing) {
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        arg.value.i = -++logged;
        if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) logged--;
        usleep(20);
    }
    return nothing;
}

/* ends ADDRESS END COUNT: logs COUNT records, then ends the process in the way END; "fork" logs in COUNT children, "moved"
   in a child that has another working folder and is killed; "full" prints the result of a flush, and waits little. */
int main(int argc, char **argv) {
    if (argc != 4) return 2;
    if (strcmp(argv[2], "recover") == 0) return logspool_recover(NULL) < 0;
    int is_full = strcmp(argv[2], "full") == 0;
    if (is_full && logspool_configure("{\"shutdown_timeout\": 0.2}") != LOGSPOOL_OK) return 9;
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}");
    logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info; info.message = "line {}"; info.level = LOGSPOOL_INFO; info.grammar = LOGSPOOL_FMT;
    site = logspool_site(&info);
    int count = atoi(argv[3]);
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    if (strcmp(argv[2], "fork") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, load, NULL)) return 6;
        for (int child = 0; child < count; child++) {
            arg.value.i = 2 * child;
            if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) return 3;
            pid_t pid = fork();
            if (pid == 0) {
                arg.value.i = 2 * child + 1;
                exit(logspool_emit(logger, site, &arg, 1) == LOGSPOOL_OK ? 0 : 4);
            }
            int status = 0;
            if (waitpid(pid, &status, 0) != pid || status != 0) { fprintf(stderr, "child: %d\n", status); return 5; }
        }
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        printf("%lld\n", logged);
        return 0;
    }
    int is_moved = strcmp(argv[2], "moved") == 0;
    if (is_moved) {
        if (chdir("other")) return 7;
        pid_t pid = fork();
        int status = 0;
        if (pid != 0) return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : 8;
    }
    for (int i = 0; i < count; i++) {
        arg.value.i = i;
        if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) { fprintf(stderr, "%s\n", logspool_last_error()); return 3; }
    }
    if (is_full) fprintf(stderr, "flush: %d\n", logspool_flush(0.2));
    if (is_moved || strcmp(argv[2], "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(argv[2], "abort") == 0) abort();
    if (strcmp(argv[2], "segv") == 0) raise(SIGSEGV);
    if (strcmp(argv[2], "term") == 0) kill(getpid(), SIGTERM);
    if (strcmp(argv[2], "_exit") == 0) _exit(0);
    return 0;
}
