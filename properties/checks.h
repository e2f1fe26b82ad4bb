// The checks behind the catalogue, and what they share. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/ask.h"
#include "properties/property.h"

namespace assay {

// ------------------------------------------------------------------------------------------- verdicts

inline Verdict pass() { return {}; }
inline Verdict not_applicable() { return {Outcome::not_applicable, {}, {}, {}, 0}; }
inline Verdict unsupported() { return {Outcome::unsupported, {}, {}, {}, 0}; }
Verdict fail(std::string kind, std::string legal, std::string got, std::size_t index = 0);

/// A reply that cannot be judged: nothing to judge, or an error where the scheme has an answer.
std::optional<Verdict> no_answer(const Reply& reply);

/// Where two replies to the same question first differ, in words; nothing if they are the same.
std::optional<Verdict> difference(const Case& c, const Reply& expected, const Reply& got, std::string_view kind);

std::string show(const Options& options, const QParams& q);
std::string show(const Counts& counts);

// ------------------------------------------------------------------------------------------- qparams to judge by

bool zero_point_is_code(const Options& options, std::int32_t zero_point);
bool tensor_scale_is_right_kind(const Case& c, const QParams& q);
/// Scale and zero point are such that codes and values under them have a meaning.
bool usable(const Case& c, const QParams& q);

/// The qparams under which the target quantizes this case: given ones, or those it chose that can be judged by.
struct Chosen {
  std::optional<Verdict> none;
  std::vector<QParams> qparams;
};
Chosen usable_qparams(const Target& target, const Case& c);

/// Judges both ways of asking with the same function of (reply, kind prefix).
template <typename Judge>
Verdict both_paths(const Target& target, const Case& c, Judge judge) {
  bool asked = false;
  for (const Path path : {Path::separate, Path::fused}) {
    const Reply reply = ask(target, c, path);
    if (reply.status == Status::unsupported) continue;
    if (auto verdict = no_answer(reply)) return *verdict;
    asked = true;
    if (std::optional<Verdict> verdict = judge(reply, path == Path::fused ? "fused_" : "")) return *verdict;
  }
  return asked ? pass() : unsupported();
}

/// The same question, as far as choosing qparams goes.
Case choosing(const Case& c);

// ------------------------------------------------------------------------------------------- the checks

using Check = Verdict(const Target& target, const Case& c, const Oracle& oracle);

// check_memory.cpp
Check in_bounds, deterministic, environment_kept;
// check_qparams.cpp
Check scale_positive_finite, zero_point_in_range, dtype_preserved, fix_changes_nothing_else;
// check_codes.cpp
Check nan_free, saturates, monotone, zero_exact, pack_round_trip;
// check_round_trip.cpp
Check constant_block, range_includes_zero, round_trip, full_range, requantize_stable;
// check_symmetry.cpp
Check sign_symmetric, scale_equivariant;
// check_sameness.cpp
Check position_independent, isa_agree;
// check_legal.cpp
Check legal_counts, legal_qparams, legal_codes, legal_values, requantize_exact;

}  // namespace assay
