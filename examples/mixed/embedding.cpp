// A program that embeds Python; both log into one file, in one order:
// g++ -std=c++20 -O2 embedding.cpp $(pkg-config --cflags --libs logspool) $(python3-config --embed --cflags --ldflags)
//     -o embedding
#include <Python.h>

#include <logspool.hpp>

static constexpr const char *script = R"(
import logging
import logspool

logging.basicConfig(filename="shop.log", format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
logspool.install()
logging.getLogger("shop.plan").info("two customers are expected")
)";

int main() {
    const logspool::sink file("shop.log", R"({"template": "%(asctime)s %(levelname)s %(name)s %(message)s"})");
    const logspool::logger log("shop", logspool::level::info, file);
    LOGSPOOL_INFO(log, "open");

    Py_Initialize();
    // The queue moves from liblogspool to the core of the Python package here; C++ keeps its objects and continues.
    if (PyRun_SimpleString(script) != 0) {
        return 1;
    }
    LOGSPOOL_INFO(log, "customer {} is served", 1);
    PyRun_SimpleString("logging.getLogger('shop.plan').info('one customer is left')");
    LOGSPOOL_INFO(log, "customer {} is served", 2);

    const int failed = Py_FinalizeEx();
    LOGSPOOL_INFO(log, "closed"); // C++ may log after the interpreter's end.
    return failed == 0 ? 0 : 1;
}
