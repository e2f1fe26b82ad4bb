// Real weights before the targets: every element of every tensor is compared with the oracle's answer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "reports/cli/audit.h"

namespace assay::cli {
namespace {

constexpr Format kInput = Format::f32;  // in which the oracle is asked; narrower tensors are widened, which is exact
constexpr int kTimings = 3;
constexpr std::size_t kRetimed = 64;       // blocks whose time is taken again, at most
constexpr std::size_t kLargeBlock = 4096;  // elements; a failing block above this is first cut down around the element

struct Tensor {
  std::string file, name;
  Format format;  // in the file
  Shape shape;
  std::vector<float> x;
  std::vector<std::byte> original;  // the same in `format`, aligned
};

Tensor load(const TensorFile& file, const FloatTensor& from) {
  Tensor tensor{file.path.filename().string(), from.name, from.format, from.shape, {}, {}};
  tensor.original.assign(from.bytes.begin(), from.bytes.end());
  tensor.x.resize(element_count(from.shape));
  for (std::size_t i = 0; i < tensor.x.size(); ++i) {
    const Bits bits = pattern(from, i);
    tensor.x[i] = from.format == kInput ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                                        : static_cast<float>(to_double(from.format, bits));
  }
  return tensor;
}

Bits bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

// One run of a tensor: its blocks and what the scheme says of them.
struct Trial {
  const Tensor& tensor;
  const InputConfiguration& configuration;
  std::vector<Block> blocks;
  std::vector<QParams> qparams;
  std::vector<std::uint8_t> codes;
  std::vector<float> values;
  Counts counts;
  const Options& options() const { return configuration.options; }
};

// A tensor as a target is given it.
struct Fed {
  Format format;
  const std::byte* x;
};

Fed as_stored(const Tensor& tensor) { return {tensor.format, tensor.original.data()}; }
Fed as_floats(const Tensor& tensor) { return {kInput, reinterpret_cast<const std::byte*>(tensor.x.data())}; }

Request request_of(const Trial& trial, Format format) {
  return {trial.configuration.scheme, trial.options(), format, trial.tensor.shape, 0};
}

std::vector<Bits> block_bits(const Tensor& tensor, const Block& block) {
  std::vector<Bits> bits(block.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = bits_of(tensor.x[block.at(i)]);
  return bits;
}

// The value of every code of one block, made when first asked for: a block has at most 256.
class ValuesOfCodes {
 public:
  ValuesOfCodes(const Options& options, QParams q) : options_(options), q_(q) {}
  float operator()(int code) {
    const auto slot = static_cast<std::uint8_t>(code);
    if (!known_[slot]) {
      values_[slot] = std::bit_cast<float>(static_cast<std::uint32_t>(fast_oracle().dequantize(options_, q_, code)));
      known_[slot] = true;
    }
    return values_[slot];
  }

 private:
  const Options& options_;
  QParams q_;
  float values_[256] = {};
  bool known_[256] = {};
};

void answer_block(Trial& trial, std::size_t b) {
  const Options& options = trial.options();
  const CodeRange range = code_range(options);
  const std::vector<Bits> x = block_bits(trial.tensor, trial.blocks[b]);
  const QParams q = fast_oracle().choose_qparams(trial.configuration.scheme, options, kInput, x, 0);
  trial.qparams[b] = q;
  ValuesOfCodes value_of(options, q);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t at = trial.blocks[b].at(i);
    const int code = fast_oracle().quantize(options, kInput, q, x[i]);
    trial.codes[at] = static_cast<std::uint8_t>(code);
    trial.values[at] = value_of(code);
    trial.counts.nan += is_nan(kInput, x[i]);
    trial.counts.inf += is_inf(kInput, x[i]);
    // Only what lands on an end code can be out of reach.
    if (code == range.qmin || code == range.qmax)
      trial.counts.saturated += fast_oracle().saturated(options, kInput, q, x[i]);
  }
}

Trial answer(const Tensor& tensor, const InputConfiguration& configuration) {
  Trial trial{tensor, configuration, cut(tensor.shape, configuration.options), {}, {}, {}, {}};
  trial.qparams.resize(trial.blocks.size());
  trial.codes.resize(tensor.x.size());
  trial.values.resize(tensor.x.size());
  for (std::size_t b = 0; b < trial.blocks.size(); ++b) answer_block(trial, b);
  return trial;
}

// ------------------------------------------------------------------------------------------- the target's answer

struct Given {
  Status status = Status::ok;
  std::vector<std::byte> scales;
  std::vector<std::int32_t> zero_points;
  std::vector<std::uint8_t> codes;
  std::vector<float> values;
  Counts counts;

