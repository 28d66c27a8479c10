// ends FILE END COUNT: logs COUNT records on each of four threads, then ends the process in the way END.
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

static void work(const logspool::logger &log, int thread, int count) {
    for (int i = 0; i < count; ++i) {
        // Texts of many lengths meet the end of the ring in every way.
        LOGSPOOL_INFO(log, "{} {} {}", thread, i, std::string(static_cast<std::size_t>(i * 37 % 300), 'x'));
    }
}

static void work_on_threads(const logspool::logger &log, int count) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back(work, std::cref(log), thread, count);
    }
    for (std::thread &each : threads) {
        each.join();
    }
}

// Logs in COUNT children, while a thread of the parent logs, too. Returns the number of its records.
static int work_in_children(const logspool::logger &log, int count) {
    std::atomic<bool> stop{false};
    int logged = 0;
    std::thread load([&] {
        for (; !stop.load(std::memory_order_relaxed); ++logged) {
            LOGSPOOL_INFO(log, "line {}", -(logged + 1));
            usleep(20);
        }
    });
    for (int child = 0; child < count; ++child) {
        LOGSPOOL_INFO(log, "line {}", 2 * child);
        const pid_t id = fork();
        if (id == 0) {
            LOGSPOOL_INFO(log, "line {}", 2 * child + 1);
            std::exit(0);
        }
        int status = 0;
        if (waitpid(id, &status, 0) != id || status != 0) {
            std::fprintf(stderr, "child: %d\n", status);
            std::_Exit(5);
        }
    }
    stop.store(true, std::memory_order_relaxed);
    load.join();
    return logged;
}

static logspool::logger of_handler;
static std::atomic<unsigned> handled{0};

static void handler(int) {
    LOGSPOOL_INFO(of_handler, "handler {}", handled.fetch_add(1, std::memory_order_relaxed));
}

// Logs while a signal handler logs on the same thread.
static void work_with_signals(const logspool::logger &log, int count) {
    of_handler = log;
    handler(0);
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    std::atomic<bool> stop{false};
    const pthread_t self = pthread_self();
    std::thread sender([&] {
        while (!stop.load()) {
            pthread_kill(self, SIGUSR1);
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < count; ++i) {
        LOGSPOOL_INFO(log, "line {}", i);
    }
    stop.store(true);
    sender.join();
    logspool::flush();
    const logspool::counters all = logspool::count();
    std::printf("%u %llu %llu %llu\n", handled.load(), static_cast<unsigned long long>(all.offered),
                static_cast<unsigned long long>(all.accepted), static_cast<unsigned long long>(all.refused));
}

int main(int, char **argv) {
    const std::string end = argv[2];
    const int count = std::atoi(argv[3]);
    if (end == "recover") {
        return logspool::recover() < 0;
    }
    const logspool::logger log("app", logspool::level::info, logspool::sink(argv[1], "{\"template\": \"%(message)s\"}"));
    if (end == "fork") {
        std::printf("%d\n", work_in_children(log, count));
        return 0;
    }
    if (end == "signals") {
        work_with_signals(log, count);
        return 0;
    }
    work_on_threads(log, count);
    if (end == "kill") {
        kill(getpid(), SIGKILL);
    } else if (end == "abort") {
        std::abort();
    } else if (end == "segv") {
        raise(SIGSEGV);
    } else if (end == "term") {
        kill(getpid(), SIGTERM);
    } else if (end == "_exit") {
        _exit(0);
    } else if (end == "drain") {
        logspool::drain();
        _exit(0);
    } else if (end == "quick_exit") {
        std::quick_exit(0);
    } else if (end == "throw") {
        throw 1;
    }
    return 0;
}
