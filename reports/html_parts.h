// The small parts of report.html: markup that cannot be forgotten to be escaped, numbers, and two drawings.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/escape.h"

namespace assay::page {

using Json = nlohmann::ordered_json;

// ---------------------------------------------------------------------------------------------------- numbers

inline std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// Three significant digits without exponent where that stays short: 0.312, 12.3, 1,234.
inline std::string three_digits(double v) {
  const double size = std::fabs(v);
  if (size != 0 && (size < 1e-3 || size >= 1e15)) return fmt::format("{:.2e}", v);
  if (size >= 1000) return grouped(static_cast<std::uint64_t>(std::llround(v)));
  return fmt::format("{:.{}f}", v, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/// An error in steps beside its bound. Never rounded onto or across the bound: 0.49999999 must not read as 0.5.
inline std::string steps_text(double steps, double bound) {
  const std::string text = fmt::format("{:.4f}", steps);
  return (std::stod(text) < bound) == (steps < bound) && (std::stod(text) > bound) == (steps > bound)
             ? text
             : fmt::format("{:.17g}", steps);
}

inline std::string plural(std::uint64_t n, std::string_view singular) {
  return fmt::format("{} {}{}", grouped(n), singular, n == 1 ? "" : "s");
}

// ---------------------------------------------------------------------------------------------------- report.json

inline std::string str(const Json& value) { return value.get<std::string>(); }
inline std::uint64_t count(const Json& value) { return value.get<std::uint64_t>(); }

inline std::string shape_text(const Json& shape) {
  std::string text;
  for (const Json& side : shape) text += (text.empty() ? "" : " × ") + side.dump();
  return text.empty() ? "scalar" : text;
}

inline std::string option_text(const std::string& key, const Json& value) {
  return key + "=" + (value.is_string() ? str(value) : value.dump());
}

// ---------------------------------------------------------------------------------------------------- markup

/// Finished markup. Strings become markup through html() alone, which escapes them.
struct Html {
  std::string markup;
  Html& operator+=(const Html& more) {
    markup += more.markup;
    return *this;
  }
  bool empty() const { return markup.empty(); }
};

inline std::string safe(const Html& h) { return h.markup; }
inline std::string safe(std::string_view raw) { return escape(raw); }
template <std::integral Number>
std::string safe(Number n) {
  return n < 0 ? grouped(0 - static_cast<std::uint64_t>(n)).insert(0, 1, '-') : grouped(static_cast<std::uint64_t>(n));
}
inline std::string json_text(const Json& value) {
  if (value.is_string()) return escape(value.get_ref<const std::string&>());
  if (value.is_number_unsigned()) return grouped(value.get<std::uint64_t>());
  if (value.is_number_integer()) return safe(value.get<std::int64_t>());
  if (value.is_number()) return three_digits(value.get<double>());
  return value.is_null() ? "–" : escape(value.dump());
}
// A template, because Json can be made from a string as well as a string_view can.
template <std::same_as<Json> Value>
std::string safe(const Value& value) {
  return json_text(value);
}

/// `layout` is markup written in this room, with one {} for each argument.
template <typename... Args>
Html html(std::string_view layout, const Args&... args) {
  return {fmt::format(fmt::runtime(layout), safe(args)...)};
}

template <typename Items, typename One>
Html join(const Items& items, std::string_view separator, One one) {
  Html out;
  for (const auto& item : items) {
    if (!out.empty()) out.markup += separator;
    out += one(item);
  }
  return out;
}

/// An id that is the name itself, so it stays the same as long as the name does and no two names share one. Kept as
/// they are: the characters that a link's fragment may hold.
inline std::string anchor(std::string_view kind, std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@:";
  std::string id = fmt::format("{}:", kind);
  for (const char c : name) {
    id += kPlain.find(c) != kPlain.npos ? std::string(1, c) : fmt::format("~{:02x}", static_cast<unsigned char>(c));
  }
  return id;
}

inline Html section(std::string_view id, std::string_view title, const Html& body) {
  return html("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, body);
}

/// Scrolls sideways inside its own box, also by keyboard.
inline Html table(std::string_view label, const Html& head, const Html& rows) {
  return html(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead>{}</thead>\n"
      "{}</table></div>\n",
      label, head, rows);
}

/// Sign and word, so that colour is only the third signal.
inline Html badge(std::string_view verdict) {
  struct Look {
    std::string_view verdict, colour, sign, word;
  };
  static constexpr Look kLooks[] = {{"pass", "ok", "✓", "pass"},
                                    {"fail", "bad", "✗", "fail"},
                                    {"pass_with_waivers", "warn", "!", "known"},
                                    {"not_judged", "none", "○", "not judged"},
                                    {"incomplete", "warn", "○", "incomplete"},
                                    {"killed", "ok", "✓", "killed"},
                                    {"survived", "bad", "✗", "survived"},
                                    {"killed_by_others", "warn", "!", "killed by others"}};
  for (const Look& look : kLooks) {
    if (look.verdict == verdict) {
      return html("<span class=\"badge {}\"><i>{}</i>&nbsp;{}</span>", look.colour, look.sign, look.word);
    }
  }
  return html("<span class=\"badge none\">{}</span>", verdict);
}

// ---------------------------------------------------------------------------------------------------- drawings

/// value against bound as a bar; the number stands beside it.
inline Html meter(double value, double bound) {
  const double full = std::clamp(value / bound, 0.0, 1.0) * 60;
  return html(
      "<svg class=\"meter\" viewBox=\"0 0 60 6\" width=\"60\" height=\"6\" aria-hidden=\"true\"><path class=\"rail\" "
      "d=\"M0 0h60v6H0z\"/><path class=\"{}\" d=\"M0 0h{}v6H0z\"/></svg>",
      value > bound ? "over" : "fill", Html{fmt::format("{:.1f}", full)});
}

struct CodeUse {
  std::vector<std::uint64_t> counts;
  std::int64_t qmin = 0;
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : counts) sum += n;
    return sum;
  }
  auto used() const {
    return counts.size() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), std::uint64_t{0}));
  }
  std::int64_t code(std::size_t i) const { return qmin + static_cast<std::int64_t>(i); }
};

