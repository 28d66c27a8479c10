/// \file
/// Arguments of a call as the values of a record: `LOGSPOOL_ARG_*` and `LOGSPOOL_TAG_*` of `logspool.h`.
///
/// `encoded(argument)` makes a value from an argument, before the record has its place. It may run code of the program
/// (codecs, visitors, conversions). A value knows its size and stores itself; storing runs no code of the program,
/// allocates nothing and does not throw.
#ifndef LOGSPOOL_VALUES_HPP
#define LOGSPOOL_VALUES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <forward_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "format.hpp"
#include "texts.hpp"
#include "utf8.hpp"

namespace logspool {

/// Makes a type of the program an argument: specialise it with a static function `encode` that returns an argument of
/// another type. It runs on the calling thread; the placeholder's text is made later.
///
///     template <> struct logspool::codec<port> {
///         static std::uint16_t encode(const port &value) { return value.number; }
///     };
template <class Type> struct codec;

/// Text that replaces its placeholder unchanged, with any spec of the placeholder: `logspool::text(fmt::format(...))`.
struct text {
    explicit text(std::string_view given) : value(given) {}
    std::string_view value;
};

/// A key and its value, for formats that show key-values. The value is an argument like any other.
template <class Type> struct key_value {
    std::string_view key;
    const Type &value;
};

/// Makes a key-value; the template cannot refer to it. It refers to `value`, so make it in the call.
template <class Type> key_value<Type> kv(std::string_view key, const Type &value) { return {key, value}; }

/// The fields of a value, which `logspool_fields(value, visitor)` visits, as key-values.
template <class Type> struct fields {
    explicit fields(const Type &given) : value(given) {}
    const Type &value;
};

namespace detail {

/// A key-value whose key is known at compile time.
template <fixed_text Key, class Type> struct named_value {
    const Type &value;
};

template <fixed_text Key> struct literal_key {
    template <class Type> constexpr named_value<Key, Type> operator=(const Type &value) const { return {value}; }
};

/// Name by which a template can refer to an argument of this type.
template <class Type> inline constexpr std::string_view name_of{};
template <fixed_text Key, class Type> inline constexpr std::string_view name_of<named_value<Key, Type>> = Key.view();

template <class Type>
concept has_codec = requires(const Type &value) { codec<Type>::encode(value); };

/// Accepts every field of a value; for the test of `has_fields` only.
struct any_visitor {
    template <class Value> void operator()(std::string_view, const Value &) const {}
};

template <class Type>
concept has_fields = requires(const Type &value, any_visitor &visitor) { logspool_fields(value, visitor); };

__extension__ typedef __int128 signed_128;
__extension__ typedef unsigned __int128 unsigned_128;

/// Copies of texts that were not UTF-8. They stay in place while others are added.
using mended_texts = std::forward_list<std::string>;

template <class Number> inline unsigned char *store_number(unsigned char *to, Number number) {
    std::memcpy(to, &number, sizeof number);
    return to + sizeof number;
}

/// Copies a text. Short ones take two overlapping moves.
inline unsigned char *store_bytes(unsigned char *to, const char *from, std::size_t bytes) {
    if (bytes > 16) {
        std::memcpy(to, from, bytes);
    } else if (bytes >= 8) {
        std::uint64_t first;
        std::uint64_t last;
        std::memcpy(&first, from, 8);
        std::memcpy(&last, from + bytes - 8, 8);
        std::memcpy(to, &first, 8);
        std::memcpy(to + bytes - 8, &last, 8);
    } else if (bytes >= 4) {
        std::uint32_t first;
        std::uint32_t last;
        std::memcpy(&first, from, 4);
        std::memcpy(&last, from + bytes - 4, 4);
        std::memcpy(to, &first, 4);
        std::memcpy(to + bytes - 4, &last, 4);
    } else if (bytes > 0) {
        const char first = from[0];
        const char middle = from[bytes / 2];
        const char last = from[bytes - 1];
        to[0] = static_cast<unsigned char>(first);
        to[bytes / 2] = static_cast<unsigned char>(middle);
        to[bytes - 1] = static_cast<unsigned char>(last);
    }
    return to + bytes;
}

/// Longest text of an argument. Chosen: the rest of a longer one is cut; the length has 32 bits.
inline constexpr std::size_t max_text_bytes = std::size_t{1} << 30;

/// A value of a fixed size.
template <value_kind Kind, class Number> struct number_value {
    static constexpr value_kind kind = Kind;
    Number number;

    static constexpr std::size_t size() { return 1 + sizeof(Number); }
    static constexpr bool is_well_formed() { return true; }
    static void mend(mended_texts &) {}
    unsigned char *store(unsigned char *to) const {
        *to = static_cast<unsigned char>(Kind);
        return store_number(to + 1, number);
    }
};

struct boolean_value {
    static constexpr value_kind kind = value_kind::boolean;
    bool truth;

