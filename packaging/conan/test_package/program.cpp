#include <logspool.hpp>

int main() {
    const logspool::logger log("package", logspool::level::info, logspool::sink("stdout"));
    LOGSPOOL_INFO(log, "{} works", "logspool");
}
