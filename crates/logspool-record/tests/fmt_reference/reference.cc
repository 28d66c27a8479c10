// Formats the cases that tests/fmt_differences.rs writes to its standard input, with {fmt}.
//
// A case: u32 length and template, u32 length and values as a record holds them (tags of src/record.rs). An answer:
// one byte, 1 if {fmt} formatted the case, then u32 length and the text, or the message of the exception.

#include <fmt/args.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <string>
#include <utility>

namespace {

using Store = fmt::dynamic_format_arg_store<fmt::format_context>;

struct Reader {
  const char* at;
  const char* end;

  template <typename T> T number() {
    if (end - at < static_cast<std::ptrdiff_t>(sizeof(T))) std::abort();
    T value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }

  std::string text() {
    auto len = number<std::uint32_t>();
    if (end - at < static_cast<std::ptrdiff_t>(len)) std::abort();
    std::string text(at, len);
    at += len;
    return text;
  }
};

template <typename T> void push(Store& store, const std::string* name, T value) {
  if (name)
    store.push_back(fmt::arg(name->c_str(), value));
  else
    store.push_back(value);
}

void push_big(Store& store, const std::string* name, const std::string& digits) {
  bool negative = digits[0] == '-';
  unsigned __int128 magnitude = 0;
  for (std::size_t i = negative; i < digits.size(); ++i) magnitude = magnitude * 10 + unsigned(digits[i] - '0');
  if (negative || magnitude >> 127 == 0)
    push(store, name, static_cast<__int128>(negative ? 0 - magnitude : magnitude));
  else
    push(store, name, magnitude);
}

void push_value(Store& store, Reader& values, const std::string* name) {
  switch (auto tag = values.number<std::uint8_t>()) {
    case 2: return push(store, name, true);
    case 3: return push(store, name, false);
    case 4: return push(store, name, static_cast<long long>(values.number<std::int64_t>()));
    case 5: return push(store, name, values.number<double>());
    case 6: return push(store, name, values.text());
    case 10: return push_big(store, name, values.text());
    case 11: return push(store, name, static_cast<unsigned long long>(values.number<std::uint64_t>()));
    case 12: return push(store, name, static_cast<char>(values.number<std::uint32_t>()));
    case 13: return push(store, name, values.number<float>());
    case 14: return push(store, name, reinterpret_cast<const void*>(values.number<std::uint64_t>()));
    default: std::fprintf(stderr, "unknown tag %u\n", unsigned(tag)); std::abort();
  }
}

bool read_text(std::string& text) {
  std::uint32_t len;
  if (std::fread(&len, sizeof len, 1, stdin) != 1) return false;
  text.resize(len);
  return std::fread(text.data(), 1, len, stdin) == len;
}

}  // namespace

int main() {
  static std::string format;
  std::string values;
  // {fmt} ends the program where one of its assertions fails.
  std::set_terminate([] {
    std::fprintf(stderr, "{fmt} failed with the template %s\n", format.c_str());
    std::abort();
  });
  while (read_text(format) && read_text(values)) {
    // Named values come first, as the extra fields of a record, but {fmt} counts them last.
    Store store;
    std::deque<std::pair<std::string, Reader>> named;
    Reader reader{values.data(), values.data() + values.size()};
    while (reader.at != reader.end && *reader.at == 0x47) {
      ++reader.at;
      auto name = reader.text();
      named.emplace_back(std::move(name), reader);
      Store ignored;
      push_value(ignored, reader, nullptr);
    }
    while (reader.at != reader.end) push_value(store, reader, nullptr);
    for (auto& [name, value] : named) push_value(store, value, &name);
    std::string text;
    char formatted = 1;
    try {
      text = fmt::vformat(format, store);
    } catch (const std::exception& error) {
      formatted = 0;
      text = error.what();
    }
    auto len = static_cast<std::uint32_t>(text.size());
    std::fwrite(&formatted, 1, 1, stdout);
    std::fwrite(&len, sizeof len, 1, stdout);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}