    static constexpr std::size_t size() { return 1; }
    static constexpr bool is_well_formed() { return true; }
    static void mend(mended_texts &) {}
    unsigned char *store(unsigned char *to) const {
        *to = truth ? 2 : 3;
        return to + 1;
    }
};

/// Text, with the tag of its use.
template <value_kind Kind, unsigned char Tag = static_cast<unsigned char>(Kind)> struct text_value {
    static constexpr value_kind kind = Kind;
    const char *data;
    std::size_t bytes;

    explicit text_value(std::string_view text)
        : data(text.data()), bytes(text.size() <= max_text_bytes ? text.size() : max_text_bytes) {}

    std::size_t size() const { return 5 + bytes; }
    bool is_well_formed() const { return is_utf8(data, bytes); }
    /// Refers to a copy with U+FFFD in place of ill-formed bytes.
    void mend(mended_texts &owners) {
        if (!is_well_formed()) {
            owners.push_front(mended_utf8({data, bytes}));
            *this = text_value(owners.front());
        }
    }
    unsigned char *store(unsigned char *to) const {
        *to = Tag;
        to = store_number(to + 1, static_cast<std::uint32_t>(bytes));
        return store_bytes(to, data, bytes);
    }
};

/// Text that the call has made. Between the values of a tuple it is shown unchanged, like `logspool::text`.
class made_text {
  public:
    static constexpr value_kind kind = value_kind::text;

    explicit made_text(std::string &&text) : text_(std::move(text)) {}

    std::size_t size() const { return view().size(); }
    bool is_well_formed() const { return view().is_well_formed(); }
    void mend(mended_texts &) {
        if (!is_well_formed()) {
            text_ = mended_utf8(text_);
        }
    }
    unsigned char *store(unsigned char *to) const { return view().store(to); }
    text_value<value_kind::rendered> as_rendered() const { return text_value<value_kind::rendered>(text_); }

  private:
    text_value<value_kind::text> view() const { return text_value<value_kind::text>(text_); }

    std::string text_;
};

/// The digits of a `long double`, which the call has made. A placeholder can only align them: a record has no number
/// of this precision.
class made_digits : public made_text {
  public:
    static constexpr value_kind kind = value_kind::digits;
    using made_text::made_text;
};

/// An integer of up to 128 bits, in decimal digits if it does not fit 64.
template <value_kind Small, bool IsSigned> struct wide_value {
    static constexpr value_kind kind = value_kind::wide_integer;
    std::uint64_t number = 0;
    std::uint32_t digits = 0;
    char text[40];

    wide_value(bool negative, unsigned_128 magnitude) {
        constexpr auto largest = IsSigned ? ~std::uint64_t{0} >> 1 : ~std::uint64_t{0};
        if (magnitude <= largest) {
            number = negative ? ~static_cast<std::uint64_t>(magnitude) + 1 : static_cast<std::uint64_t>(magnitude);
            return;
        }
        char backwards[40];
        for (; magnitude != 0; magnitude /= 10) {
            backwards[digits++] = static_cast<char>('0' + static_cast<int>(magnitude % 10));
        }
        if (negative) {
            backwards[digits++] = '-';
        }
        for (std::uint32_t index = 0; index < digits; ++index) {
            text[index] = backwards[digits - 1 - index];
        }
    }

    std::size_t size() const { return digits == 0 ? 9 : 5 + digits; }
    static constexpr bool is_well_formed() { return true; }
    static void mend(mended_texts &) {}
    unsigned char *store(unsigned char *to) const {
        if (digits == 0) {
            *to = static_cast<unsigned char>(Small);
            return store_number(to + 1, number);
        }
        *to = static_cast<unsigned char>(value_kind::wide_integer);
        return store_bytes(store_number(to + 1, digits), text, digits);
    }
};

/// Values that were encoded before the record has its place. Up to 512 bytes need no memory of the heap.
class staged_values {
  public:
    staged_values() = default;
    std::size_t size() const { return size_; }
    static constexpr bool is_well_formed() { return true; }
    static void mend(mended_texts &) {}
    unsigned char *store(unsigned char *to) const {
        std::memcpy(to, large_.empty() ? bytes_ : large_.data(), size_);
        return to + size_;
    }