inline std::string in_words(const CodeUse& use) {
  const auto most = std::max_element(use.counts.begin(), use.counts.end()) - use.counts.begin();
  const std::size_t last = use.counts.size() - 1;
  const std::uint64_t total = std::max<std::uint64_t>(use.total(), 1);
  return fmt::format(
      "{} of {} codes used; most frequent {} ({} times, {:.1f} %); lowest code {}: {} times; highest code {}: {} times",
      use.used(), use.counts.size(), use.code(static_cast<std::size_t>(most)),
      grouped(use.counts[static_cast<std::size_t>(most)]),
      100.0 * static_cast<double>(use.counts[static_cast<std::size_t>(most)]) / static_cast<double>(total), use.code(0),
      grouped(use.counts[0]), use.code(last), grouped(use.counts[last]));
}

/// Code usage, one column per code, height linear in the count; a code used once still shows.
inline Html histogram(const CodeUse& use) {
  if (use.counts.empty()) return html("–");
  constexpr double kHeight = 28;
  const double most =
      static_cast<double>(std::max<std::uint64_t>(*std::max_element(use.counts.begin(), use.counts.end()), 1));
  std::string path = fmt::format("M0 {}", kHeight);
  for (const std::uint64_t n : use.counts) {
    const double top = n == 0 ? kHeight : std::min(kHeight - 1, kHeight - kHeight * static_cast<double>(n) / most);
    path += fmt::format("V{:.3g}h1", top);
  }
  path += fmt::format("V{}z", kHeight);
  return html(
      "<svg class=\"histogram\" viewBox=\"0 0 {} 28\" width=\"128\" height=\"28\" preserveAspectRatio=\"none\" "
      "role=\"img\" aria-label=\"{}\"><title>{}</title><path d=\"{}\"/></svg>"
      "<div class=\"axis\"><span>{}</span><span>{}</span></div><small>{} of {} used</small>",
      Html{std::to_string(use.counts.size())}, in_words(use), in_words(use), path, use.code(0),
      use.code(use.counts.size() - 1), use.used(), use.counts.size());
}

}  // namespace assay::page
