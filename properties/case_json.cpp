#include "properties/case_json.h"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "oracle/oracle.h"
#include "properties/nearest_name.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostElements = std::size_t{1} << 24;
constexpr std::size_t kMostBytes = std::size_t{1} << 29;   // 2^24 patterns of f64 take 19 bytes each
constexpr std::size_t kMostValues = std::size_t{1} << 26;  // x, and the codes and values of a faulty answer
constexpr int kMostDepth = 8;

// What is wrong with the text, on its way out to parse_case.
struct Malformed {
  std::string sentence;
};

// Watches the parser: refuses duplicate keys, which a JSON object silently drops, and depth and numbers of values that
// only hostile text has.
struct Watch {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string last_key;
  std::size_t values = 0;

  void see(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMostDepth)
      throw Malformed{fmt::format("after key '{}': nested deeper than {} levels", last_key, kMostDepth)};
    if (++values > kMostValues)
      throw Malformed{fmt::format("after key '{}': more than {} values in one case", last_key, kMostValues)};
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event != Json::parse_event_t::key) return;
    last_key = parsed.get<std::string>();
    if (!keys.back().insert(last_key).second) throw Malformed{fmt::format("key '{}' stands twice", last_key)};
  }
};

Json parse_json(std::string_view text) {
  if (text.size() > kMostBytes) throw Malformed{fmt::format("the case goes on after byte {}: too large", kMostBytes)};
  Watch watch;
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, const Json& parsed) {
      watch.see(depth, event, parsed);
      return true;
    });
  } catch (const Json::parse_error& e) {
    throw Malformed{fmt::format("not JSON at byte {}", e.byte)};
  } catch (const Json::out_of_range&) {  // "1e999" is JSON, but no double
    throw Malformed{watch.last_key.empty() ? "not a case at byte 1: a number that is too large"
                                           : fmt::format("after key '{}': a number is too large", watch.last_key)};
  }
}

void refuse_unknown(const Json& object, std::string_view where, const std::set<std::string_view>& known) {
  if (!object.is_object()) throw Malformed{fmt::format("{} is not a JSON object", where)};
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) throw Malformed{fmt::format("unknown key '{}' in {}", key, where)};
  }
}

std::string text_at(const Json& object, const char* key, std::string otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_string()) throw Malformed{fmt::format("key '{}' is not text", key)};
  return object[key].get<std::string>();
}

// A single value stands for a list of one, an absent key for an empty list.
std::span<const Json> list_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (!found->is_array()) return {&*found, 1};
  if (found->size() > kMostElements)
    throw Malformed{fmt::format("key '{}' has {} items; at most {} are taken", key, found->size(), kMostElements)};
  return found->get_ref<const Json::array_t&>();
}

std::vector<Bits> patterns_at(const Json& object, const char* key, Format format) {
  std::vector<Bits> patterns;
  patterns.reserve(list_at(object, key).size());
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

// Whole numbers that the type holds: 32 bits, or 64 for multipliers.
template <typename Integer>
std::vector<Integer> integers_at(const Json& object, const char* key) {
  std::vector<Integer> integers;
  for (const Json& item : list_at(object, key)) {
    const bool fits = item.is_number_unsigned()
                          ? std::in_range<Integer>(item.get<std::uint64_t>())
                          : item.is_number_integer() && std::in_range<Integer>(item.get<std::int64_t>());
    if (!fits)
      throw Malformed{
          fmt::format("key '{}', item {}: not a whole number of {} bits", key, integers.size(), 8 * sizeof(Integer))};
    integers.push_back(item.get<Integer>());
  }
  return integers;
}

void read_options(const Json& object, Options& options) {
  if (!object.contains("options")) return;
  if (!object["options"].is_object()) throw Malformed{"key 'options' is not an object"};
  for (const auto& [key, value] : object["options"].items()) {
    if (value.is_structured() || value.is_null())
      throw Malformed{fmt::format("option {}: a {} is no value", key, value.type_name())};
    const std::string text =
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (const std::string problem = set_option(options, key, text); !problem.empty()) throw Malformed{problem};
  }
}

const SchemeInfo& read_scheme(const std::string& name) {
  if (const SchemeInfo* scheme = scheme_named(name)) return *scheme;
  std::vector<std::string_view> names;
  for (const SchemeInfo& row : schemes()) names.push_back(row.name);
  throw Malformed{fmt::format("unknown scheme '{}'; the nearest is '{}'", name, nearest_name(name, names))};
}

Format read_format(const std::string& name) {
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::f64}) {
    if (info(format).name == name) return format;
  }
  throw Malformed{fmt::format("unknown format '{}'; there are f32, f16, bf16, f64", name)};
}

