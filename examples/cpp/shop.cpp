// A shop that logs: g++ -std=c++20 shop.cpp $(pkg-config --cflags --libs logspool) -o shop
#include <logspool.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace logspool::literals;

namespace shop {

/// A type of the program. Its fields are shown as `(1, "apple", 2.5)`, or sent as key-values by `logspool::fields`.
struct order {
    int id;
    std::string what;
    double price;
};

template <class Visitor> void logspool_fields(const order &value, Visitor &visitor) {
    visitor("id", value.id);
    visitor("what", value.what);
    visitor("price", value.price);
}

enum class state : unsigned char { open, paid };

} // namespace shop

/// Shows a state by its name. The name is sent, the line is made later.
template <> struct logspool::codec<shop::state> {
    static const char *encode(shop::state value) { return value == shop::state::open ? "open" : "paid"; }
};

static void serve(const logspool::logger &log, int clerk) {
    for (int customer = 0; customer < 3; ++customer) {
        const shop::order order{clerk * 10 + customer, "apple", 2.5 * (customer + 1)};
        LOGSPOOL_DEBUG(log, "clerk {} sees customer {}", clerk, customer);
        LOGSPOOL_INFO(log, "order {} is {} for {:.2f}", order, shop::state::paid, order.price, "clerk"_kv = clerk);
        LOGSPOOL_WARNING_EVERY_N(log, 100, "{} apples are left", 10 - customer);
    }
}

int main(int count, char **arguments) {
    const char *const address = count > 1 ? arguments[1] : "stdout";
    logspool::logger log("shop", logspool::level::info,
                         logspool::sink(address, "{\"template\": \"%(asctime)s %(levelname)s %(name)s %(message)s\"}"));
    logspool::enable_backtrace(log, 10);
    LOGSPOOL_BACKTRACE(log, logspool::level::debug, "the till has {} coins", 42);

    std::vector<std::thread> clerks;
    for (int clerk = 1; clerk <= 2; ++clerk) {
        clerks.emplace_back(serve, std::cref(log), clerk);
    }
    for (std::thread &clerk : clerks) {
        clerk.join();
    }
    // The kept record comes before this one.
    LOGSPOOL_ERROR(log, "the till is {reason}", "reason"_kv = "empty");
    logspool::info(log, "{} records were dropped", logspool::count().dropped);
    return 0; // Everything is written by then.
}
