// The main of the fuzz targets in builds without libFuzzer: runs every file that is named, and every file in a folder
// that is named, judging each by all that the target judges. A failure aborts, as it does under libFuzzer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

enum : int { kUnreadable = 3, kIncomplete = 5 };

using Path = std::filesystem::path;

// In the order of their names, so that two replays do the same.
std::vector<Path> files_of(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const Path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return false;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

int replay_all(const std::vector<Path>& paths) {
  std::size_t inputs = 0;
  for (const Path& path : paths) {
    for (const Path& file : files_of(path)) {
      if (!replay(file)) {
        fmt::print(stderr, "{}: cannot be read\n", file.string());
        return kUnreadable;
      }
      ++inputs;
    }
  }
  fmt::print("{} inputs, {} verdicts, no finding\n", inputs, assay::verdicts_given());
  if (assay::verdicts_given() > 0) return 0;
  fmt::print(stderr, "nothing was judged: name files or folders of inputs that the target under test can answer\n");
  return kIncomplete;
}

}  // namespace

int main(int argc, char** argv) {
  assay::judge_thoroughly();
  try {
    return replay_all({argv + 1, argv + argc});
  } catch (const std::filesystem::filesystem_error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return kUnreadable;
  }
}
