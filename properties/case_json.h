// The JSON form of a case: the edge where cases become files and files become cases. See corpus/README.md for the keys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "oracle/spec.h"
#include "properties/property.h"

namespace assay {

/// Where a case was found failing.
struct Found {
  std::string target, property, kind, legal, got;
  std::size_t index = 0;
  bool operator==(const Found&) const = default;
};

/// What a faulty system answered; parts that are not recorded stay empty.
struct FaultyAnswer {
  std::vector<Bits> scales;
  std::vector<std::int32_t> zero_points, codes;
  std::vector<Bits> values;
  bool operator==(const FaultyAnswer&) const = default;
};

struct CaseFile {
  Case c;
  std::optional<Found> found;
  std::optional<FaultyAnswer> faulty;
  bool operator==(const CaseFile&) const = default;
};

/// What a text means where it says nothing: the scheme, and options set on top of the defaults of its scheme.
struct CaseDefaults {
  std::string scheme = "assay.symmetric";
  std::vector<std::pair<std::string, std::string>> settings;  ///< (key, value), see set_option
};

/// The case, or one sentence that says what is wrong and where (byte offset or key). Never throws on hostile text;
/// refuses more than 2^24 elements and deep nesting.
using ParseResult = std::variant<CaseFile, std::string>;
ParseResult parse_case(std::string_view text, const CaseDefaults& defaults = {});
/// The same, with the path in front of the sentence.
ParseResult read_case_file(const std::filesystem::path& path);

/// What a failure leaves behind: `assay replay` of it fails the same way, and so does any engine that reads it.
CaseFile case_file_of(const Finding& finding);
/// A file name for a signature: "quantizer_avx2.legal_codes.assay_symmetric.code.json".
std::string file_name_of(std::string_view signature);

/// One line of JSON, keys in a fixed order: parse_case(case_json(f)) == f.
std::string case_json(const CaseFile& file);
/// The same for people and for files, as in corpus/cases: a key a line.
std::string case_json_pretty(const CaseFile& file);

}  // namespace assay
