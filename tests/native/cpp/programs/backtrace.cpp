// Keeps records in several threads, in forked children, in signal handlers, and in a plugin that is unloaded.
#include <logspool.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using keeper = void (*)(const logspool::logger &, int);

#ifdef PLUGIN
extern "C" [[gnu::visibility("default")]] void keep(const logspool::logger &log, int number) {
    LOGSPOOL_BACKTRACE(log, logspool::level::debug, "plugin {} {}", number, std::string(400, 'p'));
}
#else

static logspool::logger log_;

static void threads() {
    std::printf("%d\n", getpid());
    LOGSPOOL_BACKTRACE(log_, logspool::level::info, "of main");
    for (int i = 0; i < 200; ++i) {
        // Threads that have ended leave their memory to later ones, without its records.
        std::thread([i] {
            LOGSPOOL_BACKTRACE(log_, logspool::level::info, "of thread {}", i);
            if (i % 100 == 50) {
                LOGSPOOL_ERROR(log_, "error of thread {}", i);
            }
        }).join();
    }
    LOGSPOOL_ERROR(log_, "error of main");
}

static void forks() {
    std::atomic<bool> ends{false};
    std::vector<std::thread> keepers;
    for (int i = 0; i < 3; ++i) {
        keepers.emplace_back([&ends] {
            while (!ends.load()) {
                LOGSPOOL_BACKTRACE(log_, logspool::level::info, "of the parent");
            }
        });
    }
    for (int i = 0; i < 30; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            LOGSPOOL_BACKTRACE(log_, logspool::level::info, "of child {}", i);
            LOGSPOOL_ERROR(log_, "error of child {}", i);
            std::exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) {
            std::printf("child %d: status %d\n", i, status);
        }
    }
    ends = true;
    for (auto &each : keepers) {
        each.join();
    }
}

static void handle(int) {
    LOGSPOOL_BACKTRACE(log_, logspool::level::info, "of the handler");
    LOGSPOOL_ERROR(log_, "error of the handler");
}

static void handlers() {
    std::signal(SIGALRM, handle);
    const itimerval often{{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int i = 0; i < 300'000; ++i) {
        LOGSPOOL_BACKTRACE(log_, logspool::level::info, "kept {} {}", i, std::string(static_cast<std::size_t>(i % 500), 'x'));
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    LOGSPOOL_ERROR(log_, "end");
}

static void plugin(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const auto keep = reinterpret_cast<keeper>(dlsym(library, "keep"));
    keep(log_, 1);
    keep(log_, 2);
    dlclose(library);
    std::printf("%s\n", dlopen(path, RTLD_NOW | RTLD_NOLOAD) == nullptr ? "unloaded" : "still there");
    LOGSPOOL_ERROR(log_, "after the plugin");
}

int main(int, char **arguments) {
    const std::string what = arguments[2];
    log_ = logspool::logger("app", logspool::level::info,
                            logspool::sink(arguments[1], R"({"template": "%(thread)d %(message)s"})"));
    logspool::enable_backtrace(log_, 4);
    if (what == "threads") {
        threads();
    } else if (what == "forks") {
        forks();
    } else if (what == "handlers") {
        handlers();
    } else {
        plugin(arguments[2]);
    }
    return 0;
}
#endif
