#include "properties/combination.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace assay {
namespace {

std::string codes_name(const Options& options) {
  if (options.code_format) return std::string(info(*options.code_format).name);
  return fmt::format("{}{}", options.is_signed ? 's' : 'u', options.bits);
}

std::string format_name(const Case& c) {
  if (c.op == Operation::dequantize) return std::string("codes");
  return c.op == Operation::requantize ? std::string("int32") : std::string(info(c.format).name);
}

std::vector<std::string> codes_of(const SchemeInfo& scheme) {
  std::vector<std::string> names;
  Options o = scheme.defaults;
  const auto add = [&] {
    if (check_scheme_options(scheme, o).empty()) names.push_back(codes_name(o));
  };
  if (scheme.codes == CodeKind::floating) {
    for (const Format format : {Format::e4m3fn, Format::e5m2, Format::e2m1}) {
      o.code_format = format;
      add();
    }
    return names;
  }
  for (const bool is_signed : {true, false}) {
    for (const int bits : {2, 3, 4, 5, 6, 7, 8, 16}) {
      o.bits = bits;
      o.is_signed = is_signed;
      add();
    }
  }
  return names;
}

std::vector<std::string> formats_of(const SchemeInfo& scheme) {
  if (scheme.codes == CodeKind::requantized) return {std::string("int32")};
  return {std::string("f32"), std::string("f16"), std::string("bf16"), std::string("codes")};
}

std::vector<std::string> granularities_of(const SchemeInfo& scheme) {
  std::vector<std::string> names;
  for (const Granularity g :
       {Granularity::per_tensor, Granularity::per_axis, Granularity::per_block, Granularity::per_tile}) {
    Options o = scheme.defaults;
    o.granularity = g;
    if (check_scheme_options(scheme, o).empty()) names.emplace_back(to_string(g));
  }
  return names;
}

}  // namespace

std::vector<Combination> combinations_of(std::span<const std::string> schemes) {
  std::vector<Combination> all;
  for (const std::string& name : schemes) {
    const SchemeInfo& scheme = *scheme_named(name);
    for (const std::string& codes : codes_of(scheme)) {
      for (const std::string& format : formats_of(scheme)) {
        for (const std::string& granularity : granularities_of(scheme))
          all.push_back({name, codes, format, granularity, {}, 0});
      }
    }
  }
  return all;
}

std::optional<Case> draw_within(Entropy& e, const Combination& wanted) {
  DrawSpace space;
  space.schemes = {wanted.scheme};
  if (wanted.format == "codes") {
    space.operations = {Operation::dequantize};
  } else if (wanted.format == "int32") {
    space.operations = {Operation::requantize};
  } else {
    space.operations = {Operation::round_trip, Operation::quantize, Operation::choose_qparams};
    space.formats = {*format_named(wanted.format)};
  }
  if (const auto format = format_named(wanted.codes)) {
    space.code_formats = {*format};
  } else {
    space.bits = {std::stoi(wanted.codes.substr(1))};
  }
  std::erase_if(space.granularities, [&](Granularity g) { return to_string(g) != wanted.granularity; });
  std::vector<Combination> only = {wanted};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const Case c = draw_case(e, space).c;
    if (&combination_of(c, only) == &only.front() && only.size() == 1) return c;
    only.resize(1);
  }
  return std::nullopt;
}

Combination& combination_of(const Case& c, std::vector<Combination>& all) {
  const std::string codes = codes_name(c.options), format = format_name(c);
  const std::string_view granularity = to_string(c.options.granularity);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Combination& one) {
    return one.scheme == c.scheme && one.codes == codes && one.format == format && one.granularity == granularity;
  });
  if (found != all.end()) return *found;
  // A case of the corpus may be about a format that is not drawn, such as f64.
  return all.emplace_back(Combination{c.scheme, codes, format, std::string(granularity), {}, 0});
}

}  // namespace assay
