// replay, minimize and explain: the verbs about single cases.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "oracle/explain.h"
#include "properties/ask.h"
#include "properties/minimize.h"
#include "properties/oracle_target.h"
#include "properties/run.h"
#include "reports/cli/findings.h"
#include "reports/cli/verbs.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRecorded = "recorded";  // the answer that the case file holds
constexpr std::string_view kUsual = "quantizer";

CaseFile read_or_fail(const std::string& path) {
  ParseResult parsed = read_case_file(path);
  if (const auto* sentence = std::get_if<std::string>(&parsed)) throw Failure{Exit::input, *sentence};
  return std::get<CaseFile>(std::move(parsed));
}

void refuse_unknown_target(const std::string& name) {
  if (name != kRecorded) rows_of(name);
}

std::vector<Target> rows_for(const std::string& name, const CaseFile& file) {
  if (name != kRecorded) return rows_of(name);
  if (!file.faulty) return {};
  return {recorded_target(file)};
}

bool is_target(const std::string& name) {
  const std::vector<std::string> names = all_target_names();
  return name == kRecorded || std::find(names.begin(), names.end(), name) != names.end();
}

// Those named on the command line, else the one that the case was found on, else the quantizer.
std::vector<Target> targets_for(const std::vector<std::string>& names, const CaseFile& file) {
  std::vector<Target> targets;
  for (const std::string& name : names) {
    for (Target& row : rows_for(name, file)) targets.push_back(std::move(row));
  }
  if (!names.empty()) return targets;
  if (file.found && !is_target(file.found->target))
    fmt::print(stderr, "assay: found on {}, which is not here; {} takes its place\n", file.found->target, kUsual);
  return rows_for(file.found && is_target(file.found->target) ? file.found->target : std::string(kUsual), file);
}

const Property& property_of(const std::string& name) {
  if (const Property* property = property_named(name)) return *property;
  std::vector<std::string_view> names;
  for (const Property& property : catalogue()) names.push_back(property.id);
  misused(unknown("property", name, names));
}

std::vector<const Property*> properties_of(const std::vector<std::string>& names) {
  std::vector<const Property*> chosen;
  for (const std::string& name : names) chosen.push_back(&property_of(name));
  if (!names.empty()) return chosen;
  for (const Property& property : catalogue()) chosen.push_back(&property);
  return chosen;
}

// ------------------------------------------------------------------------------------------- replay

struct Failed {
  const Property* property;
  Verdict verdict;
};

struct Trial {
  std::string file, target;
  Tally tally;
  std::vector<Failed> failures;
  std::optional<Found> found;  // what the file says was found on this target
  bool reproduced = false;     // and whether it was now
};

Trial replay_one(const std::string& path, const CaseFile& file, const Target& target,
                 const std::vector<const Property*>& properties) {
  Trial trial{path, target.name, {}, {}, {}, false};
  if (file.found && file.found->target == target.name) trial.found = file.found;
  for (const Property* property : properties) {
    Verdict verdict = judge(*property, target, file.c);
    trial.tally.add(verdict.outcome);
    if (verdict.outcome != Outcome::fail) continue;
    if (trial.found && trial.found->property == property->id && trial.found->kind == verdict.kind)
      trial.reproduced = true;
    trial.failures.push_back({property, std::move(verdict)});
  }
  return trial;
}

Json trial_json(const Trial& trial) {
  Json failures = Json::array();
  for (const Failed& f : trial.failures) {
    failures.push_back({{"property", f.property->id},
                        {"kind", f.verdict.kind},
                        {"legal", f.verdict.legal},
                        {"got", f.verdict.got},
                        {"index", f.verdict.index}});
  }
  Json j = {{"file", trial.file},
            {"target", trial.target},
            {"verdict", trial.failures.empty() ? "holds" : "fails"},
            {"pass", trial.tally.pass},
            {"fail", trial.tally.fail},
            {"unsupported", trial.tally.unsupported},
            {"not_applicable", trial.tally.not_applicable},
            {"failures", failures}};
  if (trial.found) j["reproduced"] = trial.reproduced;
  return j;
}

void print_trial(const Trial& trial) {
  fmt::print("{}  {}  {}: {} hold, {} fail", trial.failures.empty() ? "holds" : "FAILS", trial.file, trial.target,
             trial.tally.pass, trial.tally.fail);
  if (trial.tally.unsupported > 0) fmt::print(", {} not offered", trial.tally.unsupported);
  if (trial.tally.not_applicable > 0) fmt::print(", {} not applicable", trial.tally.not_applicable);
  fmt::print("\n");
  for (const Failed& f : trial.failures) {
    fmt::print("  {} ({}), index {}: {}\n    legal  {}\n    got    {}\n", f.property->id, f.verdict.kind,
               f.verdict.index, f.property->statement, f.verdict.legal, f.verdict.got);
  }
  if (!trial.found) return;
  fmt::print("  the recorded finding {} ({}) {}\n", trial.found->property, trial.found->kind,
             trial.reproduced ? "occurs again" : "does not occur any more");
}

