#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "properties/case_json.h"
#include "reports/cli/verbs.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLine = std::size_t{1} << 29;  // what the case parser takes at most

const Oracle& definition_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Oracle* oracle : oracles()) {
    if (oracle->name == name) return *oracle;
    names.push_back(oracle->name);
  }
  misused(unknown("oracle", name, names));
}

// One block's answer is a plain value, several blocks' a list in their order.
Json one_or_list(Json list) { return list.size() == 1 ? list[0] : list; }

Json hex_list(Format format, const std::vector<Bits>& patterns) {
  Json list = Json::array();
  for (const Bits bits : patterns) list.push_back(to_hex(format, bits));
  return list;
}

Json answer_json(const Case& c, const Answer& answer) {
  std::vector<Bits> scales;
  std::vector<std::int32_t> zero_points;
  for (const QParams& q : answer.qparams) {
    scales.push_back(q.scale);
    zero_points.push_back(q.zero_point);
  }
  if (c.op == Operation::requantize) return {{"codes", answer.codes}};
  const Format s = c.options.scale_format, o = c.options.output_format;
  Json j = {{"scale", {{"format", info(s).name}, {"bits", one_or_list(hex_list(s, scales))}}},
            {"zero_point", one_or_list(zero_points)}};
  if (const Bits tensor_scale = answer.qparams.front().tensor_scale; tensor_scale != 0) {
    j["tensor_scale"] = {{"format", info(Format::f32).name}, {"bits", to_hex(Format::f32, tensor_scale)}};
  }
  if (!answer.codes.empty()) j["codes"] = answer.codes;
  if (!answer.values.empty()) j["values"] = {{"format", info(o).name}, {"bits", hex_list(o, answer.values)}};
  j["nan"] = answer.counts.nan;
  j["inf"] = answer.counts.inf;
  j["saturated"] = answer.counts.saturated;
  return j;
}

// False at the end of the input. A line longer than any case is cut there, which the parser then refuses.
bool next_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& buffer = *in.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  int c = buffer.sbumpc();
  if (c == kEnd) return false;
  for (; c != kEnd && c != '\n'; c = buffer.sbumpc()) {
    if (line.size() <= kMostLine) line.push_back(static_cast<char>(c));
  }
  return true;
}

}  // namespace

Exit oracle(const OracleArguments& arguments) {
  CaseDefaults defaults;
  const Oracle& definition = definition_of(arguments.definition);
  defaults.settings = settings_of(arguments.settings);
  if (!arguments.scheme.empty()) {
    const SchemeInfo& scheme = scheme_of(arguments.scheme);
    const std::string problem = check_scheme_options(scheme, with_settings(scheme.defaults, defaults.settings));
    if (!problem.empty()) misused(problem);
    defaults.scheme = scheme.name;
  }
  Exit code = Exit::holds;
  std::string line;
  std::ios::sync_with_stdio(false);
  while (next_line(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const ParseResult parsed = parse_case(line, defaults);
    Json reply;
    if (const auto* sentence = std::get_if<std::string>(&parsed)) {
      reply["error"] = *sentence;
      code = Exit::input;
    } else {
      const Case& c = std::get<CaseFile>(parsed).c;
      reply = answer_json(c, legal_answer(definition, c));
    }
    // Each answer at once: the other side may wait for it before it asks again.
    std::cout << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }
  return code;
}

}  // namespace assay::cli