  QParams qparams(const Options& options, std::size_t b) const {
    return {load_pattern(scales.data(), options.scale_format, b), zero_points[b], 0};
  }
};

Given room_for(const Trial& trial) {
  Given given;
  given.scales.resize(trial.blocks.size() * byte_width(trial.options().scale_format));
  given.zero_points.resize(trial.blocks.size());
  given.codes.resize(trial.tensor.x.size());
  return given;
}

bool quantize_in_one_call(const Target& target, const Request& request, const void* x, Given& given) {
  if (!target.quantize_dynamic) return false;
  given.status = target.quantize_dynamic(request, x, given.scales.data(), given.zero_points.data(), given.codes.data(),
                                         &given.counts);
  return true;
}

bool quantize_in_two_calls(const Target& target, const Request& request, const void* x, Given& given) {
  if (!target.choose_qparams || !target.quantize) return false;
  given.status = target.choose_qparams(request, x, given.scales.data(), given.zero_points.data(), &given.counts);
  if (given.status != Status::ok) return true;
  given.status =
      target.quantize(request, x, given.scales.data(), given.zero_points.data(), given.codes.data(), &given.counts);
  return true;
}

void dequantize(const Target& target, const Trial& trial, Fed fed, Given& given) {
  if (!target.dequantize || given.status != Status::ok) return;
  given.values.resize(given.codes.size());
  given.status = target.dequantize(request_of(trial, fed.format), given.codes.data(), given.scales.data(),
                                   given.zero_points.data(), given.values.data());
}

struct Answered {
  Given given;
  Fed fed;
  bool separate;  // by choosing and quantizing, which are two calls
};

Answered ask_with(const Trial& trial, const Target& target, Fed fed) {
  Answered answered{room_for(trial), fed, false};
  const Request request = request_of(trial, fed.format);
  answered.separate = quantize_in_two_calls(target, request, fed.x, answered.given);
  if (!answered.separate && !quantize_in_one_call(target, request, fed.x, answered.given))
    answered.given.status = Status::unsupported;
  dequantize(target, trial, fed, answered.given);
  return answered;
}

// In the format of the file; as f32, which is exact, from a target that takes no other.
Answered ask(const Trial& trial, const Target& target) {
  Answered answered = ask_with(trial, target, as_stored(trial.tensor));
  if (answered.given.status != Status::unsupported || trial.tensor.format == kInput) return answered;
  return ask_with(trial, target, as_floats(trial.tensor));
}

// ------------------------------------------------------------------------------------------- comparison

struct Wrong {
  std::uint64_t scales = 0, zero_points = 0, codes = 0, values = 0;
  std::vector<std::size_t> blocks;    // at most one element of each block is told:
  std::vector<std::size_t> elements;  // the first wrong one, or the block's first
};

void compare_block(const Trial& trial, const Given& given, std::size_t b, Wrong& wrong) {
  const Options& options = trial.options();
  const QParams legal = trial.qparams[b], got = given.qparams(options, b);
  const Block& block = trial.blocks[b];
  const bool usable = scale_is_positive_finite(options, got.scale);
  wrong.scales += got.scale != legal.scale;
  wrong.zero_points += got.zero_point != legal.zero_point;
  std::optional<std::size_t> first;
  if (got != legal) first = block.at(0);
  ValuesOfCodes value_of(options, got);
  for (std::size_t i = 0; i < block.size() && usable; ++i) {
    const std::size_t at = block.at(i);
    const int code = load_code(given.codes.data(), options, at);
    const int right = got == legal ? load_code(trial.codes.data(), options, at)
                                   : fast_oracle().quantize(options, kInput, got, bits_of(trial.tensor.x[at]));
    const bool bad_value =
        !given.values.empty() && !same_bits(kInput, bits_of(value_of(code)), bits_of(given.values[at]));
    wrong.codes += code != right;
    wrong.values += bad_value;
    if (!first && (code != right || bad_value)) first = at;
  }
  if (!first) return;
  wrong.blocks.push_back(b);
  wrong.elements.push_back(*first);
}

bool all_legal(const Trial& trial, const Given& given) {
  for (std::size_t b = 0; b < trial.blocks.size(); ++b) {
    if (given.qparams(trial.options(), b) != trial.qparams[b]) return false;
  }
  return given.codes == trial.codes && (given.values.empty() || std::memcmp(given.values.data(), trial.values.data(),
                                                                            trial.values.size() * sizeof(float)) == 0);
}

Wrong compare(const Trial& trial, const Given& given) {
  Wrong wrong;
  if (all_legal(trial, given)) return wrong;
  for (std::size_t b = 0; b < trial.blocks.size(); ++b) compare_block(trial, given, b, wrong);
  return wrong;
}

// A block as a case of its own. A large one is cut down to the element in question, what lies around it, and the ends
// of the range, which decide the qparams.
Case case_of_block(const Trial& trial, std::size_t b, std::size_t element) {
  const Block& block = trial.blocks[b];
  std::vector<Bits> x = block_bits(trial.tensor, block);
  if (x.size() > kLargeBlock) {
    std::vector<Bits> some = {bits_of(trial.tensor.x[element])};
    const auto less = [](Bits a, Bits c) {
      return is_finite(kInput, a) && is_finite(kInput, c) && ordinal(kInput, a) < ordinal(kInput, c);
    };
    const auto [least, greatest] = std::minmax_element(x.begin(), x.end(), less);
    some.insert(some.end(), {*least, *greatest});
    some.insert(some.end(), x.begin(), x.begin() + kLargeBlock);
    x = std::move(some);
  }
  Options options = trial.options();
  options.granularity = Granularity::per_tensor;
  Case c = make_case(Operation::round_trip, trial.configuration.scheme, options, kInput, std::move(x));
  c.source = fmt::format("{}, tensor {}, block {}", trial.tensor.file, trial.tensor.name, b);
  return c;
}

void blame(const Trial& trial, const Wrong& wrong, const Target& target, Findings& findings) {
  constexpr std::size_t kMostBlocks = 8;  // more of the same would have the same signatures
  for (std::size_t i = 0; i < std::min(wrong.blocks.size(), kMostBlocks); ++i) {
    const Case c = case_of_block(trial, wrong.blocks[i], wrong.elements[i]);
    judge_all(target, c, [&](std::size_t p, const Verdict& verdict) {
      if (verdict.outcome == Outcome::fail) findings.add(catalogue()[p], target, c, verdict);
    });
  }
}

// ------------------------------------------------------------------------------------------- errors

// Exact in double but for the division: the product has at most 34 bits and the difference no more, unless the range is
// too large for the scale format. The worst element's error is taken from the oracle in the end.
double steps_off(const Options& options, QParams q, float x, int code) {
  const double scale = to_double(options.scale_format, q.scale);
  return std::fabs(double{x} - static_cast<double>(code - q.zero_point) * scale) / scale;
}

void measure_errors(const Trial& trial, const Given& given, InputEvidence& e) {
  const Options& options = trial.options();
  const CodeRange range = code_range(options);
  e.code_counts.assign(static_cast<std::size_t>(range.qmax - range.qmin) + 1, 0);
  std::optional<std::size_t> worst_of;
  for (std::size_t b = 0; b < trial.blocks.size(); ++b) {
    const QParams q = given.qparams(options, b);
    double squares = 0;
    std::size_t finite = 0;
    for (std::size_t i = 0; i < trial.blocks[b].size(); ++i) {
      const std::size_t at = trial.blocks[b].at(i);
      const int code = load_code(given.codes.data(), options, at);
      if (code >= range.qmin && code <= range.qmax) ++e.code_counts[static_cast<std::size_t>(code - range.qmin)];
      const float x = trial.tensor.x[at];
      if (!std::isfinite(x) || !scale_is_positive_finite(options, q.scale)) continue;
      const double steps = steps_off(options, q, x, code);
      squares += steps * steps;
      ++finite;
      if (worst_of && steps <= e.worst_error_steps) continue;
      e.worst_error_steps = steps;
      e.worst_element = at;
      worst_of = b;
    }
    const double rms = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
    if (rms <= e.worst_block_rms_steps) continue;
    e.worst_block_rms_steps = rms;
    e.worst_block = b;
  }
  if (!worst_of) return;
  const QParams q = given.qparams(options, *worst_of);
  const float x = trial.tensor.x[e.worst_element];
  e.worst_error_steps =
      error_in_steps(options, kInput, q, bits_of(x), load_code(given.codes.data(), options, e.worst_element));
  e.worst_error = e.worst_error_steps * to_double(options.scale_format, q.scale);
}

// ------------------------------------------------------------------------------------------- times

double nanoseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

double best_of(int times, const std::function<void()>& work) {
  double best = nanoseconds(work);
  for (int i = 1; i < times; ++i) best = std::min(best, nanoseconds(work));
  return best;
}

// Choosing qparams and quantizing, as a user would: in one pass where the target has one.
void quantize_usually(const Target& target, const Request& request, const void* x, Given& given) {
  if (!quantize_in_one_call(target, request, x, given)) quantize_in_two_calls(target, request, x, given);
}

void measure_times(const Trial& trial, const Target& target, Fed fed, Given& given, InputEvidence& e) {
  const double whole =
      best_of(kTimings, [&] { quantize_usually(target, request_of(trial, fed.format), fed.x, given); });
  e.nanoseconds_per_element = whole / static_cast<double>(trial.tensor.x.size());
  Options flat = trial.options();
  flat.granularity = Granularity::per_tensor;
  const std::size_t width = byte_width(fed.format);
  std::vector<std::byte> x;
  const auto time_block = [&](std::size_t b, int times) {
    const Block& block = trial.blocks[b];
    x.resize(block.size() * width);
    for (std::size_t i = 0; i < block.size(); ++i) std::memcpy(&x[i * width], fed.x + block.at(i) * width, width);
    const Shape shape = {static_cast<std::int64_t>(block.size())};
    const Request request{trial.configuration.scheme, flat, fed.format, shape};
    return best_of(times, [&] { quantize_usually(target, request, x.data(), given); });
  };
  std::vector<double> times;
  for (std::size_t b = 0; b < trial.blocks.size(); ++b) times.push_back(time_block(b, 1));
  // One reading may be an interrupt: the slowest is believed only once it stays so when read again.
  std::vector<bool> settled(times.size());
  for (std::size_t i = 0; i < kRetimed; ++i) {
    const auto slowest = std::max_element(times.begin(), times.end());
    e.slowest_block = static_cast<std::size_t>(slowest - times.begin());
    e.slowest_block_nanoseconds = *slowest;
    if (settled[e.slowest_block]) break;
    settled[e.slowest_block] = true;
    *slowest = std::min(*slowest, time_block(e.slowest_block, kTimings));
    e.slowest_block_nanoseconds = *slowest;
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  e.median_block_nanoseconds = std::min(*middle, e.slowest_block_nanoseconds);
}

// ------------------------------------------------------------------------------------------- one run

std::string run_name(const Trial& trial, const Target& target) {
  return fmt::format("{}: tensor {} by {} on {}", trial.tensor.file, trial.tensor.name, trial.configuration.scheme,
                     target.name);
}

void run(const Trial& trial, const Target& target, Evidence& evidence, Findings& findings) {
  const Answered answered = ask(trial, target);
  const Given& given = answered.given;
  const Fed fed = answered.fed;
  if (given.status == Status::unsupported) {
    evidence.not_covered.push_back(fmt::format("{}: the target does not offer it.", run_name(trial, target)));
    return;
  }
  InputEvidence e;
  e.file = trial.tensor.file;
  e.tensor = trial.tensor.name;
  e.target = target.name;
  e.scheme = trial.configuration.scheme;
  e.options = trial.options();
  e.format = trial.tensor.format;
  e.shape = trial.tensor.shape;
  e.elements = trial.tensor.x.size();
  e.blocks = trial.blocks.size();
  e.counts = target.counts_special ? given.counts : trial.counts;
  Wrong wrong = compare(trial, given);
  // A refusal is as wrong as a wrong answer: the scheme is total.
  if (given.status == Status::failed) wrong.codes += e.elements;
  Given fused = room_for(trial);
  if (answered.separate && quantize_in_one_call(target, request_of(trial, fed.format), fed.x, fused)) {
    if (fused.status == Status::failed) wrong.codes += e.elements;
    const Wrong other = compare(trial, fused);
    if (wrong.blocks.empty()) wrong = other;
  }
  e.illegal_scales = wrong.scales;
  e.illegal_zero_points = wrong.zero_points;
  e.illegal_codes = wrong.codes;
  e.illegal_values = wrong.values;
  e.illegal_counts = target.counts_special && given.counts != trial.counts ? 1 : 0;
  blame(trial, wrong, target, findings);
  measure_errors(trial, given, e);
  measure_times(trial, target, fed, fused, e);
  evidence.inputs.push_back(std::move(e));
}

}  // namespace

std::vector<InputConfiguration> usual_configurations() {
  Options tensor8;
  Options axis8;
  axis8.granularity = Granularity::per_axis;
  Options unsigned8;
  unsigned8.is_signed = false;
  Options block4;
  block4.bits = 4;
  block4.granularity = Granularity::per_block;
  block4.scale_format = Format::f16;
  Options unsigned4 = block4;
  unsigned4.is_signed = false;
  return {{"assay.symmetric", tensor8},
          {"assay.symmetric", axis8},
          {"assay.asymmetric", unsigned8},
          {"assay.symmetric", block4},
          {"assay.asymmetric", unsigned4}};
}

void audit_inputs(const AuditPlan& plan, const std::vector<Target>& rows, Evidence& evidence, Findings& findings,
                  Progress& progress) {
  std::uint64_t elements = 0;
  for (const TensorFile& file : plan.inputs) {
    for (const FloatTensor& tensor : file.tensors) elements += element_count(tensor.shape);
  }
  progress.start("real weights", elements * plan.configurations.size());
  for (const TensorFile& file : plan.inputs) {
    const std::string name = file.path.filename().string();
    for (const SkippedTensor& skipped : file.skipped)
      evidence.not_covered.push_back(
          fmt::format("{}: tensor {} was left out: {}.", name, skipped.name, skipped.reason));
    if (file.tensors.empty()) evidence.incomplete.push_back(fmt::format("{} holds no tensor to quantize", name));
    for (const FloatTensor& from : file.tensors) {
      const Tensor tensor = load(file, from);
      bool ran = false;
      for (const InputConfiguration& configuration : plan.configurations) {
        progress.step(tensor.x.size());
        if (!check_shape(tensor.shape, configuration.options).empty()) continue;
        // One axis alone is one element a channel: nobody quantizes so.
        if (configuration.options.granularity == Granularity::per_axis && tensor.shape.size() == 1) continue;
        const Trial trial = answer(tensor, configuration);
        for (const Target& row : rows) run(trial, row, evidence, findings);
        ran = true;
      }
      if (!ran) evidence.incomplete.push_back(fmt::format("{}: no configuration fits tensor {}", name, tensor.name));
    }
  }
}

}  // namespace assay::cli
