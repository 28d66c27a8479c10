// late FILE: objects that were made before the logger log in their destructors, after the drain at exit.
#include <logspool.hpp>

#include <cstdio>
#include <thread>

static logspool::logger *log_ = nullptr;

struct early {
    const char *name;
    explicit early(const char *given) : name(given) {}
    early(const early &) = delete;
    early &operator=(const early &) = delete;
    ~early() {
        LOGSPOOL_INFO(*log_, "{} ends", name);
        logspool::error(*log_, "{} is gone", name);
    }
};

static early first("first");
static thread_local early of_thread("thread");

int main(int, char **arguments) {
    static early local("local");
    log_ = new logspool::logger("app", logspool::level::info,
                                logspool::sink(arguments[1], R"({"template": "%(message)s"})"));
    LOGSPOOL_INFO(*log_, "{}", of_thread.name);
    static early later("later");
    std::thread([] { LOGSPOOL_INFO(*log_, "{}", of_thread.name); }).join();
    return 0;
}
