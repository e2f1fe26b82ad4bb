// NumPy .npy: a magic string, a version, a header that is a Python dict literal, then the data of one array.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "targets/models/float_formats.h"

namespace assay::float_formats {
namespace {

constexpr std::size_t kMaxHeader = 1 << 20;  // NumPy itself writes less than a hundred bytes for a plain array

struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// The header is a Python dict literal. NumPy evaluates it as Python; here only what NumPy itself writes is read.
class NpyReader {
 public:
  NpyReader(std::string_view text, std::size_t file_offset) : text_(text), file_offset_(file_offset) {}

  /// Returns a sentence that says what is wrong, or an empty string.
  std::string read(NpyHeader& h) {
    if (!take("{")) return expected("'{'");
    while (!take("}")) {
      const auto key = quoted();
      if (!key || !take(":")) return expected("a quoted key and ':'");
      if (std::string problem = value(*key, h); !problem.empty()) return problem;
      if (take(",")) continue;
      if (take("}")) break;
      return expected("',' or '}'");
    }
    skip_blanks();
    return at_ == text_.size() ? std::string() : expected("nothing but padding");
  }

 private:
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \n", at_), text_.size()); }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  std::string expected(std::string_view what) const {
    return fmt::format("the header wants {} at byte {}, but there is {}; {}", what, file_offset_ + at_,
                       quote(text_.substr(at_, 16)), kExportAgain);
  }

  std::optional<std::string> quoted() {
    if (!take("'") && !take("\"")) return std::nullopt;
    const std::size_t end = text_.find(text_[at_ - 1], at_);
    if (end == text_.npos) return std::nullopt;
    std::string inside(text_.substr(at_, end - at_));
    at_ = end + 1;
    return inside;
  }

  std::string value(std::string_view key, NpyHeader& h) {
    if (key == "descr" && !h.descr) {
      h.descr = quoted();
      return h.descr ? "" : expected("a quoted dtype such as '<f4' (structured dtypes are not read)");
    }
    if (key == "fortran_order" && !h.fortran_order) {
      if (take("False"))
        h.fortran_order = false;
      else if (take("True"))
        h.fortran_order = true;
      return h.fortran_order ? "" : expected("True or False");
    }
    if (key == "shape" && !h.shape) return shape(h.shape.emplace());
    return fmt::format("the header has the key {} before byte {}, which is unknown or stands there twice; {}",
                       quote(key), file_offset_ + at_, kExportAgain);
  }

  std::string shape(Shape& dims) {
    if (!take("(")) return expected("a tuple of dimensions");
    while (!take(")")) {
      std::int64_t dim = 0;
      skip_blanks();
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) return expected("a dimension from 0 to 2^63 - 1");
      if (dims.size() == kMaxRank) return expected(fmt::format("at most {} dimensions", kMaxRank));
      dims.push_back(dim);
      at_ = static_cast<std::size_t>(end - text_.data());
      if (take(",")) continue;
      if (take(")")) break;
      return expected("',' or ')'");
    }
    return {};
  }

  std::string_view text_;
  std::size_t file_offset_;
  std::size_t at_ = 0;
};

std::string check_npy_header(const NpyHeader& h) {
  if (!h.descr || !h.fortran_order || !h.shape) {
    return fmt::format("the header lacks the key {}; {}",
                       !h.descr           ? "descr"
                       : !h.fortran_order ? "fortran_order"
                                          : "shape",
                       kExportAgain);
  }
  if (*h.descr != "<f4" && *h.descr != "<f2") {
    return fmt::format("the dtype is {}, but '<f4' and '<f2' are read; save it again with .astype('<f4')",
                       quote(*h.descr));
  }
  if (*h.fortran_order) {
    return "the array is in Fortran order, but row-major order is read; save numpy.ascontiguousarray(a) instead";
  }
  return {};
}

}  // namespace

std::string read_npy(const std::string& name, Bytes file, std::vector<FloatTensor>& tensors) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!as_text(file).starts_with(kMagic))
    return fmt::format("byte 0 does not start the magic string of .npy; {}", kFetchAgain);
  if (file.size() < 12) return fmt::format("the file ends at byte {}, inside the header; {}", file.size(), kFetchAgain);
  const int major = std::to_integer<int>(file[6]), minor = std::to_integer<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return fmt::format("the version at byte 6 is {}.{}, but 1.0, 2.0 and 3.0 are read; save it again with numpy.save",
                       major, minor);
  }
  const std::size_t header_start = major == 1 ? 10 : 12;
  const auto length = static_cast<std::size_t>(little_endian(file.subspan(8, header_start - 8)));
  if (length > kMaxHeader || length > file.size() - header_start) {
    return fmt::format("the header at byte {} claims {} bytes, but {} follow and {} are the limit; {}", header_start,
                       length, file.size() - header_start, kMaxHeader, kFetchAgain);
  }
  NpyHeader h;
  NpyReader reader(as_text(file.subspan(header_start, length)), header_start);
  if (std::string problem = reader.read(h); !problem.empty()) return problem;
  if (std::string problem = check_npy_header(h); !problem.empty()) return problem;

  const Format format = *h.descr == "<f4" ? Format::f32 : Format::f16;
  const auto count = checked_count(*h.shape);
  if (!count)
    return fmt::format("the shape {} has more elements than any file holds; {}", show(*h.shape), kExportAgain);
  if (*count == 0) return fmt::format("the shape {} has no elements; give a file with at least one", show(*h.shape));
  const std::size_t data_start = header_start + length;
  const std::uint64_t needed = *count * (format == Format::f32 ? 4 : 2);
  if (needed != file.size() - data_start) {
    return fmt::format("the data at byte {} has {} bytes, but shape {} of {} needs {}; {}", data_start,
                       file.size() - data_start, show(*h.shape), *h.descr, needed, kFetchAgain);
  }
  if (h.shape->empty()) h.shape = Shape{1};
  tensors.push_back({name, format, *h.shape, data_start, file.subspan(data_start)});
  return {};
}

}  // namespace assay::float_formats
