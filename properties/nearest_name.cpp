#include "properties/nearest_name.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace assay {
namespace {

// A name longer than this is hostile, not mistyped; its head decides, and the work stays small.
constexpr std::size_t kMostLetters = 128;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Levenshtein's distance, row by row.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view wrong, std::span<const std::string_view> names) {
  std::string_view nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string_view name : names) {
    const std::size_t d = distance(wrong.substr(0, kMostLetters), name.substr(0, kMostLetters));
    if (d >= least) continue;
    least = d;
    nearest = name;
  }
  return std::string(nearest);
}

}  // namespace assay
