/// \file
/// Texts of values that have no form of their own in a record: types with an `operator<<`, a formatter or `to_string`,
/// and types of the standard library. The calling thread makes these texts; other values are formatted later.
///
/// Types of the standard library are found by their members, so that this header includes few of its headers.
#ifndef LOGSPOOL_TEXTS_HPP
#define LOGSPOOL_TEXTS_HPP

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#if __has_include(<format>)
#include <format>
#endif

#include "calendar.hpp"
#include "utf8.hpp"

namespace logspool::detail {

/// Whether {fmt} shows the type: only if its header is included before this one.
template <class Type>
concept has_fmt =
#if defined(FMT_VERSION)
    std::is_default_constructible_v<fmt::formatter<Type, char>>;
#else
    false;
#endif

template <class Type>
concept has_std_format =
#if defined(__cpp_lib_format)
    std::is_default_constructible_v<std::formatter<Type, char>>;
#else
    false;
#endif

template <class Type>
concept has_format_as = requires(const Type &value) { format_as(value); };
/// A function `operator<<`. The members of std::ostream would take what converts to a number, for example a lambda.
template <class Type>
concept has_stream = requires(std::ostream &to, const Type &value) { operator<<(to, value); };
template <class Type>
concept has_to_string = requires(const Type &value) {
    { to_string(value) } -> std::convertible_to<std::string_view>;
};
template <class Type>
concept has_own_to_string = requires(const Type &value) {
    { value.to_string() } -> std::convertible_to<std::string_view>;
};

template <class Type>
concept is_duration = requires(const Type &value) {
    typename Type::period;
    typename Type::rep;
    value.count();
};
template <class Type>
concept is_time_point = requires(const Type &value) {
    typename Type::clock;
    { value.time_since_epoch() } -> is_duration;
};
template <class Type>
concept is_wall_time = is_time_point<Type> && requires(const Type &value) { Type::clock::to_time_t(value); };
template <class Type>
concept is_path = requires(const Type &value) {
    { value.native() } -> std::convertible_to<std::string_view>;
    value.lexically_normal();
};
template <class Type>
concept is_expected = requires(const Type &value) {
    value.has_value();
    value.error();
};
template <class Type>
concept is_optional = !is_expected<Type> && requires(const Type &value) {
    typename Type::value_type;
    value.has_value();
    *value;
};
template <class Type>
concept is_variant = requires(const Type &value) {
    value.valueless_by_exception();
    value.index();
};
template <class Type>
concept is_error_condition = requires(const Type &value) {
    { value.category().name() } -> std::convertible_to<std::string_view>;
    value.value();
};
template <class Type>
concept is_exception = std::is_base_of_v<std::exception, Type>;
template <class Type>
concept is_place = requires(const Type &value) {
    value.file_name();
    value.function_name();
    value.line();
};
template <class Type>
concept is_type_name = requires(const Type &value) {
    { value.name() } -> std::same_as<const char *>;
    value.hash_code();
};
/// Smart pointers, which are shown as addresses.
template <class Type>
concept is_smart_pointer = requires(const Type &value) {
    typename Type::element_type;
    { value.get() } -> std::convertible_to<const volatile void *>;
};
template <class Type>
concept is_reference = requires(const Type &value) {
    typename Type::type;
    { value.get() } -> std::same_as<typename Type::type &>;
};
template <class Type>
concept is_atomic = requires(const Type &value) {
    typename Type::value_type;
    { value.load() } -> std::same_as<typename Type::value_type>;
    value.is_lock_free();
};
/// A range of values. A range of itself, as a path is one, would have no end.
template <class Type>
concept is_range = requires(const Type &value) {
    std::begin(value) != std::end(value);
    requires !std::is_same_v<std::remove_cvref_t<decltype(*std::begin(value))>, Type>;
};
/// Reaches the protected container of an adaptor.
template <class Type> struct opened : Type {
    template <class Own> static auto container(const Type &value) -> decltype(value.*(&Own::c)) {
        return value.*(&Own::c);
    }
};
/// `std::queue`, `std::stack` and `std::priority_queue`.
template <class Type>
concept is_adaptor = !std::is_final_v<Type> && !is_range<Type> && requires(const Type &value) {
    typename Type::container_type;
    opened<Type>::template container<opened<Type>>(value);
};
template <class Type>
concept is_tuple = requires { std::tuple_size<Type>::value; } && !is_range<Type>;

/// Whether the program has said how the type is shown.
template <class Type>
concept has_own_text = has_fmt<Type> || has_std_format<Type> || has_to_string<Type> || has_stream<Type>;

template <class Type>
concept has_text = has_own_text<Type> || has_own_to_string<Type> || is_duration<Type> ||
                   is_time_point<Type> || is_path<Type> || is_expected<Type> || is_optional<Type> ||
                   is_variant<Type> || is_error_condition<Type> || is_exception<Type> || is_place<Type> ||
                   is_type_name<Type> || is_range<Type> || is_tuple<Type> || is_calendar<Type> || is_adaptor<Type> ||
                   std::is_same_v<Type, std::exception_ptr> || std::is_same_v<Type, std::monostate>;

inline std::string_view unit_of(std::intmax_t numerator, std::intmax_t denominator) {
    struct unit {
        std::intmax_t numerator;
        std::intmax_t denominator;
        std::string_view name;
    };
    constexpr unit units[] = {{1, 1'000'000'000, "ns"}, {1, 1'000'000, "us"}, {1, 1000, "ms"}, {1, 1, "s"},
                              {60, 1, "min"},           {3600, 1, "h"},       {86400, 1, "d"}};
    for (const unit &each : units) {
        if (each.numerator == numerator && each.denominator == denominator) {
            return each.name;
        }
    }
    return {};
}

/// Appends values to a text as {fmt} shows them.
class text_writer {
  public:
    explicit text_writer(std::string &out) : out_(out) {}

    template <class Type> void add(const Type &value);

  private:
    /// A value in a container: texts are in quotes.
    template <class Type> void add_element(const Type &value);
    template <class Type> void add_made(const Type &value);
    template <class Type> void add_range(const Type &value);
    template <class Type> void add_variant(const Type &value);
    template <class Type> void add_fields(const Type &value);
    template <class Type, std::size_t... Indexes> void add_tuple(const Type &value, std::index_sequence<Indexes...>) {
        static_cast<void>(value);
        out_ += '(';
        ((out_ += Indexes == 0 ? "" : ", ", add_element(std::get<Indexes>(value))), ...);
        out_ += ')';
    }

    template <class Number> void add_number(Number number) {
        char digits[64];
        const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
        out_.append(digits, end.ptr);
    }

    template <class Number> void add_real(Number number) {
        char digits[64];
        const Number magnitude = std::fabs(number);
        const bool is_fixed = magnitude == 0 || (magnitude >= Number(1e-4L) && magnitude < Number(1e16));
        const std::to_chars_result end =
            std::isfinite(number)
                ? std::to_chars(digits, digits + sizeof digits, number,
                                is_fixed ? std::chars_format::fixed : std::chars_format::scientific)
                : std::to_chars(digits, digits + sizeof digits, number);
        out_.append(digits, end.ptr);
    }

    void add_quoted(std::string_view text, char quote) {
        constexpr std::string_view digits = "0123456789abcdef";
        out_ += quote;
        for (const char character : text) {
            const auto byte = static_cast<unsigned char>(character);
            const std::string_view names = "tnr";
            const std::size_t known = std::string_view("\t\n\r").find(character);
            if (known != std::string_view::npos) {
                out_ += '\\';
                out_ += names[known];
            } else if (byte < 0x20 || byte == 0x7F) {
                out_ += "\\x{";
                if (byte >= 0x10) {
                    out_ += digits[byte >> 4];
                }
                out_ += digits[byte & 15];
                out_ += '}';
            } else {
                if (character == quote || character == '\\') {
                    out_ += '\\';
                }
                out_ += character;
            }
        }
        out_ += quote;
    }

    /// `what()` of the exception that the pointer holds.
    void add_held_exception(const std::exception_ptr &value) {
        if (value == nullptr) {
            out_ += "none";
            return;
        }
#if defined(__cpp_exceptions)
        try {
            std::rethrow_exception(value);
        } catch (const std::exception &error) {
            out_ += error.what();
        } catch (...) {
            out_ += "unknown exception";
        }
#else
        out_ += "exception";
#endif
    }

    template <class Duration> void add_duration(const Duration &value) {
        using period = typename Duration::period;
        add(value.count());
        constexpr std::intmax_t numerator = period::num;
        constexpr std::intmax_t denominator = period::den;
        const std::string_view unit = unit_of(numerator, denominator);
        out_ += unit;
        if (unit.empty()) {
            out_ += '[';
            add_number(numerator);
            if (denominator != 1) {
                out_ += '/';
                add_number(denominator);
            }
            out_ += "]s";
        }
    }

    /// Date and time in UTC, with the digits that the type has.
    template <class Time> void add_wall_time(const Time &value) {
        using period = typename Time::duration::period;
        const auto count = value.time_since_epoch().count();
        constexpr auto per_second = static_cast<long long>(period::den);
        std::time_t seconds = Time::clock::to_time_t(value);
        long long fraction = 0;
        int digits = 0;
        if constexpr (std::is_integral_v<std::remove_cv_t<decltype(count)>> && period::num == 1 && per_second > 1) {
            fraction = static_cast<long long>(count) % per_second;
            fraction += fraction < 0 ? per_second : 0;
            seconds = static_cast<std::time_t>((static_cast<long long>(count) - fraction) / per_second);
            for (long long rest = 1; rest < per_second; rest *= 10) {
                ++digits;
            }
        }
        std::tm parts{};
        char text[80];
        if (gmtime_r(&seconds, &parts) == nullptr) {
            add_number(static_cast<long long>(seconds));
            out_ += 's';
            return;
        }
        out_.append(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts));
        if (digits > 0) {
            const int bytes = std::snprintf(text, sizeof text, ".%0*lld", digits, fraction);
            out_.append(text, static_cast<std::size_t>(bytes));
        }
    }

    std::string &out_;
};

template <class Type> void text_writer::add_made(const Type &value) {
    if constexpr (has_fmt<Type>) {
#if defined(FMT_VERSION)
        out_ += fmt::format("{}", value);
#endif
    } else if constexpr (has_std_format<Type>) {
#if defined(__cpp_lib_format)
        out_ += std::format("{}", value);
#endif
    } else if constexpr (is_calendar<Type>) {
        calendar<Type>::add(out_, value);
    } else if constexpr (is_duration<Type>) {
        add_duration(value);
    } else if constexpr (is_wall_time<Type>) {
        add_wall_time(value);
    } else if constexpr (is_time_point<Type>) {
        add_duration(value.time_since_epoch());
    } else if constexpr (is_path<Type>) {
        out_ += value.native();
    } else if constexpr (is_expected<Type>) {
        out_ += value.has_value() ? "expected(" : "unexpected(";
        if (!value.has_value()) {
            add_element(value.error());
        } else if constexpr (!std::is_void_v<typename Type::value_type>) {
            add_element(*value);
        }
        out_ += ')';
    } else if constexpr (is_optional<Type>) {
        if (!value.has_value()) {
            out_ += "none";
            return;
        }
        out_ += "optional(";
        add_element(*value);
        out_ += ')';
    } else if constexpr (is_variant<Type>) {
        add_variant(value);
    } else if constexpr (std::is_same_v<Type, std::monostate>) {
        out_ += "monostate";
    } else if constexpr (has_to_string<Type>) {
        out_ += std::string_view(to_string(value));
    } else if constexpr (has_stream<Type>) {
        std::ostringstream stream;
        stream.imbue(std::locale::classic());
        stream << value;
        out_ += stream.str();
    } else if constexpr (is_error_condition<Type>) {
        out_ += value.category().name();
        out_ += ':';
        add_number(value.value());
    } else if constexpr (is_exception<Type>) {
        out_ += value.what();
    } else if constexpr (is_place<Type>) {
        out_ += value.file_name();
        out_ += ':';
        add_number(value.line());
    } else if constexpr (is_type_name<Type>) {
        out_ += value.name();
    } else if constexpr (has_own_to_string<Type>) {
        out_ += std::string_view(value.to_string());
    } else if constexpr (is_range<Type>) {
        add_range(value);
    } else if constexpr (is_adaptor<Type>) {
        add(opened<Type>::template container<opened<Type>>(value));
    } else if constexpr (std::is_same_v<Type, std::exception_ptr>) {
        add_held_exception(value);
    } else {
        add_tuple(value, std::make_index_sequence<std::tuple_size_v<Type>>());
    }
}

template <class Type> void text_writer::add_variant(const Type &value) {
    if (value.valueless_by_exception()) {
        out_ += "variant(valueless by exception)";
        return;
    }
    out_ += "variant(";
    visit([this](const auto &held) { this->add_element(held); }, value);
    out_ += ')';
}

/// `[1, 2]`, of a set `{1, 2}`, of a map `{1: "a"}`.
template <class Type> void text_writer::add_range(const Type &value) {
    constexpr bool is_set = requires { typename Type::key_type; };
    constexpr bool is_map = requires { typename Type::mapped_type; };
    bool is_first = true;
    out_ += is_set ? '{' : '[';
    for (auto next = std::begin(value); next != std::end(value); ++next) {
        out_ += is_first ? "" : ", ";
        is_first = false;
        if constexpr (is_map) {
            add_element((*next).first);
            out_ += ": ";
            add_element((*next).second);
        } else {
            // The elements of vector<bool> are no bool.
            const typename std::iterator_traits<decltype(next)>::value_type &element = *next;
            add_element(element);
        }
    }
    out_ += is_set ? '}' : ']';
}

} // namespace logspool::detail

#endif
