/// \file
/// Counters of the process: records that were offered, accepted, refused, dropped, written, or are queued.
#ifndef LOGSPOOL_COUNTERS_HPP
#define LOGSPOOL_COUNTERS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api.hpp"
#include "site.hpp"

namespace logspool {

/// Records since the process began, except `depth`.
struct counters {
    std::uint64_t offered = 0;       ///< Calls that passed their level.
    std::uint64_t accepted = 0;      ///< Records in the queue or already out of it.
    std::uint64_t refused = 0;       ///< Records that never came into the queue, for every reason.
    std::uint64_t dropped = 0;       ///< Records that sinks gave up, counted once for each sink.
    std::uint64_t written = 0;       ///< Records that sinks wrote, counted once for each sink.
    std::uint64_t blocked_calls = 0; ///< Calls that waited for room.
    std::uint64_t depth = 0;         ///< Records that are in the queue now.
};

/// All counters as a JSON object, with the reasons of refusals and drops and with each sink; see `logspool_stats`.
inline std::string stats_json() {
    std::string text;
    if (!detail::has_api()) {
        return text;
    }
    for (long length = detail::api().stats(nullptr, 0); length >= 0;) {
        text.resize(static_cast<std::size_t>(length) + 1);
        length = detail::api().stats(text.data(), text.size());
        if (length >= 0 && static_cast<std::size_t>(length) < text.size()) {
            text.resize(static_cast<std::size_t>(length));
            return text;
        }
    }
    return {};
}

namespace detail {

/// Adds the numbers of the library's JSON text to the counters that they belong to.
class counters_reader {
  public:
    explicit counters_reader(std::string_view text) : text_(text) {}

    counters read() {
        object({}, {});
        return all_;
    }

  private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    std::string_view string() {
        const std::size_t start = ++at_;
        while (at_ < text_.size() && text_[at_] != '"') {
            at_ += text_[at_] == '\\' ? 2 : 1;
        }
        const std::size_t end = at_ < text_.size() ? at_ : text_.size();
        ++at_;
        return text_.substr(start, end - start);
    }

    /// Reads a value that is called `key` in an object that is called `parent`.
    void value(std::string_view parent, std::string_view key) {
        switch (peek()) {
        case '{':
        case '[':
            object(parent, key);
            break;
        case '"':
            string();
            break;
        default:
            number(parent, key);
        }
    }

    /// Reads an object or an array, whose elements have its name.
    void object(std::string_view parent, std::string_view name) {
        const bool has_keys = peek() == '{';
        ++at_;
        while (at_ < text_.size() && peek() != '}' && peek() != ']') {
            if (peek() == ',') {
                ++at_;
            } else if (has_keys) {
                const std::string_view key = string();
                ++at_;
                value(name, key);
            } else {
                value(parent, name);
            }
        }
        ++at_;
    }

    void number(std::string_view parent, std::string_view key) {
        std::uint64_t number = 0;
        const std::size_t start = at_;
        bool is_whole = true;
        for (; at_ < text_.size() && std::string_view(",]}").find(peek()) == std::string_view::npos; ++at_) {
            is_whole = is_whole && peek() >= '0' && peek() <= '9';
            number = number * 10 + static_cast<std::uint64_t>(peek() - '0');
        }
        if (!is_whole || at_ == start) {
            return;
        }
        if (parent.empty()) {
            all_.offered += key == "offered" ? number : 0;
            all_.accepted += key == "accepted" ? number : 0;
            all_.blocked_calls += key == "blocked_calls" ? number : 0;
            all_.depth += key == "in_lanes" ? number : 0;
        }
        all_.refused += parent == "refused" ? number : 0;
        all_.dropped += parent == "dropped" ? number : 0;
        all_.written += parent == "sinks" && key == "written" ? number : 0;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    counters all_;
};

} // namespace detail

/// The counters now. Allocates; not for signal handlers.
inline counters count() {
    const std::string text = stats_json();
    counters all = text.empty() ? counters{} : detail::counters_reader(text).read();
    const std::uint64_t here = detail::refused_here.load(std::memory_order_relaxed);
    all.offered += here;
    all.refused += here;
    return all;
}

} // namespace logspool

#endif
