/// \file
/// Checks message templates at compile time: the grammar of {fmt} 9.1, as the library shows it.
///
/// A template that does not fit is an error of the compiler. Its notes name the byte and the reason:
/// `logspool::detail::format_error(3, "the type does not fit text")`. The checks and their order of rules are those of
/// `crates/logspool-record/src/format/fmt_grammar.rs`; a template that passes here is accepted by `logspool_site()`.
#ifndef LOGSPOOL_FORMAT_HPP
#define LOGSPOOL_FORMAT_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace logspool::detail {

/// Types of values, with the numbers of `LOGSPOOL_ARG_*`.
enum class value_kind : std::uint8_t {
    none = 1,
    boolean = 2,
    integer = 4,
    real = 5,
    text = 6,
    bytes = 7,
    tuple = 8, ///< Several values; not one of `LOGSPOOL_ARG_*`, so a site with one is not checked again at run time.
    rendered = 9,
    wide_integer = 10,
    unsigned_integer = 11,
    character = 12,
    single = 13,
    pointer = 14,
    part = 0x47 ///< A key-value, which is no argument of the template.
};

/// An argument as the check sees it.
struct checked_argument {
    value_kind kind;
    std::string_view name; ///< Name by which a template can refer to a key-value; empty if there is none.
};

/// Never defined: a call is no constant, so the compiler stops there.
void template_is_not_valid();

/// Ends the compilation. The compiler's notes show the arguments.
constexpr void format_error(std::size_t byte, const char *reason) {
    static_cast<void>(byte);
    if (reason != nullptr) {
        template_is_not_valid();
    }
}

/// A place in the template, and why it is refused. No reason: it is not.
struct format_problem {
    const char *reason = nullptr;
    std::size_t byte = 0;

    constexpr explicit operator bool() const { return reason != nullptr; }
};

/// The part of a placeholder after the colon.
struct format_spec {
    bool has_align = false;
    char sign = 0;
    bool alternate = false;
    bool zero = false;
    bool has_precision = false;
    char type = 0;
};

/// Reads a template once from its start to its end.
class format_checker {
  public:
    constexpr format_checker(std::string_view source, const checked_argument *arguments, std::size_t count)
        : source_(source), arguments_(arguments), count_(count) {}

    /// The first problem of the template.
    constexpr format_problem check() {
        while (at_ < source_.size()) {
            if (!is_brace(source_[at_])) {
                ++at_;
            } else if (at_ + 1 < source_.size() && source_[at_ + 1] == source_[at_]) {
                at_ += 2;
            } else if (source_[at_] == '}') {
                return {"a single `}`; write `}}` for a brace", at_};
            } else if (source_.find('}', at_) == std::string_view::npos) {
                return {"`{` without `}`; write `{{` for a brace", at_};
            } else {
                ++at_;
                if (const format_problem problem = placeholder()) {
                    return problem;
                }
            }
        }
        return {};
    }

    /// Whether a placeholder refers to a key-value. Valid after `check`.
    constexpr bool uses_names() const { return uses_names_; }

  private:
    static constexpr bool is_brace(char character) { return character == '{' || character == '}'; }
    static constexpr bool is_digit(char character) { return character >= '0' && character <= '9'; }
    static constexpr bool is_align(char character) {
        return character == '<' || character == '>' || character == '^';
    }
    static constexpr bool is_name_start(char character) {
        return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_';
    }
    static constexpr bool is_amount(value_kind kind) {
        return kind == value_kind::integer || kind == value_kind::unsigned_integer;
    }

    constexpr char peek(std::size_t ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }

    constexpr bool take(char wanted) {
        const bool is_next = at_ < source_.size() && source_[at_] == wanted;
        at_ += is_next ? 1 : 0;
        return is_next;
    }

    /// Bytes of the UTF-8 character at this place.
    constexpr std::size_t character_bytes() const {
        const auto lead = static_cast<unsigned char>(peek());
        return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    }