const char* input_key(Operation op) {
  if (op == Operation::dequantize) return "codes";
  return op == Operation::requantize ? "accumulators" : "x";
}

Shape read_shape(const Json& j, const Case& c) {
  const std::size_t elements = input_size(c);
  if (elements == 0) throw Malformed{fmt::format("key '{}' holds no element", input_key(c.op))};
  if (!j.contains("shape")) return {static_cast<std::int64_t>(elements)};
  Shape shape = integers_at<std::int64_t>(j, "shape");
  if (shape.empty()) throw Malformed{"key 'shape' holds no dimension"};
  return shape;
}

// Keys that mean nothing for the operation would be silently lost.
void refuse_keys(const Json& j, const Case& c, std::initializer_list<const char*> keys, std::string_view why) {
  for (const char* key : keys) {
    if (j.contains(key)) throw Malformed{fmt::format("key '{}' is not for {}{}", key, to_string(c.op), why)};
  }
}

std::vector<QParams> read_given(const Json& j, const Case& c) {
  const std::vector<Bits> scales = patterns_at(j, "scale", c.options.scale_format);
  std::vector<std::int32_t> zero_points = integers_at<std::int32_t>(j, "zero_point");
  const std::vector<Bits> tensor_scale = patterns_at(j, "tensor_scale", Format::f32);
  if (tensor_scale.size() > 1) throw Malformed{"key 'tensor_scale' is a list; a tensor has one"};
  if (!j.contains("zero_point")) zero_points.resize(scales.size());
  if (zero_points.size() != scales.size()) throw Malformed{"keys 'scale' and 'zero_point' have different lengths"};
  std::vector<QParams> given;
  for (std::size_t b = 0; b < scales.size(); ++b)
    given.push_back({scales[b], zero_points[b], tensor_scale.empty() ? 0 : tensor_scale.front()});
  return given;
}

// One number of every list for each block; a list that is left out is all `otherwise`.
template <typename Integer>
std::vector<Integer> per_block(const Json& j, const char* key, std::size_t blocks, Integer otherwise) {
  if (!j.contains(key)) return std::vector<Integer>(blocks, otherwise);
  std::vector<Integer> list = integers_at<Integer>(j, key);
  if (list.size() != blocks)
    throw Malformed{fmt::format("key '{}' has {} item{}, but there are {} blocks", key, list.size(),
                                list.size() == 1 ? "" : "s", blocks)};
  return list;
}

std::vector<Rescale> read_rescales(const Json& j, const Case& c) {
  if (std::string problem = check_shape(c.shape, c.options); !problem.empty()) throw Malformed{problem};
  const std::size_t blocks = cut(c.shape, c.options).size();
  std::vector<Rescale> rescales(blocks);
  const Rescale plain;
  const auto bias = per_block(j, "bias", blocks, plain.bias),
             zero_point = per_block(j, "zero_point", blocks, plain.zero_point),
             shift = per_block(j, "shift", blocks, plain.shift);
  const auto multiplier = per_block(j, "multiplier", blocks, plain.multiplier),
             divisor = per_block(j, "divisor", blocks, plain.divisor);
  const std::vector<Bits> scale = patterns_at(j, "scale", Format::f32);
  if (!scale.empty() && scale.size() != blocks)
    throw Malformed{fmt::format("key 'scale' has {} items, but there are {} blocks", scale.size(), blocks)};
  for (std::size_t b = 0; b < blocks; ++b)
    rescales[b] = {bias[b], zero_point[b], multiplier[b], divisor[b], shift[b], scale.empty() ? 0 : scale[b]};
  return rescales;
}

// check_case would refuse these too, but knows no keys.
void refuse_outside(const char* key, std::int32_t value, std::size_t item, const Options& options) {
  if (options.code_format) {
    const bool fits = std::string_view(key) == "zero_point" ? value == 0 : is_code(options, value);
    if (!fits)
      throw Malformed{fmt::format("key '{}', item {}: {} is no finite pattern of {}", key, item, value,
                                  info(*options.code_format).name)};
    return;
  }
  const CodeRange range = code_range(options);
  if (value < range.qmin || value > range.qmax)
    throw Malformed{fmt::format("key '{}', item {}: {} is outside {}..{}", key, item, value, range.qmin, range.qmax)};
}

Operation read_operation(const Json& j, const SchemeInfo& scheme) {
  const Operation usual = scheme.codes == CodeKind::requantized ? Operation::requantize : Operation::round_trip;
  const std::string op = text_at(j, "op", std::string(to_string(usual)));
  if (const auto operation = operation_named(op)) return *operation;
  throw Malformed{
      fmt::format("unknown op '{}'; there are choose_qparams, quantize, dequantize, round_trip and requantize", op)};
}

