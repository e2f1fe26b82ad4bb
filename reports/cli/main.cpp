// The assay command: what may be written on the command line, and what happens to errors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <functional>

#include "properties/nearest_name.h"
#include "reports/cli/build_info.h"
#include "reports/cli/verbs.h"

namespace assay::cli {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 all holds, 1 findings, 2 usage, 3 input unreadable or malformed, 4 internal error,\n"
    "5 incomplete (something required did not run).";

// One value each time the flag is given, so that what follows is not swallowed.
template <typename T>
void add_repeatable(CLI::App& verb, const char* flag, std::vector<T>& values, const char* help) {
  verb.add_option(flag, values, help)->allow_extra_args(false)->take_all();
}

// The verbs and the arguments they fill.
class CommandLine {
 public:
  CommandLine() {
    app_.name("assay");
    app_.set_version_flag("--version", fmt::format("assay {} ({})", kVersion, kCommit));
    app_.footer(kExitCodes);
    add_audit();
    add_oracle();
    add_replay();
    add_minimize();
    add_explain();
    add_list();
    app_.allow_extras();
  }

  Exit run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& help) {  // --help and --version
      app_.exit(help);
      return Exit::holds;
    } catch (const CLI::ConversionError& error) {
      misused(fmt::format("{}; a whole number from 0 is needed there", error.what()));
    } catch (const CLI::ParseError& error) {
      refuse_extras();  // a mistyped flag is often why another argument seems to be missing
      misused(error.what());
    }
    refuse_extras();
    for (const auto& [verb, action] : verbs_) {
      if (verb->parsed()) return action();
    }
    misused("no verb is given; there are audit, oracle, replay, minimize, explain and list (see assay --help)");
  }

 private:
  CLI::App& add_verb(const char* name, const char* help, std::function<Exit()> action) {
    CLI::App& verb = *app_.add_subcommand(name, help);
    verb.allow_extras();
    verb.footer(kExitCodes);
    verbs_.emplace_back(&verb, std::move(action));
    return verb;
  }

  void add_json(CLI::App& verb, bool& json, const char* help = "print one JSON document instead of text") {
    verb.add_flag("--json", json, help);
  }

  void add_audit() {
    CLI::App& verb = add_verb("audit", "put a quantizer on trial and write report.json, report.html and junit.xml",
                              [this] { return audit(audit_); });
    audit_.corpus = ASSAY_CORPUS_DIR;
    add_repeatable(verb, "--target", audit_.targets, "what is audited (default: quantizer, on every instruction set)");
    add_repeatable(verb, "--scheme", audit_.schemes, "only this scheme (default: all)");
    add_repeatable(verb, "--input", audit_.inputs, "real weights: a .safetensors, .npy or .f32 file");
    add_repeatable(verb, "--set", audit_.settings,
                   "key=value: how the --input tensors are quantized, instead of the usual five ways");
    verb.add_option("--effort", audit_.effort, "quick, standard (default) or release");
    verb.add_option("--out", audit_.out, "folder of the report (default: assay-report)");
    verb.add_option("--seed", audit_.seed, "of the drawn cases (default: 1)");
    verb.add_option("--corpus", audit_.corpus, "folder with cases/ and known.json (default: that of the sources)");
    add_json(verb, audit_.json, "print report.json on stdout instead of the summary");
  }

  void add_oracle() {
    CLI::App& verb = add_verb("oracle", "answer cases from stdin, one JSON object a line, exactly",
                              [this] { return oracle(oracle_); });
    verb.add_option("--scheme", oracle_.scheme, "of lines that name none (default: assay.symmetric)");
    add_repeatable(verb, "--set", oracle_.settings, "key=value: an option of lines that do not set it");
    verb.add_option("--oracle", oracle_.definition, "exact (default), search or fast: three definitions of one answer");
    add_json(verb, oracle_.json, "no effect: the answers are JSON lines anyway");
  }

  void add_replay() {
    CLI::App& verb =
        add_verb("replay", "run cases against targets; fails if a property does", [this] { return replay(replay_); });
    verb.add_option("CASE", replay_.cases, "case files, or folders of them")->required();
    add_repeatable(verb, "--target", replay_.targets,
                   "default: the one the case was found on, else quantizer; 'recorded' is the answer in the file");
    add_repeatable(verb, "--property", replay_.properties, "only this property (default: all)");
    add_json(verb, replay_.json);
  }

  void add_minimize() {
    CLI::App& verb = add_verb("minimize", "shrink a failing case while it fails the same way",
                              [this] { return minimize(minimize_); });
    verb.add_option("CASE", minimize_.file, "a case file")->required();
    verb.add_option("--target", minimize_.target, "default: the one the case was found on, else quantizer");
    verb.add_option("--property", minimize_.property,
                    "default: the one that was found broken, else the first that fails");
    verb.add_option("-o,--out", minimize_.out, "file for the smaller case (default: stdout)");
    verb.add_option("--budget", minimize_.budget, "most evaluations (default: 20000)");
    add_json(verb, minimize_.json, "the case on one line");
  }

  void add_explain() {
    CLI::App& verb =
        add_verb("explain", "one case in exact arithmetic, step by step", [this] { return explain(explain_); });
    verb.add_option("CASE", explain_.file, "a case file")->required();
    add_repeatable(verb, "--element", explain_.elements, "position in the tensor (default: the most instructive)");
    add_repeatable(verb, "--target", explain_.targets,
                   "whose answer is shown beside the legal one (default: quantizer)");
    add_json(verb, explain_.json);
  }

  void add_list() {
    CLI::App& verb =
        add_verb("list", "what there is: targets, schemes, properties, faults or isas", [this] { return list(list_); });
    verb.add_option("WHAT", list_.kind, "targets, schemes, properties, faults or isas")->required();
    add_json(verb, list_.json);
  }

  CLI::App* verb_on_line() {
    for (const auto& [verb, action] : verbs_) {
      if (verb->parsed()) return verb;
    }
    return nullptr;
  }

  void refuse_extras() {
    CLI::App* const verb = verb_on_line();
    std::vector<std::string> extras = app_.remaining(true);
    if (extras.empty()) return;
    const std::string& extra = extras.front();
    std::vector<std::string> known;
    if (extra.starts_with("-")) {
      for (const CLI::Option* option : (verb != nullptr ? *verb : app_).get_options()) {
        if (!option->nonpositional()) continue;
        for (const std::string& name : option->get_lnames()) known.push_back(fmt::format("--{}", name));
      }
    } else if (verb == nullptr) {
      for (const auto& [row, action] : verbs_) known.push_back(row->get_name());
    } else {
      misused(fmt::format("{} takes no argument '{}' there", verb->get_name(), extra));
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    misused(unknown(extra.starts_with("-") ? "flag" : "verb", extra.substr(0, extra.find('=')), names));
  }

  CLI::App app_{"Numerical correctness of neural-network quantizers: an exact oracle, properties, fuzzing."};
  std::vector<std::pair<CLI::App*, std::function<Exit()>>> verbs_;
  AuditArguments audit_;
  OracleArguments oracle_;
  ReplayArguments replay_;
  MinimizeArguments minimize_;
  ExplainArguments explain_;
  ListArguments list_;
};

int run(int argc, char** argv) {
  try {
    return static_cast<int>(CommandLine().run(argc, argv));
  } catch (const Failure& failure) {
    fmt::print(stderr, "assay: {}\n", failure.sentence);
    return static_cast<int>(failure.code);
  } catch (const std::exception& error) {
    fmt::print(stderr, "assay: internal error: {}\n", error.what());
    return static_cast<int>(Exit::internal);
  }
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) { return assay::cli::run(argc, argv); }
