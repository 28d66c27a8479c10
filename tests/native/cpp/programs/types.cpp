// Logs values of every type, and prints the expected lines.
#include <logspool.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

using namespace logspool::literals;

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

enum class color : unsigned char { red = 3 };
enum class change : int { back = -3 };
enum plain { seven = 7 };

struct order {
    int id;
    std::string name;
    double price;
};
template <class Visitor> void logspool_fields(const order &value, Visitor &visitor) {
    visitor("id", value.id);
    visitor("name", value.name);
    visitor("price", value.price);
}

struct basket {
    order first;
    bool paid;
};
template <class Visitor> void logspool_fields(const basket &value, Visitor &visitor) {
    visitor("first", value.first);
    visitor("paid", value.paid);
}

struct port {
    unsigned short number;
};
template <> struct logspool::codec<port> {
    static std::string encode(const port &value) { return "port-" + std::to_string(value.number); }
};

struct degrees {
    double value;
};
template <> struct logspool::codec<degrees> {
    static double encode(const degrees &value) { return value.value; }
};

struct named {
    operator std::string_view() const { return "converted"; }
};

#define SHOWS(expected, ...)                 \
    do {                                     \
        LOGSPOOL_INFO(log, __VA_ARGS__);     \
        logspool::info(log, __VA_ARGS__);    \
        std::puts(expected);                 \
        std::puts(expected);                 \
    } while (false)

int main(int, char **argv) {
    const logspool::logger log("types", logspool::level::info, logspool::sink(argv[1], "{\"template\": \"%(message)s\"}"));
    const std::string text = "Ana";
    const std::string_view view = "view";
    char array[10] = "array";
    const char *null = nullptr;
    int number = 5;
    SHOWS("user Ana did 3 in 1.500 ms", "user {} did {} in {:.3f} ms", text, 3, 1.5);
    SHOWS("Hello World!", "Hello World!");
    SHOWS("{} {x}", "{{}} {{x}}");
    SHOWS("true false 1", "{} {} {:d}", true, false, true);
    SHOWS("c 99 'x'", "{} {:d} {:?}", 'c', 'c', 'x');
    SHOWS("\xEF\xBF\xBD", "{}", static_cast<char>(0xE9));
    SHOWS("-1 255 -2 65535", "{} {} {} {}", static_cast<signed char>(-1), static_cast<unsigned char>(255),
          static_cast<short>(-2), static_cast<unsigned short>(65535));
    SHOWS("-3 4 -5 6", "{} {} {} {}", -3L, 4UL, -5LL, 6ULL);
    SHOWS("-9223372036854775808 18446744073709551615", "{} {}", std::numeric_limits<long long>::min(),
          std::numeric_limits<unsigned long long>::max());
    SHOWS("ff 0XFF 0b101 0o7 +5", "{:x} {:#X} {:#b} 0o{:o} {:+}", 255, 255U, 5, 7, 5);
    SHOWS("1267650600228229401496703205376 -1267650600228229401496703205376", "{} {}", static_cast<wide>(1) << 100,
          -(static_cast<wide>(1) << 100));
    SHOWS("340282366920938463463374607431768211455 -170141183460469231731687303715884105728", "{} {}",
          ~static_cast<unsigned_wide>(0), static_cast<wide>(static_cast<unsigned_wide>(1) << 127));
    SHOWS("-9223372036854775808 9223372036854775808 42", "{} {} {}",
          static_cast<wide>(std::numeric_limits<long long>::min()), -static_cast<wide>(std::numeric_limits<long long>::min()),
          static_cast<unsigned_wide>(42));
    SHOWS("0.1 0.1 1 1e+100 inf -nan", "{} {} {} {} {} {}", 0.1, 0.1F, 1.0, 1e100, HUGE_VAL, std::copysign(NAN, -1.0));
    SHOWS("3.14|  3.1|+3.142|3.14e+00", "{:.2f}|{:5.1f}|{:+.4g}|{:.2e}", 3.14159, 3.14159, 3.14159, 3.14159);
    SHOWS("Ana view array literal (null) (null)", "{} {} {} {} {} {}", text, view, array, "literal", null,
          static_cast<char *>(nullptr));
    SHOWS("  Ana|Ana  |*Ana*|An|\"A\\n\"", "{:>5}|{:<5}|{:*^5}|{:.2}|{:?}", text, text, text, text, "A\n");
    SHOWS("\u00E9\u20AC\U0001F600", "{}", "\u00E9\u20AC\U0001F600");
    SHOWS("a\xEF\xBF\xBD\xEF\xBF\xBD(b \xEF\xBF\xBD ok", "{} {} {}", "a\xFF\xC3(b", "\xE2\x82", "ok");
    SHOWS("0x1234 0x0 0x10 0x20", "{} {} {} {:p}", reinterpret_cast<void *>(0x1234), nullptr,
          reinterpret_cast<const int *>(0x10), reinterpret_cast<const order *>(0x20));
    SHOWS("3 -3 7", "{} {} {}", color::red, change::back, seven);
    SHOWS("port-80 36.60 converted", "{} {:.2f} {}", port{80}, degrees{36.6}, named{});
    SHOWS("(1, \"apple\", 2.5)", "{}", order{1, "apple", 2.5});
    SHOWS("((1, \"apple\", 2.5), true)", "{}", basket{{1, "apple", 2.5}, true});
    SHOWS("12:30 rendered", "{:%H:%M} {:>99}", logspool::text("12:30"), logspool::text("rendered"));
    SHOWS("by Ana, Ana", "by {user}, {user:>{}}", 3, "user"_kv = text);
    SHOWS("keys are not shown", "keys are not shown", logspool::kv("a", 1), "b"_kv = "x");
    SHOWS("2 1 1", "{1} {0} {0}", 1, 2);
    SHOWS("    1| 2.50", "{:{}}|{:{}.{}f}", 1, 5, 2.5, 5, 2U);
    SHOWS("one", "{}", "one", "unused");
    SHOWS(std::string(3000, 'x').c_str(), "{}", std::string(3000, 'x'));
    SHOWS(std::string(50000, 'y').c_str(), "{}", std::string(50000, 'y'));
    SHOWS("6", "{}", ++number - 0 > 6 ? 6 : number);
    for (std::size_t length = 0; length < 40; ++length) {
        const std::string part(length, static_cast<char>('a' + length % 26));
        SHOWS((part + "|" + part).c_str(), "{}|{}", part, part);
    }
    std::string large(2000, 'z');
    SHOWS(("(1, \"" + large + "\", 2.5)").c_str(), "{}", order{1, large, 2.5});
    LOGSPOOL_TEXT(log, logspool::level::error, "raw {} {{ text");
    LOGSPOOL_TEXT(log, logspool::level::error, std::string("bad \xFF"), logspool::kv("k", 1));
    logspool::log_text(log, 35, "finished {}", "file.cpp", 7, "function");
    std::puts("raw {} {{ text\nbad \xEF\xBF\xBD\nfinished {}");
    return 0;
}
