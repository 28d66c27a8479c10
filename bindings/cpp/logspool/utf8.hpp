/// \file
/// Tells and mends UTF-8, since records hold nothing else.
#ifndef LOGSPOOL_UTF8_HPP
#define LOGSPOOL_UTF8_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace logspool::detail {

/// Length of the well-formed character at the start of `text`. 0: there is no such character; one U+FFFD then replaces
/// `bad` bytes.
inline std::size_t utf8_character(std::string_view text, std::size_t &bad) {
    const auto byte = [text](std::size_t index) {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
    };
    const auto follows = [&byte](std::size_t index) { return (byte(index) & 0xC0U) == 0x80U; };
    const unsigned lead = byte(0);
    bad = 1;
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    if (lead < 0xE0) {
        return follows(1) ? 2 : 0;
    }
    const unsigned second = byte(1);
    const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (second < lowest || second > highest) {
        return 0;
    }
    bad = 2;
    if (!follows(2)) {
        return 0;
    }
    if (lead < 0xF0) {
        return 3;
    }
    bad = 3;
    return follows(3) ? 4 : 0;
}

[[gnu::noinline]] inline bool is_whole_utf8(std::string_view text) {
    std::size_t bad = 0;
    while (!text.empty()) {
        const std::size_t bytes = utf8_character(text, bad);
        if (bytes == 0) {
            return false;
        }
        text.remove_prefix(bytes);
    }
    return true;
}

/// Whether the text is UTF-8. ASCII, the frequent case, is checked eight bytes at a time.
inline bool is_utf8(const char *data, std::size_t bytes) {
    constexpr std::uint64_t high = 0x8080808080808080U;
    std::uint64_t bits = 0;
    if (bytes >= 8) {
        std::size_t at = 0;
        std::uint64_t word;
        for (; at + 8 < bytes; at += 8) {
            std::memcpy(&word, data + at, 8);
            bits |= word;
        }
        std::memcpy(&word, data + bytes - 8, 8);
        bits |= word;
    } else if (bytes >= 4) {
        std::uint32_t first;
        std::uint32_t last;
        std::memcpy(&first, data, 4);
        std::memcpy(&last, data + bytes - 4, 4);
        bits = first | last;
    } else if (bytes > 0) {
        bits = static_cast<unsigned char>(data[0] | data[bytes / 2] | data[bytes - 1]);
    }
    return __builtin_expect((bits & high) == 0, 1) || is_whole_utf8({data, bytes});
}

/// A copy with U+FFFD in place of ill-formed bytes.
[[gnu::noinline]] inline std::string mended_utf8(std::string_view text) {
    std::string mended;
    std::size_t bad = 0;
    while (!text.empty()) {
        const std::size_t bytes = utf8_character(text, bad);
        mended += bytes == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes);
        text.remove_prefix(bytes == 0 ? bad : bytes);
    }
    return mended;
}

} // namespace logspool::detail

#endif
