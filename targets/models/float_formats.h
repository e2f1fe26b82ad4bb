// Shared by the readers of this folder and by nobody else: one function per file format, and how they speak of what
// they find. A reader returns a sentence that says what is wrong, or an empty string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "targets/models/float_tensors.h"

namespace assay::float_formats {

using Bytes = std::span<const std::byte>;

std::string read_safetensors(Bytes file, std::vector<FloatTensor>& tensors, std::vector<SkippedTensor>& skipped);
std::string read_npy(const std::string& name, Bytes file, std::vector<FloatTensor>& tensors);

constexpr std::size_t kMaxRank = 64;
constexpr std::string_view kFetchAgain = "the file is damaged or cut short, so fetch or export it again";
constexpr std::string_view kExportAgain = "the file breaks the rules of its format, so export it again";

/// Names come from strangers: shown in quotes, bounded, and with nothing in them that a terminal or a log would obey.
std::string quote(std::string_view text, std::size_t limit = 80);
std::string show(const Shape& shape);

std::uint64_t little_endian(Bytes bytes);
std::string_view as_text(Bytes bytes);
/// Empty if the product passes 2^56 at any point, even if a later dimension is 0. Times 64 bits it still fits 63 bits.
std::optional<std::uint64_t> checked_count(const Shape& shape);

}  // namespace assay::float_formats
