// sites FILE: the sites that functions find by the place of the call.
#include <logspool.hpp>

#include <cstdio>
#include <cstring>

int main(int, char **arguments) {
    const logspool::logger log("sites", logspool::level::info,
                               logspool::sink(arguments[1], R"({"template": "%(message)s"})"));
    using namespace logspool::detail;
    // Two libraries, one after the other, whose texts have one address.
    char text[] = "first";
    const call_location place = call_location::current();
    site_slot &first = site_at(place, logspool::level::info, site_template{text, nullptr, 0});
    site_slot &again = site_at(place, logspool::level::info, site_template{text, nullptr, 0});
    std::memcpy(text, "other", sizeof text);
    site_slot &other = site_at(place, logspool::level::info, site_template{text, nullptr, 0});
    std::printf("%d %d\n", &first == &again, &first == &other);
    for (int i = 0; i < 2; ++i) {
        logspool::info(log, "from a function {}", i);
    }
    return 0;
}