void read_input(const Json& j, Case& c) {
  for (const char* key : {"x", "codes", "accumulators"}) {
    if (j.contains(key) && std::string_view(key) != input_key(c.op))
      throw Malformed{fmt::format("{} takes '{}', not {}", to_string(c.op), input_key(c.op), key)};
  }
  c.x = patterns_at(j, "x", c.format);
  c.codes = integers_at<std::int32_t>(j, "codes");
  c.accumulators = integers_at<std::int32_t>(j, "accumulators");
  c.shape = read_shape(j, c);
}

void read_parameters(const Json& j, Case& c) {
  if (c.op == Operation::requantize) {
    refuse_keys(j, c, {"tensor_scale"}, "");
    c.rescales = read_rescales(j, c);
    for (std::size_t b = 0; b < c.rescales.size(); ++b)
      refuse_outside("zero_point", c.rescales[b].zero_point, b, c.options);
    return;
  }
  refuse_keys(j, c, {"multiplier", "divisor", "shift", "bias"}, ", which rescales nothing");
  if (!takes_qparams(c.op)) {
    refuse_keys(j, c, {"scale", "zero_point", "tensor_scale"}, ", which chooses its own");
    return;
  }
  c.given = read_given(j, c);
  for (std::size_t b = 0; b < c.given.size(); ++b) refuse_outside("zero_point", c.given[b].zero_point, b, c.options);
}

Case read_case(const Json& j, const CaseDefaults& defaults) {
  Case c;
  c.scheme = text_at(j, "scheme", defaults.scheme);
  const SchemeInfo& scheme = read_scheme(c.scheme);
  c.op = read_operation(j, scheme);
  c.options = scheme.defaults;
  for (const auto& [key, value] : defaults.settings) {
    if (const std::string problem = set_option(c.options, key, value); !problem.empty()) throw Malformed{problem};
  }
  read_options(j, c.options);
  if (const std::string problem = check_scheme_options(scheme, c.options); !problem.empty())
    throw Malformed{fmt::format("key 'options': {}", problem)};
  c.format = read_format(text_at(j, "format", std::string(info(Format::f32).name)));
  read_input(j, c);
  read_parameters(j, c);
  for (std::size_t i = 0; i < c.codes.size(); ++i) refuse_outside("codes", c.codes[i], i, c.options);
  c.source = text_at(j, "source", {});
  c.why = text_at(j, "why", {});
  if (const std::string problem = check_case(c); !problem.empty()) throw Malformed{problem};
  if (const std::string problem = check_scheme_case(scheme, c); !problem.empty()) throw Malformed{problem};
  return c;
}

Found read_found(const Json& f) {
  refuse_unknown(f, "key 'found'", {"target", "property", "kind", "legal", "got", "index"});
  Found found{text_at(f, "target", {}), text_at(f, "property", {}), text_at(f, "kind", {}),
              text_at(f, "legal", {}),  text_at(f, "got", {}),      0};
  if (!f.contains("index")) return found;
  if (!f["index"].is_number_unsigned()) throw Malformed{"key 'index' of 'found' is not a whole number from 0"};
  found.index = f["index"].get<std::size_t>();
  return found;
}

FaultyAnswer read_faulty(const Json& f, const Options& options) {
  refuse_unknown(f, "key 'faulty'", {"scale", "zero_point", "codes", "values"});
  return {patterns_at(f, "scale", options.scale_format), integers_at<std::int32_t>(f, "zero_point"),
          integers_at<std::int32_t>(f, "codes"), patterns_at(f, "values", options.output_format)};
}

CaseFile read_file(const Json& j, const CaseDefaults& defaults) {
  if (!j.is_object()) throw Malformed{"not a case at byte 1: a case is a JSON object"};
  refuse_unknown(j, "the case",
                 {"op", "scheme", "options", "format", "shape", "x", "codes", "accumulators", "scale", "zero_point",
                  "tensor_scale", "multiplier", "divisor", "shift", "bias", "source", "why", "found", "faulty"});
  CaseFile file;
  file.c = read_case(j, defaults);
  if (j.contains("found")) file.found = read_found(j["found"]);
  if (j.contains("faulty")) file.faulty = read_faulty(j["faulty"], file.c.options);
  return file;
}

