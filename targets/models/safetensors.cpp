// safetensors: eight bytes of header length, a JSON header, then the data of all tensors without gaps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "targets/models/float_formats.h"

namespace assay::float_formats {
namespace {

constexpr std::size_t kMaxHeader = 100'000'000;  // the limit of the reference implementation

struct Dtype {
  std::string_view name;
  std::uint64_t bits;
  std::optional<Format> format;  ///< empty: known, but not an input format of a quantizer
};
constexpr std::array<Dtype, 20> kDtypes = {{
    {"F32", 32, Format::f32},
    {"F16", 16, Format::f16},
    {"BF16", 16, Format::bf16},
    {"F64", 64, {}},
    {"C64", 64, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
    {"I64", 64, {}},
    {"U64", 64, {}},
    {"I32", 32, {}},
    {"U32", 32, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"I8", 8, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
}};

struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<Shape> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

/// The header's grammar as a state machine over parse events: one object of tensors, each an object of three fields,
/// and nothing deeper. A parsed document would hide duplicate keys and could be made to nest as deep as the file is
/// long.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::string problem;

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("a boolean"); }
  bool number_float(double, const std::string& text) override { return misplaced("the number " + quote(text)); }
  bool number_integer(std::int64_t value) override { return misplaced(fmt::format("the number {}", value)); }
  bool binary(nlohmann::json::binary_t&) override { return misplaced("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::numbers || value > std::numeric_limits<std::int64_t>::max()) {
      return misplaced(fmt::format("the number {}", value));
    }
    std::vector<std::int64_t>& numbers = key_ == "shape" ? *entries.back().shape : *entries.back().offsets;
    if (numbers.size() == kMaxRank) return fail(fmt::format("{} has more than {} numbers", where(), kMaxRank));
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::entry || key_ != "dtype") return misplaced("the string " + quote(text));
    entries.back().dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::start) {
      place_ = Place::file;
    } else if (place_ == Place::file && key_ == "__metadata__") {
      place_ = Place::metadata;
    } else if (place_ == Place::file) {
      place_ = Place::entry;
      entries.push_back({key_, {}, {}, {}});
    } else {
      return misplaced("an object");
    }
    return true;
  }

  bool end_object() override {
    place_ = Place::file;
    metadata_keys_.clear();
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::entry || key_ == "dtype") return misplaced("an array");
    place_ = Place::numbers;
    (key_ == "shape" ? entries.back().shape : entries.back().offsets).emplace();
    return true;
  }

  bool end_array() override {
    place_ = Place::entry;
    return true;
  }

  bool key(std::string& text) override {
    bool is_new = true;
    if (place_ == Place::entry) {
      const Entry& e = entries.back();
      if (text != "dtype" && text != "shape" && text != "data_offsets") {
        return fail(fmt::format("tensor {} has the unknown key {}", quote(e.name), quote(text)));
      }
      is_new = !(text == "dtype" ? e.dtype.has_value() : text == "shape" ? e.shape.has_value() : e.offsets.has_value());
    } else {
      is_new = (place_ == Place::metadata ? metadata_keys_ : names_).insert(text).second;
    }
    if (!is_new) return fail(fmt::format("the key {} stands twice in one object of the header", quote(text)));
    key_ = text;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail(fmt::format("the header is not valid JSON at byte {} of the file", 8 + position - 1));
  }

 private:
  enum class Place : std::uint8_t { start, file, metadata, entry, numbers };

  bool fail(std::string sentence) {
    problem = fmt::format("{}; {}", sentence, kExportAgain);
    return false;
  }

  std::string where() const {
    if (place_ == Place::metadata || place_ == Place::file) return fmt::format("{} in the header", quote(key_));
    return fmt::format("tensor {}, key {},", quote(entries.back().name), quote(key_));
  }

  std::string_view wanted() const {
    if (place_ == Place::metadata) return "a string";
    if (place_ == Place::file) return "an object";
    if (place_ == Place::numbers) return "whole numbers from 0 to 2^63 - 1";
    return key_ == "dtype" ? "a string" : "an array of whole numbers";
  }

  bool misplaced(const std::string& what) {
    return fail(fmt::format("{} has {} instead of {}", where(), what, wanted()));
  }

  Place place_ = Place::start;
  std::string key_;
  std::set<std::string> names_, metadata_keys_;
};

