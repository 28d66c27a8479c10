// Writes lines of the form `user NAME did N in MS ms` by one of several loggers: lines LOGGER THREADS LINES FILE [MODE]
//
// Without a mode each thread logs as fast as it can. Modes:
// - paced: 20 calls each 100 us; the ticks of each call are shown as percentiles;
// - stalled: as paced, with the default options of logspool; the longest call, and the longest of the empty calls that
//   are made in turns with them. FILE is a pipe that is not read for a while;
// - ordered: lines have their time in nanoseconds, the number of their thread and their number; shows all counters;
// - killed: SIGKILL ends the program after its last call.
// `none` makes the same loop without a logger. `quill` is there if its headers are. `recover` as LOGGER delivers what a
// killed program left.
#include <logspool.hpp>

#if __has_include(<quill/Frontend.h>)
#include <quill/Backend.h>
#include <quill/Frontend.h>
#include <quill/LogMacros.h>
#include <quill/Logger.h>
#include <quill/sinks/FileSink.h>
#define HAS_QUILL
#endif

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <x86intrin.h>

using clock_type = std::chrono::steady_clock;

static const char *const NAMES[] = {"ada", "grace", "edsger", "barbara"};

static std::uint64_t ticks() {
    unsigned processor;
    return __rdtscp(&processor);
}

template <class Log> static std::vector<std::uint32_t> burst(Log log, int lines) {
    for (int line = 0; line < lines; ++line) {
        log(NAMES[line & 3], line, static_cast<double>(line % 9973) / 7.0);
    }
    return {};
}

template <class Log> static std::vector<std::uint32_t> paced(Log log, int lines) {
    std::vector<std::uint32_t> calls;
    calls.reserve(static_cast<std::size_t>(lines));
    auto next = clock_type::now();
    for (int line = 0; line < lines;) {
        for (int call = 0; call < 20 && line < lines; ++call, ++line) {
            const std::uint64_t begin = ticks();
            log(NAMES[line & 3], line, static_cast<double>(line % 9973) / 7.0);
            calls.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks() - begin, UINT32_MAX)));
        }
        next += std::chrono::microseconds(100);
        while (clock_type::now() < next) {
        }
    }
    return calls;
}

/// As `paced`, and shows the longest call beside the longest empty one.
template <class Log> static void stalled(Log log, int lines) {
    volatile double sink = 0;
    const auto begin = clock_type::now();
    const std::uint64_t first = ticks();
    std::uint64_t longest = 0;
    std::uint64_t longest_empty = 0;
    auto next = begin;
    for (int line = 0; line < lines;) {
        for (int call = 0; call < 20 && line < lines; ++call, ++line) {
            const std::uint64_t before = ticks();
            sink = static_cast<double>(line % 9973) / 7.0;
            const std::uint64_t middle = ticks();
            log(NAMES[line & 3], line, sink);
            const std::uint64_t after = ticks();
            longest_empty = std::max(longest_empty, middle - before);
            longest = std::max(longest, after - middle);
        }
        next += std::chrono::microseconds(100);
        while (clock_type::now() < next) {
        }
    }
    const double seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    const double tick_ms = seconds * 1e3 / static_cast<double>(ticks() - first);
    // The reader has to take everything before the counts are right.
    logspool::flush(60);
    const logspool::counters counts = logspool::count();
    std::printf("{\"max_ms\": %.3f, \"max_empty_ms\": %.3f, \"offered\": %llu, \"written\": %llu, \"refused\": %llu, "
                "\"dropped\": %llu}\n",
                tick_ms * static_cast<double>(longest), tick_ms * static_cast<double>(longest_empty),
                static_cast<unsigned long long>(counts.offered), static_cast<unsigned long long>(counts.written),
                static_cast<unsigned long long>(counts.refused), static_cast<unsigned long long>(counts.dropped));
    std::fflush(stdout);
}

/// Each thread logs its number and those of its lines as fast as it can.
static void ordered(const logspool::logger &log, int threads, int lines) {
    std::vector<std::thread> workers;
    for (int thread = 0; thread < threads; ++thread) {
        workers.emplace_back([&log, thread, lines] {
            for (int line = 0; line < lines; ++line) {
                LOGSPOOL_INFO(log, "{} {}", thread, line);
            }
        });
    }
    for (std::thread &worker : workers) {
        worker.join();
    }
    logspool::flush(60);
    std::puts(logspool::stats_json().c_str());
    std::fflush(stdout);
}

/// The most memory that the process has had until now.
static double peak_megabytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "VmHWM:") {
            double kilobytes = 0;
            status >> kilobytes;
            return kilobytes / 1024;
        }
    }
    return 0;
}

/// Ends the program after the last call. What is in the file then is all that is left of the lines.
static bool is_killed = false;

