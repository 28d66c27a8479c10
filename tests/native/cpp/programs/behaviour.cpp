// Calls of every kind; the test reads the lines and the output.
#define LOGSPOOL_ACTIVE_LEVEL 10
#include <logspool.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace logspool::literals;

struct order {
    int id;
    std::string name;
};
template <class Visitor> void logspool_fields(const order &value, Visitor &visitor) {
    visitor("id", value.id);
    visitor("name", value.name);
}

struct thrower {};
template <> struct logspool::codec<thrower> {
    static int encode(const thrower &) { throw std::runtime_error("thrown"); }
};

static int evaluated = 0;
static int seen(int value) {
    ++evaluated;
    return value;
}

template <class Type> static void in_template(const logspool::logger &log, Type value) {
    LOGSPOOL_INFO(log, "template {}", value);
}

static void levels(const logspool::logger &log) {
    LOGSPOOL_TRACE(log, "below the floor {}", seen(1));
    LOGSPOOL_DEBUG(log, "below the level {}", seen(1));
    LOGSPOOL_INFO(log, "i {}", seen(1));
    LOGSPOOL_WARNING(log, "w {}", seen(1));
    LOGSPOOL_ERROR(log, "e {}", seen(1));
    LOGSPOOL_CRITICAL(log, "c {}", seen(1));
    LOGSPOOL_LOG(log, 25, "25 {}", seen(1));
    logspool::trace(log, "t");
    logspool::debug(log, "d");
    logspool::info(log, "fi");
    logspool::warning(log, "fw");
    logspool::error(log, "fe");
    logspool::critical(log, "fc");
    logspool::log(log, 25, "f25");
    log.set_level(logspool::level::error);
    LOGSPOOL_WARNING(log, "above its level now {}", seen(1));
    log.set_level(logspool::level::trace);
    LOGSPOOL_DEBUG(log, "d {}", seen(1));
    LOGSPOOL_TRACE(log, "below the floor {}", seen(1));
    const logspool::logger none;
    LOGSPOOL_CRITICAL(none, "no logger {}", seen(1));
    logspool::critical(none, "no logger");
    logspool::log_text(none, 50, "no logger");
    in_template(log, 1);
    in_template(log, "two");
    if (evaluated == 6)
        LOGSPOOL_INFO(log, "evaluated {}", evaluated);
    else
        LOGSPOOL_INFO(log, "WRONG {}", evaluated);
}

static void rates(const logspool::logger &log) {
    for (int i = 0; i < 7; ++i) {
        LOGSPOOL_INFO_EVERY_N(log, 3, "every {}", i);
        LOGSPOOL_INFO_LIMIT(log, std::chrono::hours(1), "hour {}", i);
        LOGSPOOL_WARNING_LIMIT(log, std::chrono::milliseconds(100), "limit {}", i);
        if (i == 5) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
        }
    }
}

static void keys(const logspool::logger &log) {
    LOGSPOOL_INFO(log, "by {user}", "user"_kv = "Ana", logspool::kv("n", 3), logspool::kv("yes", true));
    LOGSPOOL_INFO(log, "order", logspool::fields(order{1, "apple"}));
    LOGSPOOL_TEXT(log, logspool::level::info, "text", logspool::kv("k", 2.5));
    LOGSPOOL_INFO(log, "mended {}", "\xFF", logspool::kv("\xFF", "\xFE"));
}

static void backtrace(logspool::logger log) {
    LOGSPOOL_BACKTRACE(log, logspool::level::debug, "no memory {}", 0);
    logspool::enable_backtrace(log, 3);
    for (int i = 0; i < 5; ++i) {
        LOGSPOOL_BACKTRACE(log, logspool::level::debug, "kept {} {}", i, std::string(static_cast<std::size_t>(i) * 50, 'x'));
        LOGSPOOL_WARNING(log, "below the flush level");
    }
    LOGSPOOL_ERROR(log, "first");
    LOGSPOOL_ERROR(log, "nothing is kept");
    LOGSPOOL_BACKTRACE(log, logspool::level::info, "kept \xFF", logspool::kv("k", 1));
    logspool::log_text(log, logspool::level::error, "second");
    LOGSPOOL_BACKTRACE(log, logspool::level::info, "by hand");
    logspool::flush_backtrace(log);
}

