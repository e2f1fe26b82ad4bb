#include "targets/models/float_tensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>

#include "targets/models/float_formats.h"

namespace assay {

namespace float_formats {

std::string quote(std::string_view text, std::size_t limit) {
  std::string shown = "'";
  for (const char c : text.substr(0, limit)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown + (text.size() > limit ? "...'" : "'");
}

std::uint64_t little_endian(Bytes bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::optional<std::uint64_t> checked_count(const Shape& shape) {
  constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;
  std::uint64_t count = 1;
  for (const std::int64_t d : shape) {
    const auto dim = static_cast<std::uint64_t>(d);
    if (dim > kMaxElements || (dim != 0 && count > kMaxElements / dim)) return std::nullopt;
    count *= dim;
  }
  return count;
}

std::string show(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace float_formats

namespace {

using namespace float_formats;

std::string read_raw_f32(const std::string& name, Bytes file, std::vector<FloatTensor>& tensors) {
  if (file.size() % 4 != 0) {
    return fmt::format("the file has {} bytes, which is no multiple of the 4 of an f32; {}", file.size(), kFetchAgain);
  }
  tensors.push_back({name, Format::f32, {static_cast<std::int64_t>(file.size() / 4)}, 0, file});
  return {};
}

std::string system_error() { return std::error_code(errno, std::generic_category()).message(); }

/// Maps a regular file. Returns a sentence that says what is wrong, or an empty string.
std::string map_file(const std::filesystem::path& path, MappedFile& mapping) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer that may never come.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return fmt::format("it cannot be opened ({}); check the path and its permissions", system_error());
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{fd};
  struct stat status = {};
  if (::fstat(fd, &status) != 0)
    return fmt::format("it cannot be examined ({}); copy it to a local disk", system_error());
  if (S_ISDIR(status.st_mode)) return "it is a directory; name one file in it";
  if (!S_ISREG(status.st_mode)) return "it is a pipe or a device; write its content to a file first";
  // An empty file cannot be mapped; the parser says what is wrong with it.
  if (status.st_size == 0) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (start == MAP_FAILED) return fmt::format("it cannot be mapped ({}); copy it to a local disk", system_error());
  mapping = MappedFile(static_cast<const std::byte*>(start), size);
  return {};
}

}  // namespace

// The mapping is private and read-only, so dropping const for munmap changes nothing.
void MappedFile::Unmap::operator()(const std::byte* start) const { ::munmap(const_cast<std::byte*>(start), size); }

Bits pattern(const FloatTensor& tensor, std::size_t i) {
  const auto width = static_cast<std::size_t>(info(tensor.format).width) / 8;
  return little_endian(tensor.bytes.subspan(i * width, width));
}

std::string parse_float_tensors(const std::filesystem::path& path, std::span<const std::byte> bytes,
                                std::vector<FloatTensor>& tensors, std::vector<SkippedTensor>& skipped) {
  const std::filesystem::path extension = path.extension();
  const std::string stem = path.stem().string();
  if (bytes.empty()) return fmt::format("the file is empty; {}", kFetchAgain);
  if (extension == ".safetensors") return read_safetensors(bytes, tensors, skipped);
  if (extension == ".npy") return read_npy(stem, bytes, tensors);
  if (extension == ".f32") return read_raw_f32(stem, bytes, tensors);
  return fmt::format("the extension {} is unknown; give a .safetensors, .npy or .f32 file", quote(extension.string()));
}

std::variant<TensorFile, FileError> open_float_tensors(const std::filesystem::path& path) {
  TensorFile file;
  file.path = path;
  std::string problem = map_file(path, file.mapping);
  if (problem.empty()) problem = parse_float_tensors(path, file.mapping.bytes(), file.tensors, file.skipped);
  if (!problem.empty()) return FileError{fmt::format("{}: {}", quote(path.string(), PATH_MAX), problem)};
  return file;
}

}  // namespace assay
