// Writes the seeds of the fuzzers, one folder a fuzz target, from the cases of the corpus; or checks that they are
// there and the same.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "targets/fuzz/case_bytes.h"
#include "targets/fuzz/fuzz_body.h"

namespace assay {
namespace {

enum : int { kDiffers = 1, kMisuse = 2, kUnreadable = 3 };

using Path = std::filesystem::path;
using Seeds = std::map<Path, std::string>;  // by path below the folder of all seeds

// A seed must stand for the very case it is made from, or for the choice of qparams that a round trip begins with.
bool can_express(const FuzzTarget& target, const Case& c, const std::vector<std::uint8_t>& bytes) {
  Case wanted = c;
  wanted.source.clear();
  wanted.why.clear();
  const Case decoded = decode_case(bytes, target.space);
  if (c.op == Operation::round_trip && decoded.op == Operation::choose_qparams) wanted.op = decoded.op;
  return decoded == wanted;
}

void add_seeds(const CaseFile& file, const std::string& name, Seeds& seeds) {
  seeds[Path("case_json") / name] = case_json(file);
  const auto bytes = encode_case(file.c);
  if (!bytes) return;
  for (const FuzzTarget& target : fuzz_targets()) {
    if (can_express(target, file.c, *bytes))
      seeds[Path(target.name) / name] = std::string(bytes->begin(), bytes->end());
  }
}

std::string content(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int write(const Seeds& seeds, const Path& folder) {
  // Only what it makes itself: a mistaken folder must not be emptied.
  for (const auto& [name, bytes] : seeds) std::filesystem::remove_all(folder / *name.begin());
  for (const auto& [name, bytes] : seeds) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream out(folder / name, std::ios::binary);
    out << bytes;
    if (out.flush()) continue;
    fmt::print(stderr, "{}: cannot be written\n", (folder / name).string());
    return kUnreadable;
  }
  fmt::print("{} seeds\n", seeds.size());
  return 0;
}

int check(const Seeds& seeds, const Path& folder) {
  std::set<Path> wrong;
  for (const auto& [name, bytes] : seeds) {
    if (!std::filesystem::is_regular_file(folder / name) || content(folder / name) != bytes) wrong.insert(name);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const Path name = entry.path().lexically_relative(folder);
    if (entry.is_regular_file() && !seeds.contains(name)) wrong.insert(name);
  }
  for (const Path& name : wrong) fmt::print(stderr, "{}: not what make_seeds makes\n", (folder / name).string());
  fmt::print("{} seeds, {} wrong\n", seeds.size(), wrong.size());
  return wrong.empty() ? 0 : kDiffers;
}

int run(const Path& cases, const Path& folder, bool only_check) {
  Seeds seeds;
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    const ParseResult parsed = read_case_file(entry.path());
    if (const std::string* sentence = std::get_if<std::string>(&parsed)) {
      fmt::print(stderr, "{}\n", *sentence);
      return kUnreadable;
    }
    add_seeds(std::get<CaseFile>(parsed), entry.path().stem().string(), seeds);
  }
  return only_check ? check(seeds, folder) : write(seeds, folder);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool only_check = !arguments.empty() && arguments.front() == "--check";
  if (arguments.size() != (only_check ? 3 : 2)) {
    fmt::print(stderr, "usage: make_seeds [--check] CASES SEEDS\n");
    return assay::kMisuse;
  }
  try {
    return assay::run(arguments[arguments.size() - 2], arguments.back(), only_check);
  } catch (const std::filesystem::filesystem_error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return assay::kUnreadable;
  }
}
