/// \file
/// Texts of the calendar types of `<chrono>`, as the standard's `operator<<` shows them in the "C" locale. Older
/// libraries have the types without that operator.
#ifndef LOGSPOOL_CALENDAR_HPP
#define LOGSPOOL_CALENDAR_HPP

#include <chrono>
#include <cstdio>
#include <string>

namespace logspool::detail {

/// A static function `add` appends the text of a value. Only types of the calendar are specialised.
template <class Type> struct calendar;

template <class Type>
concept is_calendar = requires(std::string &out, const Type &value) { calendar<Type>::add(out, value); };

/// Appends a number of at least `width` digits.
inline void add_padded(std::string &out, long long number, int width) {
    char digits[32];
    out.append(digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%0*lld", width, number)));
}

// Versions of libstdc++ before 11 have no calendar.
#if !defined(_GLIBCXX_RELEASE) || _GLIBCXX_RELEASE >= 11

template <class Type> inline void add_calendar(std::string &out, const Type &value) { calendar<Type>::add(out, value); }

/// Appends the parts of a date, with a `/` between each two.
template <class First, class... Others>
inline void add_parts(std::string &out, const First &first, const Others &...others) {
    add_calendar(out, first);
    ((out += '/', add_calendar(out, others)), ...);
}

/// The name of a value, or its number with the words of the standard.
inline void add_name(std::string &out, const char *names, bool is_ok, unsigned number, const char *what) {
    if (is_ok) {
        out.append(names + number * 3, 3);
    } else {
        add_padded(out, number, 1);
        out += what;
    }
}

template <> struct calendar<std::chrono::day> {
    static void add(std::string &out, const std::chrono::day &value) {
        add_padded(out, static_cast<unsigned>(value), 2);
        out += value.ok() ? "" : " is not a valid day";
    }
};

template <> struct calendar<std::chrono::month> {
    static void add(std::string &out, const std::chrono::month &value) {
        add_name(out, "---JanFebMarAprMayJunJulAugSepOctNovDec", value.ok(), static_cast<unsigned>(value),
                 " is not a valid month");
    }
};

template <> struct calendar<std::chrono::year> {
    static void add(std::string &out, const std::chrono::year &value) {
        const int number = static_cast<int>(value);
        add_padded(out, number, number < 0 ? 5 : 4);
        out += value.ok() ? "" : " is not a valid year";
    }
};

template <> struct calendar<std::chrono::weekday> {
    static void add(std::string &out, const std::chrono::weekday &value) {
        add_name(out, "SunMonTueWedThuFriSat", value.ok(), value.c_encoding(), " is not a valid weekday");
    }
};

template <> struct calendar<std::chrono::weekday_indexed> {
    static void add(std::string &out, const std::chrono::weekday_indexed &value) {
        add_calendar(out, value.weekday());
        out += '[';
        add_padded(out, value.index(), 1);
        out += value.index() >= 1 && value.index() <= 5 ? "" : " is not a valid index";
        out += ']';
    }
};

template <> struct calendar<std::chrono::weekday_last> {
    static void add(std::string &out, const std::chrono::weekday_last &value) {
        add_calendar(out, value.weekday());
        out += "[last]";
    }
};

template <> struct calendar<std::chrono::month_day> {
    static void add(std::string &out, const std::chrono::month_day &value) {
        add_parts(out, value.month(), value.day());
    }
};

template <> struct calendar<std::chrono::month_day_last> {
    static void add(std::string &out, const std::chrono::month_day_last &value) {
        add_calendar(out, value.month());
        out += "/last";
    }
};

template <> struct calendar<std::chrono::month_weekday> {
    static void add(std::string &out, const std::chrono::month_weekday &value) {
        add_parts(out, value.month(), value.weekday_indexed());
    }
};

template <> struct calendar<std::chrono::month_weekday_last> {
    static void add(std::string &out, const std::chrono::month_weekday_last &value) {
        add_parts(out, value.month(), value.weekday_last());
    }
};

template <> struct calendar<std::chrono::year_month> {
    static void add(std::string &out, const std::chrono::year_month &value) {
        add_parts(out, value.year(), value.month());
    }
};

template <> struct calendar<std::chrono::year_month_day> {
    static void add(std::string &out, const std::chrono::year_month_day &value) {
        const int number = static_cast<int>(value.year());
        add_padded(out, number, number < 0 ? 5 : 4);
        out += '-';
        add_padded(out, static_cast<unsigned>(value.month()), 2);
        out += '-';
        add_padded(out, static_cast<unsigned>(value.day()), 2);
        out += value.ok() ? "" : " is not a valid date";
    }
};

template <> struct calendar<std::chrono::year_month_day_last> {
    static void add(std::string &out, const std::chrono::year_month_day_last &value) {
        add_parts(out, value.year(), value.month_day_last());
    }
};

template <> struct calendar<std::chrono::year_month_weekday> {
    static void add(std::string &out, const std::chrono::year_month_weekday &value) {
        add_parts(out, value.year(), value.month(), value.weekday_indexed());
    }
};

template <> struct calendar<std::chrono::year_month_weekday_last> {
    static void add(std::string &out, const std::chrono::year_month_weekday_last &value) {
        add_parts(out, value.year(), value.month(), value.weekday_last());
    }
};

template <class Duration> struct calendar<std::chrono::hh_mm_ss<Duration>> {
    static void add(std::string &out, const std::chrono::hh_mm_ss<Duration> &value) {
        out += value.is_negative() ? "-" : "";
        add_padded(out, value.hours().count(), 2);
        out += ':';
        add_padded(out, value.minutes().count(), 2);
        out += ':';
        add_padded(out, value.seconds().count(), 2);
        constexpr unsigned digits = std::chrono::hh_mm_ss<Duration>::fractional_width;
        if constexpr (digits > 0) {
            out += '.';
            add_padded(out, static_cast<long long>(value.subseconds().count()), static_cast<int>(digits));
        }
    }
};

#endif

} // namespace logspool::detail

#endif
