#include "properties/case_json.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "oracle/oracle.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = std::size_t{1} << 28;
constexpr int kMostDepth = 8;

// What is wrong with the text, on its way out to parse_case.
struct Malformed {
  std::string sentence;
};

// Refuses duplicate keys, which a JSON object silently drops, and depth, which only hostile text has.
bool keep(int depth, Json::parse_event_t event, const Json& parsed, std::vector<std::set<std::string>>& keys) {
  if (depth > kMostDepth) throw Malformed{fmt::format("the JSON is nested deeper than {} levels", kMostDepth)};
  if (event == Json::parse_event_t::object_start) keys.emplace_back();
  if (event == Json::parse_event_t::object_end) keys.pop_back();
  if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
    throw Malformed{fmt::format("key '{}' stands twice", parsed.get<std::string>())};
  }
  return true;
}

Json parse_json(std::string_view text) {
  if (text.size() > kMostBytes) throw Malformed{"the case is larger than 256 MiB"};
  std::vector<std::set<std::string>> keys;
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, const Json& parsed) {
      return keep(depth, event, parsed, keys);
    });
  } catch (const Json::parse_error& e) {
    throw Malformed{fmt::format("not JSON at byte {}", e.byte)};
  }
}

void refuse_unknown(const Json& object, std::string_view where, const std::set<std::string_view>& known) {
  if (!object.is_object()) throw Malformed{fmt::format("{} is not an object", where)};
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) throw Malformed{fmt::format("unknown key '{}' in {}", key, where)};
  }
}

std::string text_at(const Json& object, const char* key, std::string otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_string()) throw Malformed{fmt::format("key '{}' is not text", key)};
  return object[key].get<std::string>();
}

// A single value stands for a list of one.
std::vector<Json> list_at(const Json& object, const char* key) {
  if (!object.contains(key)) return {};
  if (object[key].is_array()) return object[key].get<std::vector<Json>>();
  return {object[key]};
}

std::vector<Bits> patterns_at(const Json& object, const char* key, Format format) {
  std::vector<Bits> patterns;
  for (const Json& item : list_at(object, key)) {
    const auto bits = item.is_string() ? from_hex(format, item.get_ref<const std::string&>()) : std::nullopt;
    if (!bits) {
      throw Malformed{fmt::format("key '{}', item {}: {} is not a pattern of {} ({} hex digits in quotes)", key,
                                  patterns.size(), item.dump(-1, ' ', true, Json::error_handler_t::replace),
                                  info(format).name, info(format).width / 4)};
    }
    patterns.push_back(*bits);
  }
  return patterns;
}

template <typename Integer>
std::vector<Integer> integers_at(const Json& object, const char* key) {
  std::vector<Integer> integers;
  for (const Json& item : list_at(object, key)) {
    const bool fits = item.is_number_integer() &&
                      (!item.is_number_unsigned() || item.get<std::uint64_t>() < (1u << 31)) &&
                      item.get<std::int64_t>() >= -(std::int64_t{1} << 31);
    if (!fits) throw Malformed{fmt::format("key '{}', item {}: not a whole number of 32 bits", key, integers.size())};
    integers.push_back(item.get<Integer>());
  }
  return integers;
}

void read_options(const Json& object, Options& options) {
  if (!object.contains("options")) return;
  if (!object["options"].is_object()) throw Malformed{"key 'options' is not an object"};
  for (const auto& [key, value] : object["options"].items()) {
    const std::string text =
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (const std::string problem = set_option(options, key, text); !problem.empty()) throw Malformed{problem};
  }
}

Case read_case(const Json& j, const Case& defaults) {
  Case c = defaults;
  const std::string op = text_at(j, "op", std::string(to_string(defaults.op)));
  if (!operation_named(op))
    throw Malformed{fmt::format("unknown op '{}'; there are choose_qparams, quantize, dequantize and round_trip", op)};
  c.op = *operation_named(op);
  c.scheme = text_at(j, "scheme", defaults.scheme);
  const SchemeInfo* scheme = scheme_named(c.scheme);
  if (scheme == nullptr) throw Malformed{fmt::format("unknown scheme '{}'", c.scheme)};
  read_options(j, c.options);
  if (const std::string problem = check_scheme_options(*scheme, c.options); !problem.empty()) throw Malformed{problem};
  const std::string format = text_at(j, "format", std::string(info(defaults.format).name));
  if (!format_named(format)) throw Malformed{fmt::format("unknown format '{}'", format)};
  c.format = *format_named(format);
  c.x = patterns_at(j, "x", c.format);
  c.codes = integers_at<std::int32_t>(j, "codes");
  c.shape = integers_at<std::int64_t>(j, "shape");
  if (c.shape.empty())
    c.shape = {static_cast<std::int64_t>(c.op == Operation::dequantize ? c.codes.size() : c.x.size())};
  const std::vector<Bits> scales = patterns_at(j, "scale", c.options.scale_format);
  std::vector<std::int32_t> zero_points = integers_at<std::int32_t>(j, "zero_point");
  if (zero_points.empty()) zero_points.resize(scales.size());
  if (zero_points.size() != scales.size()) throw Malformed{"keys 'scale' and 'zero_point' have different lengths"};
  for (std::size_t b = 0; b < scales.size(); ++b) c.given.push_back({scales[b], zero_points[b]});
  c.source = text_at(j, "source", {});
  c.why = text_at(j, "why", {});
  if (c.op == Operation::dequantize ? !c.x.empty() : !c.codes.empty()) {
    throw Malformed{fmt::format("{} takes '{}'", op, c.op == Operation::dequantize ? "codes, not x" : "x, not codes")};
  }
  if (const std::string problem = check_case(c); !problem.empty()) throw Malformed{problem};
  return c;
}