  protected:
    template <class Field> void append(const Field &field);
    void append_key(std::string_view key);

    unsigned char *start() { return large_.empty() ? bytes_ : large_.data(); }

    unsigned char *room(std::size_t bytes) {
        if (large_.empty() && size_ + bytes > sizeof bytes_) {
            large_.assign(bytes_, bytes_ + size_);
        }
        if (!large_.empty()) {
            large_.resize(size_ + bytes);
        }
        unsigned char *place = start() + size_;
        size_ += bytes;
        return place;
    }

  private:
    template <class Value> void append_value(Value &value);

    std::size_t size_ = 0;
    unsigned char bytes_[512];
    std::vector<unsigned char> large_;
};

/// The fields of a value as one argument: `(1, "x")`.
class tuple_value : public staged_values {
  public:
    static constexpr value_kind kind = value_kind::tuple;

    template <class Type> explicit tuple_value(const Type &value) {
        *room(5) = static_cast<unsigned char>(value_kind::tuple);
        std::uint32_t count = 0;
        auto visitor = [this, &count](std::string_view, const auto &field) {
            this->append(field);
            ++count;
        };
        logspool_fields(value, visitor);
        store_number(start() + 1, count);
    }
};

/// The fields of a value as key-values.
class fields_value : public staged_values {
  public:
    static constexpr value_kind kind = value_kind::part;