    constexpr format_problem placeholder() {
        const std::size_t start = at_;
        value_kind kind{};
        if (const format_problem problem = argument(":", kind, start)) {
            return problem;
        }
        format_spec spec;
        if (take(':')) {
            const std::size_t spec_start = at_;
            const std::size_t taken = next_;
            format_problem problem = parse_spec(spec, start);
            if (!problem && peek() != '}') {
                problem = {"a type or `}` is expected here", at_};
            }
            if (problem) {
                // The spec belongs to a type of the program, if the template goes on after it.
                at_ = spec_start;
                if (!skip_foreign() || kind != value_kind::rendered) {
                    return problem;
                }
                next_ = taken;
                ++at_;
                return {};
            }
        }
        if (!take('}')) {
            return {"`:` or `}` is expected here", at_};
        }
        return refusal(spec, kind, start);
    }

    /// Reads the reference to an argument. The next argument is meant if `}` or one of `ends` comes next.
    constexpr format_problem argument(std::string_view ends, value_kind &kind, std::size_t start) {
        const std::size_t at = at_;
        const char first = peek();
        if (at_ >= source_.size()) {
            return {"`{` without `}`; write `{{` for a brace", at};
        }
        if (first == '}' || ends.find(first) != std::string_view::npos) {
            if (has_numbers_) {
                return {"automatic numbering cannot follow numbers; give each `{}` a number", at};
            }
            return find(next_++, kind, start);
        }
        if (is_digit(first)) {
            std::size_t number = 0;
            if (const format_problem problem = read_number(number)) {
                return problem;
            }
            if (at_ - at > 1 && first == '0') {
                return {"the number of an argument has no leading zeros", at};
            }
            if (next_ > 0) {
                return {"numbers cannot follow automatic numbering; give each `{}` a number", at};
            }
            has_numbers_ = true;
            return find(number, kind, start);
        }
        if (!is_name_start(first)) {
            return {"neither a number nor a name begins here", at};
        }
        while (is_name_start(peek()) || is_digit(peek())) {
            ++at_;
        }
        const std::string_view name = source_.substr(at, at_ - at);
        for (std::size_t index = 0; index < count_; ++index) {
            if (arguments_[index].name == name) {
                kind = arguments_[index].kind;
                uses_names_ = true;
                return {};
            }
        }
        return {"there is no key-value with this name; write \"name\"_kv = value", start};
    }

    constexpr format_problem find(std::size_t number, value_kind &kind, std::size_t start) const {
        std::size_t position = 0;
        for (std::size_t index = 0; index < count_; ++index) {
            if (arguments_[index].kind == value_kind::part || !arguments_[index].name.empty()) {
                continue;
            }
            if (position++ == number) {
                kind = arguments_[index].kind;
                return {};
            }
        }
        return {"there is no argument for this placeholder", start};
    }

    constexpr format_problem read_number(std::size_t &number) {
        const std::size_t start = at_;
        number = 0;
        while (is_digit(peek())) {
            number = number * 10 + static_cast<std::size_t>(peek() - '0');
            ++at_;
            if (number > 0x7FFFFFFF) {
                return {"the number is too large", start};
            }
        }
        return {};
    }

    constexpr format_problem amount(const char *above_the_limit) {
        const std::size_t start = at_;
        std::size_t number = 0;
        if (const format_problem problem = read_number(number)) {
            return problem;
        }
        return number > 1024 ? format_problem{above_the_limit, start} : format_problem{};
    }

    constexpr format_problem nested(const char *no_integer, std::size_t start) {
        value_kind kind{};
        if (const format_problem problem = argument("", kind, start)) {
            return problem;
        }
        if (!take('}')) {
            return {"`}` is expected after a nested argument", at_};
        }
        return is_amount(kind) ? format_problem{} : format_problem{no_integer, start};
    }

