// What the checks share: verdicts, words, and the qparams to judge by.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
Verdict fail(std::string kind, std::string legal, std::string got, std::size_t index) {
  return {Outcome::fail, std::move(kind), std::move(legal), std::move(got), index};
}

std::optional<Verdict> no_answer(const Reply& reply) {
  if (reply.status == Status::unsupported) return unsupported();
  if (reply.status == Status::failed) return fail("refused", "an answer: the scheme accepts this input", "an error");
  return std::nullopt;
}

std::string show(const Options& options, const QParams& q) {
  const std::string text =
      fmt::format("scale {} zero_point {}", assay::show(options.scale_format, q.scale), q.zero_point);
  if (q.tensor_scale == 0) return text;
  return fmt::format("{} tensor_scale {}", text, assay::show(Format::f32, q.tensor_scale));
}

std::string show(const Counts& counts) {
  return fmt::format("nan {} inf {} saturated {}", counts.nan, counts.inf, counts.saturated);
}

bool zero_point_is_code(const Options& options, std::int32_t zero_point) {
  return options.code_format ? zero_point == 0 : is_code(options, zero_point);
}

bool tensor_scale_is_right_kind(const Case& c, const QParams& q) {
  if (!scheme_named(c.scheme)->two_levels) return q.tensor_scale == 0;
  Options options;
  options.scale_format = Format::f32;
  return scale_is_positive_finite(options, q.tensor_scale);
}

bool usable(const Case& c, const QParams& q) {
  return scale_is_positive_finite(c.options, q.scale) && zero_point_is_code(c.options, q.zero_point) &&
         tensor_scale_is_right_kind(c, q);
}

Case choosing(const Case& c) {
  Case choose = c;
  choose.op = Operation::choose_qparams;
  return choose;
}

Chosen usable_qparams(const Target& target, const Case& c) {
  if (takes_qparams(c.op)) return {std::nullopt, c.given};
  const Case choose = choosing(c);
  const Reply reply = ask(target, choose, usual_path(target, choose));
  if (auto verdict = no_answer(reply)) return {verdict, {}};
  Chosen chosen;
  for (const QParams& q : reply.qparams) {
    if (usable(c, q)) chosen.qparams.push_back(q);
  }
  if (chosen.qparams.empty()) chosen.none = not_applicable();
  return chosen;
}

std::optional<Verdict> difference(const Case& c, const Reply& expected, const Reply& got, std::string_view kind) {
  if (expected.status != got.status) return fail(fmt::format("{}_status", kind), "the same status", "another");
  for (std::size_t b = 0; b < expected.qparams.size(); ++b) {
    if (expected.qparams[b] != got.qparams[b]) {
      return fail(fmt::format("{}_qparams", kind), show(c.options, expected.qparams[b]),
                  show(c.options, got.qparams[b]), b);
    }
  }
  for (std::size_t i = 0; i < expected.codes.size(); ++i) {
    if (expected.codes[i] != got.codes[i]) {
      return fail(fmt::format("{}_codes", kind), show_code(c.options, expected.codes[i]),
                  show_code(c.options, got.codes[i]), i);
    }
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!same_bits(c.options.output_format, expected.values[i], got.values[i])) {
      return fail(fmt::format("{}_values", kind), assay::show(c.options.output_format, expected.values[i]),
                  assay::show(c.options.output_format, got.values[i]), i);
    }
  }
  for (std::size_t i = 0; i < expected.packed.size(); ++i) {
    if (expected.packed[i] != got.packed[i]) {
      return fail(fmt::format("{}_packed", kind), fmt::format("packed byte {:02x}", expected.packed[i]),
                  fmt::format("{:02x}", got.packed[i]), i);
    }
  }
  for (std::size_t i = 0; i < expected.unpacked.size(); ++i) {
    if (expected.unpacked[i] != got.unpacked[i]) {
      return fail(fmt::format("{}_unpacked", kind), show_code(c.options, expected.unpacked[i]),
                  show_code(c.options, got.unpacked[i]), i);
    }
  }
  if (expected.counts != got.counts) {
    return fail(fmt::format("{}_counts", kind), show(expected.counts), show(got.counts));
  }
  return std::nullopt;
}

}  // namespace assay