    template <class Type> explicit fields_value(const Type &value) {
        auto visitor = [this](std::string_view key, const auto &field) {
            this->append_key(key);
            this->append(field);
        };
        logspool_fields(value, visitor);
    }
};

/// A key and its value.
template <class Value> struct part_value {
    static constexpr value_kind kind = value_kind::part;
    static_assert(Value::kind != value_kind::part, "the value of a key cannot be a key-value");
    text_value<value_kind::part> key;
    Value value;

    std::size_t size() const { return key.size() + value.size(); }
    bool is_well_formed() const { return key.is_well_formed() && value.is_well_formed(); }
    void mend(mended_texts &owners) {
        key.mend(owners);
        value.mend(owners);
    }
    unsigned char *store(unsigned char *to) const { return value.store(key.store(to)); }
};

template <class> inline constexpr bool is_unknown = false;

/// The value that a codec returned, with everything that the value refers to.
template <class Result, class Value> struct kept_value {
    static constexpr value_kind kind = Value::kind;
    Result result;
    Value value;

    std::size_t size() const { return value.size(); }
    bool is_well_formed() const { return value.is_well_formed(); }
    void mend(mended_texts &owners) { value.mend(owners); }
    unsigned char *store(unsigned char *to) const { return value.store(to); }
    template <class Make>
    kept_value(Result &&made, Make make) : result(std::move(made)), value(make(result)) {}
    // `value` refers to `result`.
    kept_value(const kept_value &) = delete;
    kept_value &operator=(const kept_value &) = delete;
};

template <class Type> inline std::string_view view_of(const Type &value) {
    if constexpr (std::is_pointer_v<std::decay_t<Type>>) {
        const char *text = value;
        return text == nullptr ? std::string_view("(null)") : std::string_view(text);
    } else {
        return std::string_view(value);
    }
}

template <class Type> inline auto encoded(const Type &value);

template <class Type> inline auto encoded_part(std::string_view key, const Type &value) {
    return part_value<decltype(encoded(value))>{text_value<value_kind::part>(key), encoded(value)};
}

template <class> inline constexpr bool is_key_value = false;
template <class Type> inline constexpr bool is_key_value<key_value<Type>> = true;
template <class> inline constexpr bool is_fields = false;
template <class Type> inline constexpr bool is_fields<fields<Type>> = true;

template <class Type> inline auto encoded(const Type &value) {
    using Plain = std::remove_cv_t<Type>;
    if constexpr (has_codec<Plain>) {
        using Result = decltype(codec<Plain>::encode(value));
        using Kept = std::remove_cvref_t<Result>;
        static_assert(!std::is_same_v<Kept, Plain>, "the codec of a type must return another type");
        auto make = [](const Kept &result) { return encoded(result); };
        return kept_value<Kept, decltype(make(std::declval<const Kept &>()))>(Kept(codec<Plain>::encode(value)), make);
    } else if constexpr (std::is_same_v<Plain, text>) {
        return text_value<value_kind::rendered>(value.value);
    } else if constexpr (is_key_value<Plain>) {
        return encoded_part(value.key, value.value);
    } else if constexpr (!name_of<Plain>.empty()) {
        return encoded_part(name_of<Plain>, value.value);
    } else if constexpr (is_fields<Plain>) {
        return fields_value(value.value);
    } else if constexpr (std::is_same_v<Plain, bool>) {
        return boolean_value{value};
    } else if constexpr (std::is_same_v<Plain, char>) {
        // A byte that is no character of its own is shown as U+FFFD, as in text.
        const auto byte = static_cast<unsigned char>(value);
        return number_value<value_kind::character, std::uint32_t>{byte < 0x80 ? byte : 0xFFFDU};
    } else if constexpr (std::is_same_v<Plain, signed_128>) {
        const auto bits = static_cast<unsigned_128>(value);
        return wide_value<value_kind::integer, true>(value < 0, value < 0 ? ~bits + 1 : bits);
    } else if constexpr (std::is_same_v<Plain, unsigned_128>) {
        return wide_value<value_kind::unsigned_integer, false>(false, value);
    } else if constexpr (std::is_same_v<Plain, wchar_t> || std::is_same_v<Plain, char8_t> ||
                         std::is_same_v<Plain, char16_t> || std::is_same_v<Plain, char32_t>) {
        static_assert(is_unknown<Type>, "logspool shows texts in UTF-8: convert this character to text");
        return boolean_value{};
    } else if constexpr (std::is_integral_v<Plain> && std::is_signed_v<Plain>) {
        return number_value<value_kind::integer, std::int64_t>{value};
    } else if constexpr (std::is_integral_v<Plain>) {
        return number_value<value_kind::unsigned_integer, std::uint64_t>{value};
    } else if constexpr (std::is_same_v<Plain, float>) {
        return number_value<value_kind::single, float>{value};
    } else if constexpr (std::is_same_v<Plain, double>) {
        return number_value<value_kind::real, double>{value};
    } else if constexpr (std::is_same_v<Plain, long double>) {
        std::string digits;
        text_writer(digits).add(value);
        return made_digits(std::move(digits));
    } else if constexpr (has_fields<Plain>) {
        return tuple_value(value);
    } else if constexpr (has_format_as<Plain>) {
        using Result = std::remove_cvref_t<decltype(format_as(value))>;
        static_assert(!std::is_same_v<Result, Plain>, "format_as of a type must return another type");
        auto make = [](const Result &result) { return encoded(result); };
        return kept_value<Result, decltype(make(std::declval<const Result &>()))>(Result(format_as(value)), make);
    } else if constexpr (std::is_enum_v<Plain> && !has_own_text<Plain>) {
        using Number = std::underlying_type_t<Plain>;
        if constexpr (std::is_signed_v<Number>) {
            return number_value<value_kind::integer, std::int64_t>{static_cast<std::int64_t>(value)};
        } else {
            return number_value<value_kind::unsigned_integer, std::uint64_t>{static_cast<std::uint64_t>(value)};
        }
    } else if constexpr (std::is_null_pointer_v<Plain>) {
        return number_value<value_kind::pointer, std::uint64_t>{0};
    } else if constexpr (std::is_convertible_v<const Type &, std::string_view>) {
        return text_value<value_kind::text>(view_of(value));
    } else if constexpr (std::is_convertible_v<const Type &, std::u8string_view>) {
        const std::u8string_view bytes = value;
        return text_value<value_kind::text>({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    } else if constexpr (std::is_pointer_v<Plain> && !std::is_function_v<std::remove_pointer_t<Plain>>) {
        const volatile void *address = value;
        return number_value<value_kind::pointer, std::uint64_t>{reinterpret_cast<std::uintptr_t>(address)};
    } else if constexpr (is_smart_pointer<Plain>) {
        const volatile void *address = value.get();
        return number_value<value_kind::pointer, std::uint64_t>{reinterpret_cast<std::uintptr_t>(address)};
    } else if constexpr (is_reference<Plain>) {
        return encoded(value.get());
    } else if constexpr (is_atomic<Plain>) {
        using Result = typename Plain::value_type;
        auto make = [](const Result &result) { return encoded(result); };
        return kept_value<Result, decltype(make(std::declval<const Result &>()))>(value.load(), make);
    } else if constexpr (has_text<Plain>) {
        std::string made;
        text_writer(made).add(value);
        return made_text(std::move(made));
    } else {
        static_assert(is_unknown<Type>, "logspool cannot log this type: specialise logspool::codec for it, define "
                                        "logspool_fields(value, visitor), operator<< or to_string(value) in its "
                                        "namespace, or pass logspool::text(...)");
        return boolean_value{}; // The sentence is the only error then.
    }
}

template <class Value> void staged_values::append_value(Value &value) {
    mended_texts owners;
    if (!value.is_well_formed()) {
        value.mend(owners);
    }
    value.store(room(value.size()));
}

template <class Field> void staged_values::append(const Field &field) {
    auto &&value = encoded(field);
    using Value = std::remove_cvref_t<decltype(value)>;
    static_assert(Value::kind != value_kind::part, "a field cannot be a key-value");
    if constexpr (std::is_base_of_v<made_text, Value>) {
        auto rendered = value.as_rendered();
        append_value(rendered);
    } else {
        append_value(value);
    }
}

template <class Type> inline void text_writer::add_fields(const Type &value) {
    bool is_first = true;
    auto visitor = [this, &is_first](std::string_view, const auto &field) {
        out_ += is_first ? "" : ", ";
        is_first = false;
        add_element(field);
    };
    out_ += '(';
    logspool_fields(value, visitor);
    out_ += ')';
}

template <class Type> inline void text_writer::add(const Type &value) {
    using Plain = std::remove_cv_t<Type>;
    if constexpr (has_codec<Plain>) {
        add(codec<Plain>::encode(value));
    } else if constexpr (std::is_same_v<Plain, text>) {
        out_ += value.value;
    } else if constexpr (std::is_same_v<Plain, bool>) {
        out_ += value ? "true" : "false";
    } else if constexpr (std::is_same_v<Plain, char>) {
        out_ += value;
    } else if constexpr (std::is_floating_point_v<Plain>) {
        add_real(value);
    } else if constexpr (std::is_integral_v<Plain> && sizeof(Plain) <= 8 && !std::is_same_v<Plain, wchar_t> &&
                         !std::is_same_v<Plain, char8_t> && !std::is_same_v<Plain, char16_t> &&
                         !std::is_same_v<Plain, char32_t>) {
        add_number(value);
    } else if constexpr (has_fields<Plain>) {
        add_fields(value);
    } else if constexpr (has_format_as<Plain>) {
        add(format_as(value));
    } else if constexpr (std::is_enum_v<Plain> && !has_own_text<Plain>) {
        add_number(static_cast<std::underlying_type_t<Plain>>(value));
    } else if constexpr (std::is_convertible_v<const Type &, std::string_view>) {
        out_ += view_of(value);
    } else if constexpr (std::is_convertible_v<const Type &, std::u8string_view>) {
        const std::u8string_view bytes = value;
        out_.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    } else if constexpr (std::is_null_pointer_v<Plain> || std::is_pointer_v<Plain>) {
        const volatile void *address = value;
        char digits[24];
        out_.append(digits, static_cast<std::size_t>(std::snprintf(
                                digits, sizeof digits, "0x%llx",
                                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)))));
    } else if constexpr (is_smart_pointer<Plain> || is_reference<Plain>) {
        add(value.get());
    } else if constexpr (is_atomic<Plain>) {
        add(value.load());
    } else if constexpr (has_text<Plain>) {
        add_made(value);
    } else {
        static_assert(is_unknown<Type>, "logspool cannot log the elements of this type: specialise logspool::codec for "
                                        "it, or define logspool_fields(value, visitor), operator<< or to_string(value) "
                                        "in its namespace");
    }
}

template <class Type> inline void text_writer::add_element(const Type &value) {
    using Plain = std::remove_cv_t<Type>;
    if constexpr (has_codec<Plain>) {
        add_element(codec<Plain>::encode(value));
    } else if constexpr (std::is_same_v<Plain, char>) {
        add_quoted({&value, 1}, '\'');
    } else if constexpr (!has_fields<Plain> && !std::is_same_v<Plain, text> &&
                         std::is_convertible_v<const Type &, std::string_view>) {
        add_quoted(view_of(value), '"');
    } else {
        add(value);
    }
}

inline void staged_values::append_key(std::string_view key) {
    text_value<value_kind::part> value(key);
    append_value(value);
}

} // namespace detail

namespace literals {

/// `"user"_kv = user` is a key-value that the template may show as `{user}`.
template <detail::fixed_text Key> consteval detail::literal_key<Key> operator""_kv() { return {}; }

} // namespace literals
} // namespace logspool

#endif
