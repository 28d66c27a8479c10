// sinks FOLDER: a level for each sink, loggers that are found by name, and control characters in texts.
#include <logspool.hpp>

#include <cstdio>
#include <string>

static std::string folder;

static logspool::sink file(const char *name, const char *format) { return logspool::sink(folder + name, format); }

static void levels() {
    const logspool::logger log("levels", logspool::level::debug,
                               {file("all", R"({"template": "%(message)s"})"),
                                file("warnings", R"({"template": "%(message)s", "level": "warning"})"),
                                file("errors", R"({"pattern": "{message}", "level": 40})")});
    LOGSPOOL_DEBUG(log, "debug");
    LOGSPOOL_WARNING(log, "warning");
    LOGSPOOL_ERROR(log, "error");
    logspool::log_text(log, logspool::level::critical, "critical");
}

static void found() {
    const logspool::logger log("found", logspool::level::error, file("found", R"({"template": "%(message)s"})"));
    const logspool::logger same = logspool::get("found");
    const logspool::logger other = logspool::get("other");
    LOGSPOOL_ERROR(same, "{} {} {}", same.id() == log.id(), same.level(), static_cast<bool>(other));
    LOGSPOOL_WARNING(same, "below the level that the logger has");
    LOGSPOOL_CRITICAL(other, "nowhere");
    LOGSPOOL_ERROR(log, "{}", logspool::last_error());
}

// Names and formats that a program has made.
static void made() {
    const std::string name = "connection " + std::to_string(7);
    const std::string format = R"({"template": "%(name)s)" + std::string(R"( %(message)s"})");
    const logspool::scoped<logspool::sink> sink(folder + "made", format);
    const logspool::scoped<logspool::logger> log(name, logspool::level::info, sink);
    LOGSPOOL_INFO(log, "{}", logspool::get(name).id() == log.id());
}

static void control() {
    const logspool::logger log(
        "control", logspool::level::debug,
        {logspool::sink("stdout", R"({"template": "\u001b[1m%(levelname)s\u001b[0m %(message)s"})"),
         logspool::sink("fd:1", R"({"pattern": "{message:>9}|\u0007{fields}"})"),
         logspool::sink("stdout", R"({"template": "%(message)s", "escape_control": false})"),
         file("kept", R"({"template": "%(message)s"})"),
         file("escaped", R"({"template": "%(message)s", "escape_control": true})"),
         file("json", R"({"json": {"m": "message"}, "escape_control": true})")});
    LOGSPOOL_INFO(log, "plain \t {}", 1);
    for (int again = 0; again < 2; ++again) {
        LOGSPOOL_INFO(log, "{} {}", std::string("a\nINFO forged"), 7, logspool::kv("k", "\x1b[2J"));
        LOGSPOOL_INFO(log, "\xe2\x80\xae");
    }
}

int main(int, char **arguments) {
    folder = std::string(arguments[1]) + "/";
    levels();
    found();
    made();
    control();
    return 0;
}