// A sentence may quote the text: keep it one line, printable, and short.
std::string tidy(std::string_view sentence) {
  constexpr std::size_t kMostLetters = 300;
  std::string tidied;
  for (const char c : sentence) {
    if (tidied.size() >= kMostLetters && (c & 0xc0) != 0x80) return tidied + "...";  // not inside a character
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      tidied += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      tidied += c;
  }
  return tidied;
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
    const bool bare = value == "true" || value == "false" || (value[0] >= '0' && value[0] <= '9');
    j[key] = bare ? Json::parse(value) : Json(value);
  }
  return j;
}

void add_given(Json& j, const Case& c) {
  Json scales = Json::array(), zero_points = Json::array();
  for (const QParams& q : c.given) {
    scales.push_back(to_hex(c.options.scale_format, q.scale));
    zero_points.push_back(q.zero_point);
  }
  j["scale"] = single_or_list(scales);
  j["zero_point"] = single_or_list(zero_points);
  if (c.given.front().tensor_scale != 0) j["tensor_scale"] = to_hex(Format::f32, c.given.front().tensor_scale);
}

void add_rescales(Json& j, const Case& c) {
  const auto add = [&](const char* key, auto number) {
    Json list = Json::array();
    for (const Rescale& r : c.rescales) list.push_back(number(r));
    j[key] = single_or_list(list);
  };
  if (c.rescales.front().scale != 0) {
    add("scale", [](const Rescale& r) { return to_hex(Format::f32, r.scale); });
  }
  add("multiplier", [](const Rescale& r) { return r.multiplier; });
  add("divisor", [](const Rescale& r) { return r.divisor; });
  add("shift", [](const Rescale& r) { return r.shift; });
  add("bias", [](const Rescale& r) { return r.bias; });
  add("zero_point", [](const Rescale& r) { return r.zero_point; });
}

Json to_json(const CaseFile& file) {
  const Case& c = file.c;
  Json j = {{"op", to_string(c.op)},
            {"scheme", c.scheme},
            {"options", options_json(c.options)},
            {"format", info(c.format).name},
            {"shape", c.shape}};
  if (c.op == Operation::dequantize) {
    j["codes"] = c.codes;
  } else if (c.op == Operation::requantize) {
    j["accumulators"] = c.accumulators;
  } else {
    j["x"] = hex_list(c.format, c.x);
  }
  if (!c.given.empty()) add_given(j, c);
  if (!c.rescales.empty()) add_rescales(j, c);
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
  return j;
}

std::string line_of(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A space after each comma and colon, which dump() only gives together with line breaks.
std::string spaced(const Json& j) {
  if (!j.is_structured()) return line_of(j);
  std::string text;
  for (const auto& [key, value] : j.items()) {
    if (!text.empty()) text += ", ";
    if (j.is_object()) text += line_of(Json(key)) + ": ";
    text += spaced(value);
  }
  return j.is_object() ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace

ParseResult parse_case(std::string_view text, const CaseDefaults& defaults) {
  try {
    return read_file(parse_json(text), defaults);
  } catch (const Malformed& malformed) {
    return tidy(malformed.sentence);
  } catch (const std::bad_alloc&) {
    return "the case does not fit into memory";
  }
}

ParseResult read_case_file(const std::filesystem::path& path) {
  const auto problem = [&](std::string_view sentence) { return tidy(fmt::format("{}: {}", path.string(), sentence)); };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return problem("is a directory, not a case");
  std::ifstream in(path, std::ios::binary);
  if (!in) return problem("cannot be read");
  // In pieces and up to a limit: the path may be a device without an end.
  std::string text;
  std::vector<char> piece(std::size_t{1} << 16);
  while (text.size() <= kMostBytes && in.read(piece.data(), static_cast<std::streamsize>(piece.size())).gcount() > 0)
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return problem("cannot be read to its end");
  ParseResult parsed = parse_case(text);
  if (const std::string* sentence = std::get_if<std::string>(&parsed)) return problem(*sentence);
  return parsed;
}

CaseFile case_file_of(const Finding& finding) {
  CaseFile file{finding.example, {}, {}};
  file.found = Found{finding.target,        finding.property,    finding.verdict.kind,
                     finding.verdict.legal, finding.verdict.got, finding.verdict.index};
  if (file.c.source.empty()) file.c.source = "found by Assay";
  return file;
}

std::string file_name_of(std::string_view signature) {
  std::string name(signature);
  for (char& c : name) {
    if (c == '/') {
      c = '.';
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      c = '_';
    }
  }
  return fmt::format("{}.json", name);
}

std::string case_json(const CaseFile& file) { return line_of(to_json(file)); }

std::string case_json_pretty(const CaseFile& file) {
  std::string text;
  const Json j = to_json(file);
  for (const auto& [key, value] : j.items())
    text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", key, spaced(value));
  return text + "\n}\n";
}

}  // namespace assay