/// Offsets are relative to the data, which starts at byte `data_start` of the file and has `data_size` bytes.
std::string check_entry(const Entry& e, std::size_t data_start, std::size_t data_size) {
  const std::string name = "tensor " + quote(e.name);
  if (!e.dtype || !e.shape || !e.offsets) {
    return fmt::format("{} lacks the key {}; {}", name,
                       !e.dtype   ? "dtype"
                       : !e.shape ? "shape"
                                  : "data_offsets",
                       kExportAgain);
  }
  if (e.offsets->size() != 2 || e.offsets->front() > e.offsets->back()) {
    return fmt::format("{} has data_offsets {} instead of a start and an end; {}", name, show(*e.offsets),
                       kExportAgain);
  }
  const auto begin = static_cast<std::uint64_t>(e.offsets->front()),
             end = static_cast<std::uint64_t>(e.offsets->back());
  if (end > data_size) {
    return fmt::format("{} ends {} bytes after byte {}, where the data starts, but only {} bytes are there; {}", name,
                       end, data_start, data_size, kFetchAgain);
  }
  const auto count = checked_count(*e.shape);
  if (!count)
    return fmt::format("{} has shape {}, more elements than any file holds; {}", name, show(*e.shape), kExportAgain);
  const auto dtype = std::ranges::find(kDtypes, *e.dtype, &Dtype::name);
  if (dtype == kDtypes.end()) return {};
  const std::uint64_t bits = *count * dtype->bits;
  if (bits % 8 == 0 && bits / 8 == end - begin) return {};
  return fmt::format("{} at byte {} has {} bytes of data, but shape {} of {} needs {} bits; {}", name,
                     data_start + begin, end - begin, show(*e.shape), dtype->name, bits, kExportAgain);
}

/// The format wants the data covered exactly once; a gap could hide something and an overlap makes tensors aliases.
std::string check_coverage(std::span<const Entry> sorted, std::size_t data_start, std::size_t data_size) {
  std::uint64_t covered = 0;
  for (const Entry& e : sorted) {
    const auto begin = static_cast<std::uint64_t>(e.offsets->front());
    if (begin != covered) {
      return fmt::format("tensor {} at byte {} {} byte {}, where the tensor before it ends; {}", quote(e.name),
                         data_start + begin, begin < covered ? "overlaps the bytes before" : "leaves a gap after",
                         data_start + covered, kExportAgain);
    }
    covered = static_cast<std::uint64_t>(e.offsets->back());
  }
  if (covered == data_size) return {};
  return fmt::format("{} bytes from byte {} on belong to no tensor; {}", data_size - covered, data_start + covered,
                     kExportAgain);
}

}  // namespace

std::string read_safetensors(Bytes file, std::vector<FloatTensor>& tensors, std::vector<SkippedTensor>& skipped) {
  if (file.size() < 8) {
    return fmt::format("the file has {} bytes, less than the 8 of the header's length; {}", file.size(), kFetchAgain);
  }
  const std::uint64_t length = little_endian(file.first(8));
  if (length > kMaxHeader) {
    return fmt::format("the header at byte 8 claims {} bytes, more than the {} that the format allows; {}", length,
                       kMaxHeader, kExportAgain);
  }
  if (length > file.size() - 8) {
    return fmt::format("the header at byte 8 claims {} bytes, but only {} follow; {}", length, file.size() - 8,
                       kFetchAgain);
  }
  const std::size_t data_start = 8 + static_cast<std::size_t>(length);
  const std::string_view header = as_text(file.subspan(8, static_cast<std::size_t>(length)));
  if (!header.starts_with('{')) return fmt::format("the header at byte 8 does not start with '{{'; {}", kExportAgain);
  // The parser takes NUL for the end of its input, so it would not see what comes after.
  if (const std::size_t nul = header.find('\0'); nul != header.npos) {
    return fmt::format("the header has a NUL at byte {} of the file; {}", 8 + nul, kExportAgain);
  }
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header, &reader)) return reader.problem;

  std::vector<Entry>& entries = reader.entries;
  const std::size_t data_size = file.size() - data_start;
  for (const Entry& e : entries) {
    if (std::string problem = check_entry(e, data_start, data_size); !problem.empty()) return problem;
  }
  std::ranges::sort(entries, {}, [](const Entry& e) { return *e.offsets; });
  if (std::string problem = check_coverage(entries, data_start, data_size); !problem.empty()) return problem;

  for (Entry& e : entries) {
    const auto dtype = std::ranges::find(kDtypes, *e.dtype, &Dtype::name);
    if (dtype == kDtypes.end() || !dtype->format) {
      skipped.push_back({e.name, fmt::format("its dtype is {}; F32, F16 and BF16 are read", quote(*e.dtype))});
    } else if (*checked_count(*e.shape) == 0) {
      skipped.push_back({e.name, fmt::format("its shape {} has no elements", show(*e.shape))});
    } else {
      const auto begin = static_cast<std::size_t>(e.offsets->front()),
                 end = static_cast<std::size_t>(e.offsets->back());
      if (e.shape->empty()) e.shape = Shape{1};
      tensors.push_back(
          {e.name, *dtype->format, *e.shape, data_start + begin, file.subspan(data_start + begin, end - begin)});
    }
  }
  return {};
}

}  // namespace assay::float_formats
