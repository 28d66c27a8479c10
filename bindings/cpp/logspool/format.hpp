/// \file
/// Checks message templates at compile time: the grammar of {fmt} 9.1, as the library shows it.
///
/// A template that does not fit is an error of the compiler. Its notes name the reason, in
/// `refuse_template<"the type does not fit text">`, and the byte, in `template_is_wrong_at_byte<3>`.
/// `crates/logspool-record/src/format/fmt_grammar.rs` has the same checks in the same order of rules; a template that
/// passes here is accepted by `logspool_site()`.
#ifndef LOGSPOOL_FORMAT_HPP
#define LOGSPOOL_FORMAT_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

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
    digits = 15, ///< Finished digits of a number, sent as text; no site with it is checked again either.
    part = 0x47  ///< A key-value, which is no argument of the template.
};

/// An argument as the check sees it.
struct checked_argument {
    value_kind kind;
    std::string_view name; ///< Name by which a template can refer to a key-value; empty if there is none.
};

/// A text as a template argument.
template <std::size_t Bytes> struct fixed_text {
    char text[Bytes];
    consteval fixed_text(const char (&source)[Bytes]) {
        for (std::size_t index = 0; index < Bytes; ++index) {
            text[index] = source[index];
        }
    }
    constexpr std::string_view view() const { return {text, Bytes - 1}; }
};

/// Never defined: a call is no constant, so the compiler stops there and names the byte.
template <std::size_t Byte> void template_is_wrong_at_byte();
template <std::size_t Byte> void template_is_wrong_after_byte();

template <std::size_t... Bytes> constexpr void stop_at(std::size_t byte, std::index_sequence<Bytes...>) {
    ((byte == Bytes ? template_is_wrong_at_byte<Bytes>() : void()), ...);
    byte >= sizeof...(Bytes) ? template_is_wrong_after_byte<sizeof...(Bytes)>() : void();
}

/// Ends the compilation. The notes of the compiler show the reason and the byte.
template <fixed_text Reason> constexpr void refuse_template(std::size_t byte) {
    stop_at(byte, std::make_index_sequence<128>());
}