    constexpr format_problem parse_spec(format_spec &spec, std::size_t start) {
        const std::size_t fill = character_bytes();
        if (at_ < source_.size() && !is_brace(peek()) && is_align(peek(fill))) {
            at_ += fill + 1;
            spec.has_align = true;
        } else if (is_align(peek())) {
            ++at_;
            spec.has_align = true;
        }
        if (peek() == '+' || peek() == '-' || peek() == ' ') {
            spec.sign = peek();
            ++at_;
        }
        spec.alternate = take('#');
        spec.zero = take('0');
        if (take('{')) {
            if (const format_problem problem = nested("the argument of the width is not an integer", start)) {
                return problem;
            }
        } else if (const format_problem problem = amount("the width is above the limit of 1024")) {
            return problem;
        }
        if (take('.')) {
            spec.has_precision = true;
            if (take('{')) {
                if (const format_problem problem = nested("the argument of the precision is not an integer", start)) {
                    return problem;
                }
            } else if (!is_digit(peek())) {
                return {"a precision is expected after `.`", at_};
            } else if (const format_problem problem = amount("the precision is above the limit of 1024")) {
                return problem;
            }
        }
        if (peek() == 'L') {
            return {"`L` is not supported: lines do not depend on the locale", at_};
        }
        if (at_ >= source_.size()) {
            return {"`{` without `}`; write `{{` for a brace", at_};
        }
        if (peek() == '}') {
            return {};
        }
        if (std::string_view("aAbBcdeEfFgGopsxX?").find(peek()) == std::string_view::npos) {
            return {"this is not a type of {fmt} that logspool shows", at_};
        }
        spec.type = peek();
        ++at_;
        return {};
    }

    /// Passes over a spec that this grammar does not know, up to its closing brace. False: there is none.
    constexpr bool skip_foreign() {
        std::size_t depth = 0;
        for (; at_ < source_.size(); ++at_) {
            if (peek() == '{') {
                ++depth;
            } else if (peek() == '}') {
                if (depth == 0) {
                    return true;
                }
                --depth;
            }
        }
        return false;
    }

    static constexpr bool is_one_of(char type, std::string_view types) {
        return type == 0 || types.find(type) != std::string_view::npos;
    }

    /// Why {fmt} refuses this spec for a value of this type.
    static constexpr format_problem refusal(const format_spec &spec, value_kind kind, std::size_t start) {
        constexpr std::string_view integers = "doxXbBc";
        const char *unfit = nullptr;
        bool is_number = false;
        bool takes_precision = false;
        switch (kind) {
        case value_kind::rendered:
            return {};
        case value_kind::boolean:
            is_number = true;
            unfit = is_one_of(spec.type, integers) || spec.type == 's' ? nullptr : "the type does not fit a bool";
            break;
        case value_kind::integer:
        case value_kind::wide_integer:
        case value_kind::unsigned_integer:
            is_number = true;
            unfit = is_one_of(spec.type, integers) ? nullptr : "the type does not fit an integer";
            break;
        case value_kind::character:
            is_number = true;
            unfit = is_one_of(spec.type, integers) || spec.type == '?' ? nullptr : "the type does not fit a character";
            break;
        case value_kind::real:
        case value_kind::single:
            is_number = true;
            takes_precision = true;
            unfit = is_one_of(spec.type, "aAeEfFgG") ? nullptr : "the type does not fit a floating-point number";
            break;
        case value_kind::text:
        case value_kind::bytes:
            takes_precision = true;
            unfit = is_one_of(spec.type, "s?") ? nullptr : "the type does not fit text";
            break;
        case value_kind::pointer:
            unfit = is_one_of(spec.type, "p") ? nullptr : "the type does not fit an address";
            break;
        case value_kind::none:
        case value_kind::tuple:
        case value_kind::part:
            unfit = spec.type == 0 ? nullptr : "a value of several fields has no type";
            break;
        }
        if (unfit != nullptr) {
            return {unfit, start};
        }
        if (!is_number && (spec.sign != 0 || spec.alternate || spec.zero)) {
            return {"sign, `#` and `0` are for numbers", start};
        }
        if (spec.sign != 0 && (kind == value_kind::boolean || kind == value_kind::unsigned_integer)) {
            return {"a sign is for signed numbers", start};
        }
        if (spec.has_precision && !takes_precision) {
            return {"a precision is for floating-point numbers and text", start};
        }
        const bool is_character = kind == value_kind::character &&
                                  (spec.type == 0 || spec.type == 'c' || spec.type == '?');
        if (is_character && (spec.sign != 0 || spec.alternate || (spec.zero && !spec.has_align))) {
            return {"sign, `#` and `0` are for numbers, not for a character", start};
        }
        return {};
    }

    std::string_view source_;
    const checked_argument *arguments_;
    std::size_t count_;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    bool has_numbers_ = false;
    bool uses_names_ = false;
};

} // namespace logspool::detail

#endif