CaseFile read_file(const Json& j, const Case& defaults) {
  refuse_unknown(j, "the case",
                 {"op", "scheme", "options", "format", "shape", "x", "codes", "scale", "zero_point", "source", "why",
                  "found", "faulty"});
  CaseFile file;
  file.c = read_case(j, defaults);
  if (j.contains("found")) {
    const Json& f = j["found"];
    refuse_unknown(f, "'found'", {"target", "property", "kind", "legal", "got", "index"});
    const std::vector<std::int64_t> index = integers_at<std::int64_t>(f, "index");
    file.found =
        Found{text_at(f, "target", {}), text_at(f, "property", {}),
              text_at(f, "kind", {}),   text_at(f, "legal", {}),
              text_at(f, "got", {}),    index.empty() || index[0] < 0 ? 0 : static_cast<std::size_t>(index[0])};
  }
  if (j.contains("faulty")) {
    const Json& f = j["faulty"];
    refuse_unknown(f, "'faulty'", {"scale", "zero_point", "codes", "values"});
    file.faulty =
        FaultyAnswer{patterns_at(f, "scale", file.c.options.scale_format), integers_at<std::int32_t>(f, "zero_point"),
                     integers_at<std::int32_t>(f, "codes"), patterns_at(f, "values", file.c.options.output_format)};
  }
  return file;
}

Json hex_list(Format format, const std::vector<Bits>& patterns) {
  Json list = Json::array();
  for (const Bits bits : patterns) list.push_back(to_hex(format, bits));
  return list;
}

// The inverse of list_at: a list of one is written as the single value.
Json single_or_list(const Json& list) { return list.size() == 1 ? list[0] : list; }

Json options_json(const Options& options) {
  Json j = Json::object();
  for (const auto& [key, value] : option_list(options)) {
    const bool bare = key != "scale_format" && key != "output_format" && key != "granularity";
    j[key] = bare ? Json::parse(value) : Json(value);
  }
  return j;
}

}  // namespace

ParsedCase parse_case(std::string_view text, const Case& defaults) {
  try {
    return read_file(parse_json(text), defaults);
  } catch (const Malformed& malformed) {
    return malformed.sentence;
  }
}

ParsedCase read_case_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return fmt::format("{}: cannot be read", path.string());
  ParsedCase parsed = parse_case(text.str());
  if (const std::string* problem = std::get_if<std::string>(&parsed))
    return fmt::format("{}: {}", path.string(), *problem);
  return parsed;
}

std::string print_case(const CaseFile& file) {
  const Case& c = file.c;
  Json j = {{"op", to_string(c.op)},
            {"scheme", c.scheme},
            {"options", options_json(c.options)},
            {"format", info(c.format).name},
            {"shape", c.shape}};
  if (c.op == Operation::dequantize)
    j["codes"] = c.codes;
  else
    j["x"] = hex_list(c.format, c.x);
  if (!c.given.empty()) {
    Json scales = Json::array(), zero_points = Json::array();
    for (const QParams& q : c.given) {
      scales.push_back(to_hex(c.options.scale_format, q.scale));
      zero_points.push_back(q.zero_point);
    }
    j["scale"] = single_or_list(scales);
    j["zero_point"] = single_or_list(zero_points);
  }
  if (!c.source.empty()) j["source"] = c.source;
  if (!c.why.empty()) j["why"] = c.why;
  if (file.found) {
    const Found& f = *file.found;
    j["found"] = {{"target", f.target}, {"property", f.property}, {"kind", f.kind},
                  {"legal", f.legal},   {"got", f.got},           {"index", f.index}};
  }
  if (file.faulty) {
    Json& f = j["faulty"] = Json::object();
    if (!file.faulty->scales.empty())
      f["scale"] = single_or_list(hex_list(c.options.scale_format, file.faulty->scales));
    if (!file.faulty->zero_points.empty()) f["zero_point"] = single_or_list(file.faulty->zero_points);
    if (!file.faulty->codes.empty()) f["codes"] = file.faulty->codes;
    if (!file.faulty->values.empty()) f["values"] = hex_list(c.options.output_format, file.faulty->values);
  }
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay
