// Logs values whose text is made in the call, and prints the expected lines.
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdio>
#include <deque>
#include <exception>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <iosfwd>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#ifdef WITH_FMT
#define FMT_HEADER_ONLY
#include <fmt/format.h>
#endif

#include <logspool.hpp>

using namespace std::chrono_literals;
using namespace logspool::literals;

namespace shop {

struct streamed {
    int x;
    friend std::ostream &operator<<(std::ostream &to, const streamed &value) { return to << "<" << value.x << ">"; }
};
struct texted {
    int x;
};
std::string to_string(const texted &value) { return "texted " + std::to_string(value.x); }
struct member {
    std::string to_string() const { return "member"; }
};
enum class shade { dark };
std::ostream &operator<<(std::ostream &to, shade) { return to << "dark"; }
enum state { open };
std::string to_string(state) { return "open"; }
enum class plain { zero };
enum letter { alpha };
std::ostream &operator<<(std::ostream &to, letter) { return to << "alpha"; }
struct forwarded {
    int x;
};
int format_as(const forwarded &value) { return value.x; }
struct thrower {
    friend std::ostream &operator<<(std::ostream &, const thrower &) { throw std::runtime_error("thrown"); }
};
struct encoded {};
struct fielded {
    std::vector<int> list;
    std::string name;
};
template <class Visitor> void logspool_fields(const fielded &value, Visitor &visitor) {
    visitor("list", value.list);
    visitor("name", value.name);
}
struct formatted {
    int x;
};

} // namespace shop

template <> struct logspool::codec<shop::encoded> {
    static std::optional<int> encode(const shop::encoded &) { return 7; }
};
#ifdef WITH_FMT
template <> struct fmt::formatter<shop::formatted> : fmt::formatter<int> {
    template <class Context> auto format(const shop::formatted &value, Context &context) const {
        return fmt::format_to(context.out(), "formatted {}", value.x);
    }
};
#endif

// With ONE_FORM each value is logged by the macro only: a sanitized program compiles in two thirds of the time.
#ifdef ONE_FORM
#define SHOWS(expected, ...)             \
    do {                                 \
        LOGSPOOL_INFO(log, __VA_ARGS__); \
        std::puts(expected);             \
    } while (false)
#else
#define SHOWS(expected, ...)              \
    do {                                  \
        LOGSPOOL_INFO(log, __VA_ARGS__);  \
        logspool::info(log, __VA_ARGS__); \
        std::puts(expected);              \
        std::puts(expected);              \
    } while (false)
#endif

/// The calendar of `<chrono>`.
void show_calendar(const logspool::logger &log) {
    using namespace std::chrono;
    SHOWS("05 Jan 2024 Thu", "{} {} {} {}", day(5), January, year(2024), Thursday);
    SHOWS("32 is not a valid day|13 is not a valid month|-32768 is not a valid year|8 is not a valid weekday",
          "{}|{}|{}|{}", day(32), month(13), year(-32768), weekday(8));
    SHOWS("0045 -0045 12024", "{} {} {}", year(45), year(-45), year(12024));
    SHOWS("Thu[2] Thu[6 is not a valid index] Sun[last]", "{} {} {}", Thursday[2], Thursday[6], Sunday[last]);
    SHOWS("Jan/05 Feb/last Mar/Mon[1] Apr/Tue[last]", "{} {} {} {}", January / 5, February / last, March / Monday[1],
          April / Tuesday[last]);
    SHOWS("2024/May 2024-01-05 2024/Feb/last 2024/Jun/Wed[3] 2024/Dec/Sat[last]", "{} {} {} {} {}", year(2024) / May,
          year(2024) / 1 / 5, year(2024) / February / last, year(2024) / June / Wednesday[3],
          year(2024) / December / Saturday[last]);
    SHOWS("2023-02-29 is not a valid date", "{}", year(2023) / 2 / 29);
    SHOWS("01:02:03.045 -01:00:09", "{} {}", hh_mm_ss(3723045ms), hh_mm_ss(-3609s));
    SHOWS("  2024-01-05 [2024-01-05] optional(Fri)", "{:>12} {} {}", year(2024) / 1 / 5,
          std::vector<year_month_day>{year(2024) / 1 / 5}, std::optional<weekday>(Friday));
}

