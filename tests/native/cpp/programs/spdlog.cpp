// Logs through spdlog with a sink of logspool.
#include <logspool_spdlog.hpp>

#include <spdlog/spdlog.h>

int main(int, char **argv) {
    const logspool::sink output(argv[1], "{\"template\": \"%(levelname)s %(name)s %(filename)s %(message)s\"}");
    const auto sink = std::make_shared<logspool::spdlog_sink>(logspool::logger("shop", logspool::level::debug, output));
    spdlog::logger old("old", sink);
    old.set_level(spdlog::level::trace);
    old.set_pattern("unused");
    old.trace("t {}", 1);
    old.debug("d {}", 1);
    old.info("i {:>3}", 1);
    // Without arguments spdlog does not format the text.
    old.warn("w {{}}");
    old.error("e {}", "bad \xFF");
    old.critical("c");
    SPDLOG_LOGGER_INFO(&old, "placed {}", 2.5);
    old.flush();
    return 0;
}
