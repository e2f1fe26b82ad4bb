#include "properties/run.h"

#include <fmt/format.h>

#include <stdexcept>

#include "properties/minimize.h"

namespace assay {

Verdict judge(const Property& property, const Target& target, const Case& c) {
  const Verdict verdict = check(property, target, c, fast_oracle());
  if (verdict.outcome != Outcome::fail) return verdict;
  const Verdict confirmed = check(property, target, c, exact_oracle());
  if (confirmed.outcome == Outcome::fail) return confirmed;
  // A target that answers differently each time may fail once and pass once: ask the fast oracle again before blaming
  // it.
  if (check(property, target, c, fast_oracle()).outcome != Outcome::fail) return verdict;
  throw std::logic_error(
      fmt::format("the fast oracle rejects what the exact oracle accepts: property {}, {} against {}", property.id,
                  verdict.legal, verdict.got));
}

Finding minimized_finding(const Property& property, const Target& target, const Case& c, const Verdict& verdict,
                          std::size_t budget) {
  const auto still = [&](const Case& candidate) {
    const Verdict v = check(property, target, candidate, fast_oracle());
    return v.outcome == Outcome::fail && v.kind == verdict.kind;
  };
  Finding finding;
  finding.target = target.name;
  finding.property = property.id;
  finding.example = minimize(c, still, budget);
  finding.verdict = judge(property, target, finding.example);
  if (finding.verdict.outcome != Outcome::fail) {
    finding.example = c;
    finding.verdict = verdict;
  }
  // What a case was there to show is seldom what is left of it.
  finding.example.why = fmt::format("The least case found that breaks {} ({}) on {}.", finding.property,
                                    finding.verdict.kind, finding.target);
  return finding;
}

void judge_all(const Target& target, const Case& c,
               const std::function<void(std::size_t property, const Verdict&)>& seen) {
  const std::span<const Property> all = catalogue();
  for (std::size_t p = 0; p < all.size(); ++p) seen(p, judge(all[p], target, c));
}

std::string oracles_disagree(const Case& c) {
  const Answer expected = legal_answer(exact_oracle(), c);
  for (const Oracle* oracle : oracles()) {
    if (legal_answer(*oracle, c) != expected) return fmt::format("oracle {} differs from exact", oracle->name);
  }
  return {};
}

}  // namespace assay