static void threads(const logspool::logger &log) {
    std::printf("%ld\n", syscall(SYS_gettid));
    for (int i = 0; i < 3; ++i) {
        LOGSPOOL_INFO(log, "first {}", i);
    }
    std::thread([&log] {
        std::printf("%ld\n", syscall(SYS_gettid));
        for (int i = 0; i < 3; ++i) {
            LOGSPOOL_INFO(log, "second {}", i);
        }
    }).join();
}

static void names(const logspool::logger &log) {
    pthread_setname_np(pthread_self(), "main thread");
    for (int i = 0; i < 2; ++i) {
        LOGSPOOL_INFO(log, "first {}", i, logspool::kv("user", "ada"));
    }
    std::thread([&log] {
        pthread_setname_np(pthread_self(), "w\xff");
        LOGSPOOL_INFO(log, "second", logspool::kv("user", "bob"));
        logspool::log_text(log, logspool::level::info, "text");
    }).join();
}

static void zones(const logspool::logger &log) {
    // All within one second, mostly: a kept text of the second must not outlive its zone.
    for (const char *zone : {"AAA-1", "BBB-2", "CCC-3", "AAA-1", "Europe/Berlin", "UTC0"}) {
        setenv("TZ", zone, 1);
        tzset();
        LOGSPOOL_INFO(log, "{}", zone);
        logspool::flush();
    }
}

static void large(const logspool::logger &log) {
    // Characters of two bytes; no character may be cut in two.
    std::string text = "x";
    while (text.size() < std::size_t{70} << 20) {
        text += text.size() == 1 ? "\u00E9" : text.substr(1);
    }
    LOGSPOOL_INFO(log, "{} {} {}", 1, text, 2);
    logspool::flush();
    logspool::log_text(log, logspool::level::info, text);
    logspool::flush();
    logspool_arg argument{};
    argument.type = LOGSPOOL_ARG_TEXT;
    argument.length = static_cast<std::uint32_t>(text.size());
    argument.value.p = text.data();
    logspool_site_info info{};
    info.size = sizeof info;
    info.message = "{}";
    info.level = logspool::level::info;
    info.grammar = LOGSPOOL_FMT;
    logspool_emit(log.id(), logspool_site(&info), &argument, 1);
    std::printf("%zu\n", text.size());
}

static void errors(const logspool::logger &log) {
    try {
        LOGSPOOL_INFO(log, "{}", thrower{});
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
    }
    LOGSPOOL_INFO(log, "goes on");
    try {
        logspool::sink("/no/such/folder/x.log");
    } catch (const logspool::setup_error &error) {
        std::puts(error.what());
    }
    try {
        logspool::configure("{\"queue_byte\": 1}");
    } catch (const logspool::setup_error &error) {
        std::puts(error.what());
    }
}

int main(int, char **argv) {
    const char *const what = argv[2];
    const logspool::logger log("app", logspool::level::info, logspool::sink(argv[1], argv[3]));
    if (std::strcmp(what, "levels") == 0) {
        levels(log);
    } else if (std::strcmp(what, "rates") == 0) {
        rates(log);
    } else if (std::strcmp(what, "keys") == 0) {
        keys(log);
    } else if (std::strcmp(what, "backtrace") == 0) {
        backtrace(log);
    } else if (std::strcmp(what, "threads") == 0) {
        threads(log);
    } else if (std::strcmp(what, "names") == 0) {
        names(log);
    } else if (std::strcmp(what, "zones") == 0) {
        zones(log);
    } else if (std::strcmp(what, "large") == 0) {
        large(log);
    } else if (std::strcmp(what, "errors") == 0) {
        errors(log);
    }
    logspool::flush();
    const logspool::counters all = logspool::count();
    std::printf("%llu %llu %llu %llu\n", static_cast<unsigned long long>(all.offered),
                static_cast<unsigned long long>(all.accepted), static_cast<unsigned long long>(all.refused),
                static_cast<unsigned long long>(all.depth));
    return 0;
}