template <class Log> static void run(Log log, int threads, int lines, bool is_paced) {
    const auto begin = clock_type::now();
    const std::uint64_t first = ticks();
    std::vector<std::vector<std::uint32_t>> calls(static_cast<std::size_t>(threads));
    std::vector<std::thread> workers;
    for (std::size_t index = 0; index < calls.size(); ++index) {
        workers.emplace_back([&, index] { calls[index] = is_paced ? paced(log, lines) : burst(log, lines); });
    }
    for (std::thread &worker : workers) {
        worker.join();
    }
    if (is_killed) {
        std::raise(SIGKILL);
    }
    const double seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    const double tick_ns = seconds * 1e9 / static_cast<double>(ticks() - first);
    std::vector<std::uint32_t> all;
    for (const auto &of_thread : calls) {
        all.insert(all.end(), of_thread.begin(), of_thread.end());
    }
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
        return all.empty() ? 0.0 : tick_ns * all[std::min(all.size() - 1, static_cast<std::size_t>(share * all.size()))];
    };
    std::printf("{\"calls_s\": %.6f, \"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f, \"rss_mb\": %.1f}\n",
                seconds, at(0.5), at(0.99), at(0.999), at(1.0), peak_megabytes());
    std::fflush(stdout);
}

#ifdef HAS_QUILL
/// Blocks when its queue is full, whose size is that of quill's default: no line is dropped, as with the others.
struct bounded_queue : quill::FrontendOptions {
    static constexpr quill::QueueType queue_type = quill::QueueType::BoundedBlocking;
};

static void run_quill(const char *file, int threads, int lines, bool is_paced) {
    using frontend = quill::FrontendImpl<bounded_queue>;
    quill::BackendOptions backend;
    // It tells how often a call waited.
    backend.error_notifier = {};
    quill::Backend::start(backend);
    quill::FileSinkConfig config;
    config.set_open_mode('w');
    const quill::PatternFormatterOptions pattern("[%(time)] [%(logger)] [%(log_level)] %(message)",
                                                 "%Y-%m-%d %H:%M:%S.%Qms");
    auto *log = frontend::create_or_get_logger("bench", frontend::create_or_get_sink<quill::FileSink>(file, config), pattern);
    run([&](const char *name, int number, double ms) {
        QUILL_LOG_INFO(log, "user {} did {} in {:.3f} ms", name, number, ms);
    }, threads, lines, is_paced);
    log->flush_log();
    quill::Backend::stop();
}
#endif

int main(int count, char **arguments) {
    if (count < 5) {
        std::fprintf(stderr, "usage: lines LOGGER THREADS LINES FILE [MODE]\n");
        return 2;
    }
    const std::string logger = arguments[1];
    const int threads = std::atoi(arguments[2]);
    const int lines = std::atoi(arguments[3]);
    const char *const file = arguments[4];
    const std::string mode = count > 5 ? arguments[5] : "";
    const bool is_paced = mode == "paced";
    is_killed = mode == "killed";
    if (logger == "recover") {
        return logspool_recover(nullptr) < 0 ? 1 : 0;
    }
    if (logger == "logspool" || logger == "logspool-pattern") {
        if (mode != "stalled") {
            // Lossless: a call that finds no room waits, whatever its level.
            logspool::configure("{\"blocking_levels\": [20], \"blocking_timeout\": 60}");
        }
        const char *const format = mode == "ordered"
                                       ? "{\"pattern\": \"{time:%Y-%m-%d %H:%M:%S.%9f} {message}\"}"
                                   : logger == "logspool-pattern"
                                       ? "{\"pattern\": \"[{time:%Y-%m-%d %H:%M:%S.%3f}] [{logger}] [{level}] {message}\","
                                         " \"level_names\": {\"20\": \"info\"}}"
                                       : "{\"template\": \"[%(asctime)s] [%(name)s] [%(levelname)s] %(message)s\","
                                         " \"milliseconds\": \"%s.%03d\", \"level_names\": {\"20\": \"info\"}}";
        const logspool::sink sink(file, format);
        const logspool::logger log("bench", logspool::level::info, sink);
        const auto call = [&](const char *name, int number, double ms) {
            LOGSPOOL_INFO(log, "user {} did {} in {:.3f} ms", name, number, ms);
        };
        if (mode == "stalled") {
            stalled(call, lines);
        } else if (mode == "ordered") {
            ordered(log, threads, lines);
        } else {
            run(call, threads, lines, is_paced);
        }
        return 0;
    }
    if (logger == "none") {
        volatile double sink = 0;
        run([&](const char *name, int number, double ms) { sink = ms + number + *name; }, threads, lines, is_paced);
        return 0;
    }
#ifdef HAS_QUILL
    if (logger == "quill") {
        run_quill(file, threads, lines, is_paced);
        return 0;
    }
#endif
    std::shared_ptr<spdlog::logger> log;
    if (logger == "spdlog") {
        log = spdlog::basic_logger_mt("bench", file);
    } else if (logger == "spdlog-async") {
        // spdlog's own queue size, blocking when it is full.
        spdlog::init_thread_pool(8192, 1);
        log = spdlog::basic_logger_mt<spdlog::async_factory>("bench", file);
    } else {
        std::fprintf(stderr, "unknown logger %s: use logspool, logspool-pattern, spdlog, spdlog-async, quill or none\n", logger.c_str());
        return 2;
    }
    log->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%l] %v");
    run([&](const char *name, int number, double ms) {
        SPDLOG_LOGGER_INFO(log, "user {} did {} in {:.3f} ms", name, number, ms);
    }, threads, lines, is_paced);
    log.reset();
    spdlog::shutdown();
    return 0;
}