int main(int, char **argv) {
    const logspool::logger log("shown", logspool::level::info, logspool::sink(argv[1], "{\"template\": \"%(message)s\"}"));
    // Containers.
    int array[3] = {1, 2, 3};
    SHOWS("[1, 2] []", "{} {}", std::vector<int>{1, 2}, std::vector<double>{});
    SHOWS("[\"a\", \"\\\"b\\\"\\n\\x{1b}\"]", "{}", std::vector<std::string>{"a", "\"b\"\n\x1b"});
    SHOWS("[[1], [2]]", "{}", std::vector<std::vector<int>>{{1}, {2}});
    SHOWS("[true, false]", "{}", std::vector<bool>{true, false});
    SHOWS("[1, 2, 3] [1, 2, 3] [0.5, 1, 100000, 1e+16, 1e-05]", "{} {} {}", array, std::span<int>(array),
          std::array<double, 5>{0.5, 1, 100000, 1e16, 1e-5});
    SHOWS("['a'] [2] [3]", "{} {} {}", std::deque<char>{'a'}, std::list<int>{2}, std::forward_list<unsigned char>{3});
    SHOWS("{1: \"a\"} {2: [3]}", "{} {}", std::map<int, std::string>{{1, "a"}},
          std::unordered_map<int, std::vector<int>>{{2, {3}}});
    SHOWS("{1, 2} {3} {4, 4}", "{} {} {}", std::set<int>{2, 1}, std::unordered_set<int>{3}, std::multiset<int>{4, 4});
    SHOWS("(1, \"a\") (1, 'c', 2.5) ()", "{} {} {}", std::pair<int, const char *>(1, "a"),
          std::tuple<int, char, float>(1, 'c', 2.5F), std::tuple<>());
    // The rest of the standard library.
    SHOWS("optional(1) none optional(\"x\")", "{} {} {}", std::optional<int>(1), std::optional<int>(),
          std::optional<std::string>("x"));
    SHOWS("variant(1) variant(\"v\") variant(monostate)", "{} {} {}", std::variant<int, std::string>(1),
          std::variant<int, std::string>("v"), std::variant<std::monostate, int>());
    SHOWS("5ns 6us 1500ms -7s 2min 3h 1.5s 4[1/30]s", "{} {} {} {} {} {} {} {}", 5ns, 6us, 1500ms, -7s, 2min, 3h,
          std::chrono::duration<double>(1.5), (std::chrono::duration<int, std::ratio<1, 30>>(4)));
    const std::chrono::sys_time<std::chrono::milliseconds> early(-1ms);
    SHOWS("2001-09-09 01:46:40.123456 1969-12-31 23:59:59.999 1970-01-01 00:00:05", "{} {} {}",
          std::chrono::sys_time<std::chrono::microseconds>(1'000'000'000'123'456us), early,
          std::chrono::sys_time<std::chrono::seconds>(5s));
    SHOWS("9ns", "{}", std::chrono::steady_clock::time_point(9ns));
    SHOWS("/a b/c [\"x\"]", "{} {}", std::filesystem::path("/a b/c"), std::vector<std::string_view>{"x"});
    SHOWS("generic:2 generic:17 what", "{} {} {}", std::make_error_code(std::errc::no_such_file_or_directory),
          std::make_error_condition(std::errc::file_exists), std::runtime_error("what"));
    SHOWS("thread::id of a non-executing thread", "{}", std::thread::id());
    SHOWS("0101 (1,2)", "{} {}", std::bitset<4>(5), std::complex<double>(1, 2));
    SHOWS("0x0 2 4 true", "{} {} {} {}", std::shared_ptr<int>(), std::ref(array[1]), std::atomic<int>(4),
          std::atomic<bool>(true));
    SHOWS("i 3", "{} {}", std::type_index(typeid(int)), std::byte{3});
    SHOWS("\u00E9 [\"\u00E9\"]", "{} {}", u8"\u00E9", std::vector<std::u8string>{u8"\u00E9"}.size() == 1
                                                             ? std::vector<std::string>{"\u00E9"}
                                                             : std::vector<std::string>{});
    std::queue<int> queue(std::deque<int>{1, 2});
    const std::stack<std::string, std::vector<std::string>> stack(std::vector<std::string>{"a", "b"});
    SHOWS("[1, 2] [\"a\", \"b\"] [3, 1] [[1, 2]]", "{} {} {} {}", queue, stack,
          std::priority_queue<int>(std::less<int>(), {1, 3}), std::vector<std::queue<int>>{queue});
    SHOWS("none held unknown exception [none]", "{} {} {} {}", std::exception_ptr(),
          std::make_exception_ptr(std::runtime_error("held")), std::make_exception_ptr(5),
          std::vector<std::exception_ptr>(1));
    // Numbers that are no double.
    SHOWS("1 0.1 -2.5 100000 1e+16 1e-05 inf", "{} {} {} {} {} {} {}", 1.0L, 0.1L, -2.5L, 1e5L, 1e16L, 1e-5L,
          std::numeric_limits<long double>::infinity());
    if constexpr (std::numeric_limits<long double>::digits == 64) {
        SHOWS("3.1415926535897932385 0.0001 1.189731495357231765e+4932", "{} {} {}", 3.14159265358979323846264338328L,
              1e-4L, std::numeric_limits<long double>::max());
        SHOWS("9007199254740993 [0.1, 1.0000000000000000001]", "{} {}", 9007199254740993.0L,
              std::vector<long double>{0.1L, 1.0000000000000000001L});
    }
    SHOWS("   1.5|1.5   |**1.5**|by 0.1", "{:>6}|{:<6}|{:*^7}|by {x}", 1.5L, 1.5L, 1.5L, "x"_kv = 0.1L);
    show_calendar(log);
    // Types of the program.
    SHOWS("<1> texted 2 member dark open 0 alpha 5", "{} {} {} {} {} {} {} {}", shop::streamed{1}, shop::texted{2},
          shop::member{}, shop::shade::dark, shop::open, shop::plain::zero, shop::alpha,
          shop::forwarded{5});
    SHOWS("[<1>] {\"a\": texted 2} optional(dark) (open, 5)", "{} {} {} {}", std::vector<shop::streamed>{{1}},
          (std::map<std::string, shop::texted>{{"a", {2}}}), std::optional<shop::shade>(shop::shade::dark),
          std::pair<shop::state, shop::forwarded>(shop::open, {5}));
    SHOWS("  <1>|<1>  |[1]...|\"<1>\"", "{:>5}|{:<5}|{:.<6}|{:?}", shop::streamed{1}, shop::streamed{1},
          std::vector<int>{1}, shop::streamed{1});
    SHOWS("optional(7) [optional(7)]", "{} {}", shop::encoded{}, std::vector<shop::encoded>(1));
    SHOWS("([1, 2], \"n\") [([], \"m\")]", "{} {}", shop::fielded{{1, 2}, "n"}, std::vector<shop::fielded>{{{}, "m"}});
    SHOWS("by [1]", "by {list}", "list"_kv = std::vector<int>{1}, logspool::kv("more", 5s));
    SHOWS("[\"a\xEF\xBF\xBD\"]", "{}", std::vector<std::string>{"a\xFF"});
#ifdef WITH_FMT
    SHOWS("formatted 1 [formatted 2]", "{} {}", shop::formatted{1}, std::vector<shop::formatted>{{2}});
#endif
    try {
        LOGSPOOL_INFO(log, "never {}", shop::thrower{});
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
        LOGSPOOL_INFO(log, "{}", error);
    }
    return 0;
}