// A folder stands for the case files in it.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
    if (files.size() == before) throw Failure{Exit::input, fmt::format("{}: holds no case file (*.json)", path)};
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

// ------------------------------------------------------------------------------------------- explain

struct Voice {
  std::string who;
  std::string says;
};

std::string differences(const Case& c, const Answer& legal, const Reply& got) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> parts;
  std::size_t differing = 0;
  const auto note = [&](std::string part) {
    if (++differing <= kMost) parts.push_back(std::move(part));
  };
  for (std::size_t b = 0; b < std::min(got.qparams.size(), legal.qparams.size()); ++b) {
    if (got.qparams[b] == legal.qparams[b]) continue;
    note(fmt::format("block {}: scale {} zero_point {}", b, show(c.options.scale_format, got.qparams[b].scale),
                     got.qparams[b].zero_point));
  }
  for (std::size_t i = 0; i < std::min(got.codes.size(), legal.codes.size()); ++i) {
    if (got.codes[i] != legal.codes[i]) note(fmt::format("element {}: code {}", i, got.codes[i]));
  }
  for (std::size_t i = 0; i < std::min(got.values.size(), legal.values.size()); ++i) {
    const Format o = c.options.output_format;
    if (!same_bits(o, got.values[i], legal.values[i]))
      note(fmt::format("element {}: value {}", i, show(o, got.values[i])));
  }
  if (differing == 0) return "the legal answer";
  const std::string more =
      differing > kMost ? fmt::format("; and {} more", counted(differing - kMost, "difference")) : "";
  return fmt::format("{}{}", fmt::join(parts, "; "), more);
}

std::vector<Voice> voices(const CaseFile& file, const std::vector<std::string>& names) {
  const Answer legal = legal_answer(exact_oracle(), file.c);
  std::vector<Voice> all;
  for (const Oracle* oracle : oracles()) {
    const bool same = legal_answer(*oracle, file.c) == legal;
    all.push_back({fmt::format("oracle:{}", oracle->name), same ? "the legal answer" : "ANOTHER ANSWER: report this"});
  }
  std::vector<std::string> asked = names;
  if (asked.empty()) {
    asked.emplace_back(kUsual);
    if (file.found && is_target(file.found->target) && file.found->target.find(kUsual) != 0)
      asked.push_back(file.found->target);
    if (file.faulty) asked.emplace_back(kRecorded);
  }
  for (const std::string& name : asked) {
    for (const Target& target : rows_for(name, file)) {
      const Reply reply = ask(target, file.c, usual_path(target, file.c));
      all.push_back({target.name, reply.status == Status::unsupported ? "does not offer this"
                                  : reply.status == Status::failed    ? "an error"
                                                                      : differences(file.c, legal, reply)});
    }
  }
  return all;
}

Json steps_json(const std::vector<Step>& steps) {
  Json list = Json::array();
  for (const Step& s : steps) {
    list.push_back(
        {{"name", s.name}, {"formula", s.formula}, {"fraction", s.fraction}, {"rounded", s.rounded}, {"why", s.why}});
  }
  return list;
}

Json breakpoint_json(const std::optional<Breakpoint>& b, Format format) {
  if (!b) return nullptr;
  return {{"x", show(format, b->x)}, {"bits", to_hex(format, b->x)}, {"code", b->code}, {"threshold", b->threshold}};
}

Json explanation_json(const Case& c, const std::vector<BlockExplanation>& blocks, const std::vector<Voice>& answers) {
  Json j = {{"case", Json::parse(case_json({c, {}, {}}))}, {"blocks", Json::array()}, {"answers", Json::array()}};
  for (const BlockExplanation& b : blocks) {
    Json elements = Json::array();
    for (const ElementExplanation& e : b.elements) {
      elements.push_back({{"index", e.index},
                          {"x", e.x},
                          {"steps", steps_json(e.steps)},
                          {"code", e.code},
                          {"value", e.value},
                          {"below", breakpoint_json(e.below, c.format)},
                          {"above", breakpoint_json(e.above, c.format)},
                          {"why", e.why}});
    }
    j["blocks"].push_back({{"block", b.block},
                           {"steps", steps_json(b.steps)},
                           {"scale", to_hex(c.options.scale_format, b.qparams.scale)},
                           {"zero_point", b.qparams.zero_point},
                           {"elements", elements}});
  }
  for (const Voice& v : answers) j["answers"].push_back({{"who", v.who}, {"says", v.says}});
  return j;
}

}  // namespace