/// Whether a part of the template is refused. A spec may be refused and still fit text that the caller has rendered.
enum class verdict : bool { accepted, refused };

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
    // The first member: clang instantiates only templates whose bodies it has read.

    /// Ends the compilation, unless the caller has rendered the text of the placeholder.
    template <fixed_text Reason> constexpr verdict refuse(std::size_t byte) const {
        if (!may_be_foreign_) {
            refuse_template<Reason>(byte);
        }
        return verdict::refused;
    }

  public:
    constexpr format_checker(std::string_view source, const checked_argument *arguments, std::size_t count)
        : source_(source), arguments_(arguments), count_(count) {}

    /// Checks the whole template.
    constexpr verdict check() {
        while (at_ < source_.size()) {
            if (source_[at_] == '\0') {
                return refuse<"a NUL would end the template; pass it as an argument">(at_);
            }
            if (!is_brace(source_[at_])) {
                ++at_;
            } else if (at_ + 1 < source_.size() && source_[at_ + 1] == source_[at_]) {
                at_ += 2;
            } else if (source_[at_] == '}') {
                return refuse<"a single `}`; write `}}` for a brace">(at_);
            } else if (source_.find('}', at_) == std::string_view::npos) {
                return refuse<"`{` without `}`; write `{{` for a brace">(at_);
            } else {
                ++at_;
                if (placeholder() == verdict::refused) {
                    return verdict::refused;
                }
            }
        }
        return verdict::accepted;
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

    constexpr verdict placeholder() {
        const std::size_t start = at_;
        value_kind kind{};
        if (argument(":", kind, start) == verdict::refused) {
            return verdict::refused;
        }
        format_spec spec;
        if (take(':')) {
            const std::size_t spec_start = at_;
            const std::size_t taken = next_;
            may_be_foreign_ = kind == value_kind::rendered;
            verdict of_spec = parse_spec(spec, start);
            if (of_spec == verdict::accepted && peek() != '}') {
                of_spec = refuse<"a type or `}` is expected here">(at_);
            }
            may_be_foreign_ = false;
            if (of_spec == verdict::refused) {
                // The spec belongs to a type of the program, if the template continues after it.
                at_ = spec_start;
                next_ = taken;
                if (!skip_foreign()) {
                    return refuse<"`{` without `}`; write `{{` for a brace">(start);
                }
                ++at_;
                return verdict::accepted;
            }
        }
        if (!take('}')) {
            return refuse<"`:` or `}` is expected here">(at_);
        }
        return refusal(spec, kind, start);
    }

    /// Reads the reference to an argument. `}` or a character of `ends` at once means the next argument.
    constexpr verdict argument(std::string_view ends, value_kind &kind, std::size_t start) {
        const std::size_t at = at_;
        const char first = peek();
        if (at_ >= source_.size()) {
            return refuse<"`{` without `}`; write `{{` for a brace">(at);
        }
        if (first == '}' || ends.find(first) != std::string_view::npos) {
            if (has_numbers_) {
                return refuse<"automatic numbering cannot follow numbers; give each `{}` a number">(at);
            }
            return find(next_++, kind, start);
        }
        if (is_digit(first)) {
            std::size_t number = 0;
            if (read_number(number) == verdict::refused) {
                return verdict::refused;
            }
            if (at_ - at > 1 && first == '0') {
                return refuse<"the number of an argument has no leading zeros">(at);
            }
            if (next_ > 0) {
                return refuse<"numbers cannot follow automatic numbering; give each `{}` a number">(at);
            }
            has_numbers_ = true;
            return find(number, kind, start);
        }
        if (!is_name_start(first)) {
            return refuse<"neither a number nor a name begins here">(at);
        }
        while (is_name_start(peek()) || is_digit(peek())) {
            ++at_;
        }
        const std::string_view name = source_.substr(at, at_ - at);
        for (std::size_t index = 0; index < count_; ++index) {
            if (arguments_[index].name == name) {
                kind = arguments_[index].kind;
                uses_names_ = true;
                return verdict::accepted;
            }
        }
        return refuse<"there is no key-value with this name; write \"name\"_kv = value">(start);
    }

    constexpr verdict find(std::size_t number, value_kind &kind, std::size_t start) const {
        std::size_t position = 0;
        for (std::size_t index = 0; index < count_; ++index) {
            if (arguments_[index].kind == value_kind::part || !arguments_[index].name.empty()) {
                continue;
            }
            if (position++ == number) {
                kind = arguments_[index].kind;
                return verdict::accepted;
            }
        }
        return refuse<"there is no argument for this placeholder">(start);
    }

    constexpr verdict read_number(std::size_t &number) {
        const std::size_t start = at_;
        number = 0;
        while (is_digit(peek())) {
            number = number * 10 + static_cast<std::size_t>(peek() - '0');
            ++at_;
            if (number > 0x7FFFFFFF) {
                return refuse<"the number is too large">(start);
            }
        }
        return verdict::accepted;
    }

    template <fixed_text AboveTheLimit> constexpr verdict amount() {
        const std::size_t start = at_;
        std::size_t number = 0;
        if (read_number(number) == verdict::refused) {
            return verdict::refused;
        }
        return number > 1024 ? refuse<AboveTheLimit>(start) : verdict::accepted;
    }

    template <fixed_text NoInteger> constexpr verdict nested(std::size_t start) {
        value_kind kind{};
        if (argument("", kind, start) == verdict::refused) {
            return verdict::refused;
        }
        if (!take('}')) {
            return refuse<"`}` is expected after a nested argument">(at_);
        }
        return is_amount(kind) ? verdict::accepted : refuse<NoInteger>(start);
    }

    constexpr verdict parse_spec(format_spec &spec, std::size_t start) {
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
            if (nested<"the argument of the width is not an integer">(start) == verdict::refused) {
                return verdict::refused;
            }
        } else if (amount<"the width is above the limit of 1024">() == verdict::refused) {
            return verdict::refused;
        }
        if (take('.')) {
            spec.has_precision = true;
            if (take('{')) {
                if (nested<"the argument of the precision is not an integer">(start) == verdict::refused) {
                    return verdict::refused;
                }
            } else if (!is_digit(peek())) {
                return refuse<"a precision is expected after `.`">(at_);
            } else if (amount<"the precision is above the limit of 1024">() == verdict::refused) {
                return verdict::refused;
            }
        }
        if (peek() == 'L') {
            return refuse<"`L` is not supported: lines do not depend on the locale">(at_);
        }
        if (at_ >= source_.size()) {
            return refuse<"`{` without `}`; write `{{` for a brace">(at_);
        }
        if (peek() == '}') {
            return verdict::accepted;
        }
        if (std::string_view("aAbBcdeEfFgGopsxX?").find(peek()) == std::string_view::npos) {
            return refuse<"this is not a type of {fmt} that logspool shows">(at_);
        }
        spec.type = peek();
        ++at_;
        return verdict::accepted;
    }

    /// Passes over a spec that this grammar does not know, up to its closing brace. False: no closing brace.
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
    constexpr verdict refusal(const format_spec &spec, value_kind kind, std::size_t start) const {
        constexpr std::string_view integers = "doxXbBc";
        bool is_number = true;
        bool takes_precision = false;
        switch (kind) {
        case value_kind::rendered:
            return verdict::accepted;
        case value_kind::boolean:
            if (!is_one_of(spec.type, integers) && spec.type != 's') {
                return refuse<"the type does not fit a bool">(start);
            }
            break;
        case value_kind::integer:
        case value_kind::wide_integer:
        case value_kind::unsigned_integer:
            if (!is_one_of(spec.type, integers)) {
                return refuse<"the type does not fit an integer">(start);
            }
            break;
        case value_kind::character:
            if (!is_one_of(spec.type, integers) && spec.type != '?') {
                return refuse<"the type does not fit a character">(start);
            }
            break;
        case value_kind::real:
        case value_kind::single:
            takes_precision = true;
            if (!is_one_of(spec.type, "aAeEfFgG")) {
                return refuse<"the type does not fit a floating-point number">(start);
            }
            break;
        case value_kind::text:
        case value_kind::bytes:
            is_number = false;
            takes_precision = true;
            if (!is_one_of(spec.type, "s?")) {
                return refuse<"the type does not fit text">(start);
            }
            break;
        case value_kind::pointer:
            is_number = false;
            if (!is_one_of(spec.type, "p")) {
                return refuse<"the type does not fit an address">(start);
            }
            break;
        case value_kind::digits:
            is_number = false;
            if (spec.type != 0 || spec.has_precision || spec.sign != 0 || spec.alternate || spec.zero) {
                return refuse<"a long double is shown with all its digits; cast it to double for this format">(start);
            }
            break;
        case value_kind::none:
        case value_kind::tuple:
        case value_kind::part:
            is_number = false;
            if (spec.type != 0) {
                return refuse<"a value of several fields has no type">(start);
            }
            break;
        }
        if (!is_number && (spec.sign != 0 || spec.alternate || spec.zero)) {
            return refuse<"sign, `#` and `0` are for numbers">(start);
        }
        if (spec.sign != 0 && (kind == value_kind::boolean || kind == value_kind::unsigned_integer)) {
            return refuse<"a sign is for signed numbers">(start);
        }
        if (spec.has_precision && !takes_precision) {
            return refuse<"a precision is for floating-point numbers and text">(start);
        }
        const bool is_character = kind == value_kind::character &&
                                  (spec.type == 0 || spec.type == 'c' || spec.type == '?');
        if (is_character && (spec.sign != 0 || spec.alternate || (spec.zero && !spec.has_align))) {
            return refuse<"sign, `#` and `0` are for numbers, not for a character">(start);
        }
        return verdict::accepted;
    }

    std::string_view source_;
    const checked_argument *arguments_;
    std::size_t count_;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    bool has_numbers_ = false;
    bool uses_names_ = false;
    bool may_be_foreign_ = false;
};

} // namespace logspool::detail

#endif
