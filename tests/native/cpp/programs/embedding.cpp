// embedding FILE ORDER END COUNT: embeds Python; C++ and Python log COUNT records each, in turns. ORDER names the side
// that logs first: `cpp`, `python`, or `threads`, where threads of C++ log while Python takes the queue. With the END
// `fork` a child logs COUNT records more, with `fork-announced` also by Python, which gets notice of that fork.
#include <Python.h>

#include <logspool.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static constexpr const char *script = R"(
import logging
import sys
import logspool

logspool.install(blocking_levels=[20], blocking_timeout=float("inf"))
handler = logging.FileHandler(path)
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("python")
log.setLevel(20)
log.addHandler(handler)
log.info("python is there")
)";

static void run(const std::string &code) {
    if (PyRun_SimpleString(code.c_str()) != 0) {
        std::exit(9);
    }
}

int main(int, char **argv) {
    const std::string path = argv[1];
    const std::string order = argv[2];
    const std::string end = argv[3];
    const int count = std::atoi(argv[4]);
    // Every call waits for room, so that each record is accepted.
    if (order != "python") {
        logspool::configure(R"({"blocking_levels": [20], "blocking_timeout": "inf"})");
    }
    logspool::sink file;
    const auto opened = [&] {
        file = logspool::sink(path, R"({"template": "%(message)s"})");
        return logspool::logger("cpp", logspool::level::info, file);
    };
    logspool::logger log;
    std::vector<std::thread> threads;
    std::atomic<int> begun{0};
    std::atomic<bool> stop{false};
    std::atomic<long> logged[4]{};
    if (order != "python") {
        log = opened();
        LOGSPOOL_INFO(log, "c++ is there");
    }
    if (order == "threads") {
        for (int thread = 0; thread < 3; ++thread) {
            threads.emplace_back([&, thread] {
                for (long i = 0; !stop.load(std::memory_order_relaxed); ++i) {
                    LOGSPOOL_INFO(log, "thread{} {}", thread, i);
                    if (i % 64 == 0) {
                        usleep(50);
                    }
                    logged[thread].store(i + 1, std::memory_order_relaxed);
                    begun.fetch_or(1 << thread, std::memory_order_relaxed);
                }
            });
        }
        // Definitions meet the hand-over too.
        threads.emplace_back([&] {
            for (long i = 0; !stop.load(std::memory_order_relaxed); ++i) {
                const std::string name = "logger" + std::to_string(i % 1500);
                const logspool::logger own(name.c_str(), logspool::level::info, file);
                LOGSPOOL_INFO(own, "new {}", i);
                logspool::log_text(own, logspool::level::info, "text " + std::to_string(i));
                logged[3].store(i + 1, std::memory_order_relaxed);
                begun.fetch_or(8, std::memory_order_relaxed);
                usleep(200);
            }
        });
        while (begun.load() != 15) {
            usleep(100);
        }
    }
    Py_Initialize();
    run("path = '" + path + "'");
    run(script);
    if (order == "python") {
        log = opened();
        LOGSPOOL_INFO(log, "c++ is there");
    }
    for (int i = 0; i < count; ++i) {
        LOGSPOOL_INFO(log, "c++ {}", i);
        run("log.info('python %d', " + std::to_string(i) + ")");
    }
    if (order == "threads") {
        usleep(20'000);
        stop.store(true);
        for (std::thread &each : threads) {
            each.join();
        }
        if (logspool::count().refused != 0) {
            std::fprintf(stderr, "%s\n", logspool::stats_json().c_str());
        }
        std::printf("%ld %ld %ld %ld\n", logged[0].load(), logged[1].load(), logged[2].load(), logged[3].load());
        std::fflush(stdout);
    }
    if (end.starts_with("finalize")) {
        if (Py_FinalizeEx() != 0) {
            return 8;
        }
        for (int i = 0; i < count; ++i) {
            LOGSPOOL_INFO(log, "after {}", i);
        }
        std::thread([&] { LOGSPOOL_INFO(log, "after on a thread"); }).join();
    }
    if (end.starts_with("fork")) {
        const bool is_announced = end == "fork-announced";
        if (is_announced) {
            PyOS_BeforeFork();
        }
        const pid_t child = fork();
        if (is_announced) {
            child == 0 ? PyOS_AfterFork_Child() : PyOS_AfterFork_Parent();
        }
        const char *who = child == 0 ? "child" : "parent";
        for (int i = 0; i < count; ++i) {
            LOGSPOOL_INFO(log, "c++ in {} {}", who, i);
            if (is_announced) {
                run("log.info('python in %s %d', '" + std::string(who) + "', " + std::to_string(i) + ")");
            }
        }
        int status = 0;
        if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) {
            return 7;
        }
    }
    if (end.ends_with("kill")) {
        kill(getpid(), SIGKILL);
    }
    return 0;
}
