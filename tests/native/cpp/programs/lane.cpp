// Writes every record twice, into the lane and by the functions of the library, and counts calls and allocations.
#define LOGSPOOL_NO_LINK
#include <logspool.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" void *__libc_malloc(std::size_t bytes);

static thread_local unsigned long allocations = 0;
static unsigned long calls = 0;
static unsigned long reservations = 0;

extern "C" void *malloc(std::size_t bytes) noexcept {
    ++allocations;
    return __libc_malloc(bytes);
}

static logspool_api counting;

static void count_calls() {
    counting = *logspool_api_table();
    counting.reserve = [](logspool_id logger, logspool_id site, std::size_t bytes) -> void * {
        ++calls;
        ++reservations;
        return logspool_reserve(logger, site, bytes);
    };
    counting.commit = [] { ++calls; return logspool_commit(); };
    counting.wake = [](std::uint16_t level) { ++calls; logspool_wake(level); };
    counting.lane_view = [] { ++calls; return logspool_lane_view(); };
    counting.site = [](const logspool_site_info *site) { ++calls; return logspool_site(site); };
    counting.emit = [](logspool_id logger, logspool_id site, const logspool_arg *arguments, std::size_t count) {
        ++calls;
        return logspool_emit(logger, site, arguments, count);
    };
}

int main(int, char **argv) {
    if (logspool::use(nullptr) || logspool::flush() || logspool::count().offered != 0) {
        return 1;
    }
    count_calls();
    if (!logspool::use(&counting)) {
        return 2;
    }
    const logspool::logger log("app", logspool::level::info, logspool::sink(argv[1], "{\"template\": \"%(message)s\"}"));
    const std::string name = "Ana";
    unsigned long calls_before = 0;
    unsigned long allocations_before = 0;
    // The first record defines the site and claims the lane; the others stay below the half of the ring.
    for (int i = 0; i < 200; ++i) {
        LOGSPOOL_INFO(log, "user {} did {} in {:.3f} ms {}", name, i, i * 0.5, "literal");
        if (i == 0) {
            calls_before = calls;
            allocations_before = allocations;
        }
    }
    for (int i = 0; i < 200; ++i) {
        LOGSPOOL_DEBUG(log, "disabled {}", name);
    }
    std::printf("%lu %lu\n", calls - calls_before, allocations - allocations_before);

    const auto before = reservations;
    for (int i = 0; i < 20000; ++i) {
        const std::string text(static_cast<std::size_t>(i * 37 % 300), 'x');
        for (int way = 0; way < 2; ++way) {
            if (way == 1) {
                logspool::detail::this_view = nullptr;
            }
            LOGSPOOL_INFO(log, "{} {} {} {}", i, text, i * 0.25, i % 2 == 0);
        }
    }
    // Each record of the second way is reserved; of the first way only records that find the lane full.
    std::printf("%d\n", reservations - before >= 20000 && reservations - before < 30000);
    return 0;
}
