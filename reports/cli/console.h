// What the command shares between its verbs: exit codes, the one way to fail, progress, names and files.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/oracle.h"
#include "targets/target.h"

namespace assay::cli {

/// The exit codes of the command; scripts rely on them.
enum class Exit : int {
  holds = 0,
  findings = 1,
  usage = 2,       ///< the command line is wrong
  input = 3,       ///< a file or line cannot be read or is malformed
  internal = 4,    ///< a defect of this program
  incomplete = 5,  ///< something that was required did not run
};

/// Ends the verb: one sentence for stderr and the exit code.
struct Failure {
  Exit code;
  std::string sentence;
};

/// Throws a Failure of Exit::usage.
[[noreturn]] void misused(std::string sentence);

/// How far long work has come, on stderr: one line that is rewritten on a terminal, a plain line every few seconds
/// elsewhere.
class Progress {
 public:
  explicit Progress(bool quiet = false) : quiet_(quiet) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(std::string what, std::uint64_t total);
  void step(std::uint64_t count = 1);
  void clear();

 private:
  void show();

  bool quiet_;
  bool on_screen_ = false;
  std::string what_;
  std::uint64_t done_ = 0, total_ = 0;
  std::chrono::steady_clock::time_point shown_{};
};

/// Rows that an audit puts on trial for a name of the command line ("quantizer": one row for each instruction set).
/// An unknown name is a Failure that proposes the nearest one. Beside targets/all_targets.h there is "scheme:NAME",
/// the oracle's own answers.
std::vector<Target> rows_of(std::string_view name);
/// The one target of this name; "quantizer" is the best instruction set.
Target target_of(std::string_view name);
/// All names, in the order of `list targets`.
std::vector<std::string> all_target_names();
const SchemeInfo& scheme_of(std::string_view name);
/// "unknown target 'x'; the nearest is 'y'".
std::string unknown(std::string_view kind, std::string_view wrong, std::span<const std::string_view> names);

/// Options with the texts of --set applied, each "key=value".
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const std::vector<std::string>& settings);
Options with_settings(Options options, const Settings& settings);

/// The file appears whole or not at all. A Failure of Exit::usage if it cannot be written.
void write_file(const std::filesystem::path& path, std::string_view content);

/// "1 case", "2,000 cases".
std::string counted(std::uint64_t n, std::string_view singular);

}  // namespace assay::cli
