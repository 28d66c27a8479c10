#include "logspool.h"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>
/* ends FILE END COUNT: logs COUNT records, then ends the process in the way END; "fork" logs in COUNT children. */
int main(int argc, char **argv) {
    if (argc != 4) return 2;
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}");
    logspool_id logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info; info.message = "line {}"; info.level = LOGSPOOL_INFO; info.grammar = LOGSPOOL_FMT;
    logspool_id site = logspool_site(&info);
    int count = atoi(argv[3]);
    struct logspool_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.type = LOGSPOOL_ARG_INT;
    if (strcmp(argv[2], "fork") == 0) {
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
        return 0;
    }
    for (int i = 0; i < count; i++) {
        arg.value.i = i;
        if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) { fprintf(stderr, "%s\n", logspool_last_error()); return 3; }
    }
    if (strcmp(argv[2], "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(argv[2], "abort") == 0) abort();
    if (strcmp(argv[2], "segv") == 0) raise(SIGSEGV);
    if (strcmp(argv[2], "term") == 0) kill(getpid(), SIGTERM);
    if (strcmp(argv[2], "_exit") == 0) _exit(0);
    return 0;
}
