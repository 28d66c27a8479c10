// closes FILE WAY COUNT: logs the numbers below COUNT once, closes all descriptors on the way, and opens others.
// "threads" closes them while four threads log.
#include "../../programs/closes.h"

#include <logspool.hpp>

#include <string_view>
#include <thread>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    const int count = std::atoi(argv[3]);
    const logspool::logger log("app", logspool::level::info, logspool::sink(argv[1], R"({"template": "%(message)s"})"));
    std::vector<std::thread> threads;
    const bool has_threads = std::string_view(argv[2]) == "threads";
    const int first = has_threads ? 4 : 1;
    for (int thread = 0; thread < first; ++thread) {
        const auto work = [&log, count, first, thread] {
            for (int i = thread; i < count; i += first) {
                LOGSPOOL_INFO(log, "{}", i);
            }
        };
        if (has_threads) {
            threads.emplace_back(work);
        } else {
            LOGSPOOL_INFO(log, "{}", 0);
        }
    }
    logspool_flush(60);
    close_all();
    if (!has_threads) {
        take_numbers();
    }
    open_files();
    for (int i = 1; i < count && !has_threads; ++i) {
        LOGSPOOL_INFO(log, "{}", i);
    }
    for (std::thread &each : threads) {
        each.join();
    }
    const bool flushed = logspool_flush(60) == LOGSPOOL_OK;
    std::printf("%d %d\n", flushed, changed_files());
}
