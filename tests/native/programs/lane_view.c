/* lane_view FILE: writes the same records by logspool_reserve() and straight into the lane. Both leave the same bytes. */
#include "logspool.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static uint64_t ticks(const struct logspool_view *view) {
#if defined(__x86_64__)
    if (view->clock == LOGSPOOL_CLOCK_TSC) return __rdtsc();
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One record with one text. Returns 0 if the slow path must be taken. */
static int write_record(struct logspool_view *view, const struct logspool_handle *logger,
                        const struct logspool_handle *site, const char *text, uint32_t length) {
    uint32_t record = (uint32_t)sizeof(struct logspool_head) + 5 + length;
    uint64_t needed = (record + 7u) & ~7ull;
    if (view->version != LOGSPOOL_VIEW_VERSION || view->flags || needed > view->bytes / 4 ||
        view->generation != __atomic_load_n(view->generation_word, __ATOMIC_RELAXED) ||
        __atomic_load_n(view->busy_word, __ATOMIC_RELAXED))
        return 0;
    uint64_t route = __atomic_load_n(&logger->ids, __ATOMIC_RELAXED), id = __atomic_load_n(&site->ids, __ATOMIC_RELAXED);
    __atomic_store_n(view->busy_word, 1u, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t offset = (view->head - view->start) & (view->bytes - 1);
    uint64_t skipped = needed > view->bytes - offset ? view->bytes - offset : 0;
    uint32_t level = site->level;
    if (view->generation != __atomic_load_n(view->generation_word, __ATOMIC_RELAXED) || route >> 32 != (uint32_t)view->pipeline ||
        id >> 32 != (uint32_t)view->pipeline || !(uint32_t)id ||
        view->head + skipped + needed + (level < LOGSPOOL_ERROR ? view->bytes / 8 : 0) > view->limit) {
        __atomic_store_n(view->busy_word, 0u, __ATOMIC_RELEASE);
        return 0;
    }
    struct logspool_head head = {record, (uint32_t)id, (uint32_t)route, (uint16_t)level, 0, ticks(view)};
    if (skipped >= sizeof head) {
        struct logspool_head filler = head;
        filler.length = (uint32_t)skipped;
        filler.flags = LOGSPOOL_FLAG_FILLER;
        memcpy(view->ring + offset, &filler, sizeof filler);
    }
    unsigned char *to = view->ring + (skipped ? 0 : offset);
    memcpy(to, &head, sizeof head);
    to[24] = LOGSPOOL_ARG_TEXT;
    memcpy(to + 25, &length, 4);
    memcpy(to + 29, text, length);
    view->head += skipped + needed;
    __atomic_store_n(view->head_word, view->head, __ATOMIC_RELEASE);
    __atomic_store_n(view->busy_word, 0u, __ATOMIC_RELEASE);
    if (level >= LOGSPOOL_ERROR || view->head >= view->wake_at) logspool_wake((uint16_t)level);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    logspool_id sink = logspool_sink_open(argv[1], "{\"template\": \"%(message)s\"}");
    logspool_id logger = logspool_logger("app", LOGSPOOL_INFO, &sink, 1);
    struct logspool_site_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    info.message = "{}";
    info.level = LOGSPOOL_INFO;
    info.grammar = LOGSPOOL_FMT;
    logspool_id site = logspool_site(&info);
    const struct logspool_handle *route = logspool_logger_handle(logger), *place = logspool_site_handle(site);
    struct logspool_view *view = logspool_lane_view();
    if (!sink || !logger || !site || !view) return 3;
    static char text[4000];
    memset(text, 'x', sizeof text);
    int direct = 0, compared = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t length = (i * 37) % 300;
        unsigned char by_call[512];
        uint64_t at = 0;
        for (int turn = 0; turn < 2; turn++) {
            uint64_t before = (view->head - view->start) & (view->bytes - 1);
            uint64_t needed = (29 + length + 7) & ~7u;
            uint64_t offset = before + needed > view->bytes ? 0 : before;
            if (turn == 0) {
                unsigned char *to = logspool_reserve(logger, site, 5 + length);
                if (!to) return 4;
                at = (uint64_t)(to - 24 - view->ring);
                to[0] = LOGSPOOL_ARG_TEXT;
                memcpy(to + 1, &length, 4);
                memcpy(to + 5, text, length);
                memcpy(by_call, to - 24, 29 + length);
                if (logspool_commit() != LOGSPOOL_OK) return 5;
                continue;
            }
            if (!write_record(view, route, place, text, length)) {
                struct logspool_arg arg;
                arg.type = LOGSPOOL_ARG_TEXT;
                arg.length = length;
                arg.value.p = text;
                if (logspool_emit(logger, site, &arg, 1) != LOGSPOOL_OK) return 6;
                if (view != logspool_lane_view()) return 7;
                continue;
            }
            direct++;
            memset(by_call + 16, 0, 8);
            unsigned char own[512];
            memcpy(own, view->ring + offset, 29 + length);
            memset(own + 16, 0, 8);
            if (memcmp(by_call, own, 29 + length) != 0) {
                fprintf(stderr, "record %u differs (%llu)\n", i, (unsigned long long)at);
                return 8;
            }
            compared++;
        }
    }
    printf("%d %d\n", direct, compared);
    return direct > 10000 ? 0 : 9;
}
