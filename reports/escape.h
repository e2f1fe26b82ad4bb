// Text into HTML and XML. One function, because both formats agree on what is dangerous.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace assay {

namespace detail {

/// Characters of three UTF-8 bytes that may not appear as they are: XML has no place for the last two; the others
/// reorder or hide the text around them, so that a tensor name could pretend to be another.
struct Forbidden {
  std::string_view bytes, shown;
};
inline constexpr std::array<Forbidden, 15> kForbidden{{{"\xe2\x80\x8b", "\\u200b"},
                                                       {"\xe2\x80\x8e", "\\u200e"},
                                                       {"\xe2\x80\x8f", "\\u200f"},
                                                       {"\xe2\x80\xa8", "\\u2028"},
                                                       {"\xe2\x80\xa9", "\\u2029"},
                                                       {"\xe2\x80\xaa", "\\u202a"},
                                                       {"\xe2\x80\xab", "\\u202b"},
                                                       {"\xe2\x80\xac", "\\u202c"},
                                                       {"\xe2\x80\xad", "\\u202d"},
                                                       {"\xe2\x80\xae", "\\u202e"},
                                                       {"\xe2\x81\xa6", "\\u2066"},
                                                       {"\xe2\x81\xa7", "\\u2067"},
                                                       {"\xe2\x81\xa8", "\\u2068"},
                                                       {"\xef\xbf\xbe", "\\ufffe"},
                                                       {"\xef\xbf\xbf", "\\uffff"}}};

inline std::string escape_byte(char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
}

}  // namespace detail

/// Valid UTF-8 in; text that is safe between tags and between quotes of an attribute out. Control characters, line
/// breaks too, are shown as \x01: XML 1.0 cannot hold most of them, and a reader should see that they are there.
inline std::string escape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::string_view next = raw.substr(i, 3);
    const auto* hit = std::find_if(detail::kForbidden.begin(), detail::kForbidden.end(),
                                   [&](const detail::Forbidden& f) { return f.bytes == next; });
    if (hit == detail::kForbidden.end()) {
      out += detail::escape_byte(raw[i]);
    } else {
      out += hit->shown;
      i += 2;
    }
  }
  return out;
}

}  // namespace assay