Exit replay(const ReplayArguments& arguments) {
  for (const std::string& name : arguments.targets) refuse_unknown_target(name);
  const std::vector<const Property*> properties = properties_of(arguments.properties);
  Json trials = Json::array();
  std::optional<Failure> unreadable;
  bool failed = false, judged = false;
  for (const std::string& path : files_of(arguments.cases)) {
    const ParseResult parsed = read_case_file(path);
    if (const auto* sentence = std::get_if<std::string>(&parsed)) {
      if (unreadable) fmt::print(stderr, "assay: {}\n", unreadable->sentence);
      unreadable = Failure{Exit::input, *sentence};
      continue;
    }
    const CaseFile& file = std::get<CaseFile>(parsed);
    for (const Target& target : targets_for(arguments.targets, file)) {
      const Trial trial = replay_one(path, file, target, properties);
      failed |= !trial.failures.empty();
      judged |= trial.tally.judged() > 0;
      if (arguments.json)
        trials.push_back(trial_json(trial));
      else
        print_trial(trial);
    }
  }
  if (arguments.json) fmt::print("{}\n", Json{{"trials", trials}}.dump(2));
  if (unreadable) throw *unreadable;
  if (failed) return Exit::findings;
  if (judged) return Exit::holds;
  throw Failure{Exit::incomplete, "nothing was judged: no property asked for applies to what these targets offer"};
}

Exit minimize(const MinimizeArguments& arguments) {
  if (arguments.target == kRecorded)
    misused("--target recorded: an answer on record belongs to its case as it stands; no smaller case has one");
  if (!arguments.target.empty()) refuse_unknown_target(arguments.target);
  const CaseFile file = read_or_fail(arguments.file);
  const std::vector<std::string> names =
      arguments.target.empty() ? std::vector<std::string>{} : std::vector<std::string>{arguments.target};
  std::vector<std::string> wanted;
  if (!arguments.property.empty())
    wanted.push_back(arguments.property);
  else if (file.found && property_named(file.found->property) != nullptr)
    wanted.push_back(file.found->property);
  for (const Target& target : targets_for(names, file)) {
    for (const Property* property : properties_of(wanted)) {
      const Verdict verdict = judge(*property, target, file.c);
      if (verdict.outcome != Outcome::fail) continue;
      Finding finding = minimized_finding(*property, target, file.c, verdict, arguments.budget);
      const std::string text = arguments.json ? fmt::format("{}\n", case_json(case_file_of(finding)))
                                              : case_json_pretty(case_file_of(finding));
      if (arguments.out.empty())
        fmt::print("{}", text);
      else
        write_file(arguments.out, text);
      fmt::print(stderr, "assay: {}: {} to {}\n", signature(finding),
                 counted(std::max(file.c.x.size(), file.c.codes.size()), "element"),
                 std::max(finding.example.x.size(), finding.example.codes.size()));
      return Exit::findings;
    }
  }
  fmt::print(stderr, "assay: {}: holds, so there is nothing to minimize\n", arguments.file);
  return Exit::holds;
}

Exit explain(const ExplainArguments& arguments) {
  constexpr std::size_t kMostElements = 8;
  for (const std::string& name : arguments.targets) refuse_unknown_target(name);
  const CaseFile file = read_or_fail(arguments.file);
  const std::size_t n = element_count(file.c.shape);
  for (const std::size_t element : arguments.elements) {
    if (element >= n)
      misused(fmt::format("--element {}: the case has {}, counted from 0", element, counted(n, "element")));
  }
  const std::vector<BlockExplanation> blocks = assay::explain(file.c, kMostElements, arguments.elements);
  const std::vector<Voice> answers = voices(file, arguments.targets);
  if (arguments.json) {
    fmt::print("{}\n", explanation_json(file.c, blocks, answers).dump(2));
    return Exit::holds;
  }
  fmt::print("{}\nWho answered what\n", explanation_text(file.c, blocks));
  std::size_t width = 0;
  for (const Voice& voice : answers) width = std::max(width, voice.who.size());
  for (const Voice& voice : answers) fmt::print("  {:<{}}  {}\n", voice.who, width, voice.says);
  return Exit::holds;
}

}  // namespace assay::cli
