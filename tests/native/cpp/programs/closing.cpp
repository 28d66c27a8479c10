// closing FOLDER COUNT: a logger for each of COUNT connections, and a file for every hundredth.
#include <logspool.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

constexpr const char *format = R"({"template": "%(name)s %(message)s"})";

int main(int, char **arguments) {
    const std::string folder = std::string(arguments[1]) + "/";
    const int count = std::atoi(arguments[2]);
    const logspool::sink all(folder + "all", format);
    const logspool::logger lasting("lasting", logspool::level::info, all);
    logspool::scoped<logspool::logger> moved;
    for (int i = 0; i < count; ++i) {
        const std::string name = "connection " + std::to_string(i);
        logspool::scoped<logspool::logger> log(name.c_str(), logspool::level::info, all);
        LOGSPOOL_INFO(log, "opens {}", i);
        if (i % 100 == 0) {
            const logspool::scoped<logspool::sink> own(folder + std::to_string(i % 700), format);
            const logspool::scoped<logspool::logger> only("own", logspool::level::info, own);
            LOGSPOOL_INFO(only, "{}", i);
        }
        if (i % 1000 == 0) {
            LOGSPOOL_INFO(lasting, "{}", i);
            moved = std::move(log);
        }
    }
    LOGSPOOL_INFO(moved, "still here");
    logspool::logger copy = moved;
    for (int i = 0; i < 2; ++i) {
        std::printf("%d ", moved.close());
    }
    std::printf("%d\n", static_cast<bool>(moved));
    LOGSPOOL_ERROR(copy, "a copy of a closed logger logs nothing");
    std::printf("%d ", copy.logs(logspool::level::critical));
    std::printf("%d\n", copy.close());
    return 0;
}
