/// \file
/// Cuts the texts of a record that is larger than any record can be. The line says how many bytes are left out.
#ifndef LOGSPOOL_CUT_HPP
#define LOGSPOOL_CUT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "api.hpp"
#include "format.hpp"

namespace logspool::detail {

/// Largest size of all values of a record. Specified: 64 MiB for a large record, less its head and its site.
inline constexpr std::size_t max_record_bytes = std::size_t{63} << 20;

/// One encoded value: its tag and the bytes after it.
struct encoded_value {
    std::size_t head; ///< Bytes of the tag and the length.
    std::size_t text; ///< Bytes of the text after them.

    explicit encoded_value(std::string_view values) : head(1), text(0) {
        switch (static_cast<unsigned char>(values[0])) {
        case static_cast<unsigned char>(value_kind::none):
        case LOGSPOOL_TAG_TRUE:
        case LOGSPOOL_TAG_FALSE:
            break;
        case static_cast<unsigned char>(value_kind::single):
        case static_cast<unsigned char>(value_kind::character):
        case static_cast<unsigned char>(value_kind::tuple):
            head += 4;
            break;
        case static_cast<unsigned char>(value_kind::integer):
        case static_cast<unsigned char>(value_kind::unsigned_integer):
        case static_cast<unsigned char>(value_kind::real):
        case static_cast<unsigned char>(value_kind::pointer):
            head += 8;
            break;
        default:
            std::uint32_t bytes = 0;
            std::memcpy(&bytes, values.data() + 1, sizeof bytes);
            head += sizeof bytes;
            text = bytes;
        }
    }
};

/// The values with their long texts cut at a character, so that all are at most `max_record_bytes`, if texts are what
/// makes them longer.
inline std::string cut_values(std::string_view values) {
    std::size_t texts = 0;
    for (std::size_t at = 0; at < values.size();) {
        const encoded_value each(values.substr(at));
        texts += each.text > 1024 ? 1 : 0;
        at += each.head + each.text;
    }
    // Everything but the long texts is counted as an eighth.
    const std::size_t share = max_record_bytes / 8 * 7 / (texts == 0 ? 1 : texts);
    std::string cut;
    for (std::size_t at = 0; at < values.size();) {
        const encoded_value each(values.substr(at));
        std::string_view text = values.substr(at + each.head, each.text);
        std::string mark;
        if (text.size() > share) {
            std::size_t bytes = share;
            while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) {
                --bytes;
            }
            mark = " [" + std::to_string(text.size() - bytes) + " bytes are cut]";
            text = text.substr(0, bytes);
        }
        cut.append(values.substr(at, each.head));
        if (!mark.empty()) {
            const auto bytes = static_cast<std::uint32_t>(text.size() + mark.size());
            std::memcpy(cut.data() + cut.size() - sizeof bytes, &bytes, sizeof bytes);
        }
        cut.append(text);
        cut.append(mark);
        at += each.head + each.text;
    }
    return cut;
}

} // namespace logspool::detail

#endif
