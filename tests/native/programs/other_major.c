/* other_major FILE: another copy of the library has the queue, with major version 2 of the table. Prints the result and
 * the error of each call. */
#define _GNU_SOURCE
#include <logspool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void show(const char *what, long long result) {
    printf("%s|%lld|%s\n", what, result, logspool_last_error());
}

int main(int count, char **arguments) {
    /* The page of `crates/logspool/src/copies.rs`: state, copy, table, bytes of the path, path. */
    static struct logspool_api table;
    static struct {
        char state[8];
        uint64_t copy, table, path_bytes;
        char path[4096 - 32];
    } page = {"LOGSCORE", 1, 0, 4, "/old"};
    table.major = 2;
    table.size = sizeof table;
    page.table = (uint64_t)(uintptr_t)&table;
    const int memory = memfd_create("logspool-core", 0);
    if (count != 2 || write(memory, &page, sizeof page) != sizeof page ||
        mmap(NULL, sizeof page, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) == MAP_FAILED) {
        return 1;
    }
    struct logspool_site_info site = {sizeof site, 1, "f.c", "f", "x", LOGSPOOL_INFO, LOGSPOOL_PLAIN, 0, 0, NULL};
    show("configure", logspool_configure("{}"));
    show("sink_open", logspool_sink_open(arguments[1], NULL));
    show("logger", logspool_logger("n", LOGSPOOL_INFO, NULL, 0));
    show("site", logspool_site(&site));
    show("text", logspool_text(1, LOGSPOOL_INFO, "x", 1, NULL, 0, NULL));
    show("reserve", logspool_reserve(1, 1, 8) != NULL);
    show("flush", logspool_flush(1.0));
    return logspool_last_status() == LOGSPOOL_VERSION ? 0 : 2;
}
