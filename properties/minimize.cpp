#include "properties/minimize.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "oracle/oracle.h"

namespace assay {
namespace {

class Minimizer {
 public:
  Minimizer(Case c, const StillFails& fails, std::size_t budget) : best_(std::move(c)), fails_(fails), left_(budget) {}

  Case run() {
    for (bool better = true; better && left_ > 0;) {
      better = to_one_block();
      better |= fewer_elements();
      better |= plainer_options();
      better |= rounder_numbers();
    }
    return best_;
  }

 private:
  bool keep_if_fails(Case candidate) {
    if (left_ == 0 || candidate == best_ || !valid(candidate)) return false;
    --left_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  static bool valid(const Case& c) {
    return check_case(c).empty() && check_scheme_case(*scheme_named(c.scheme), c).empty();
  }

  std::size_t size() const { return element_count(best_.shape); }

  // A tensor of many blocks fails in one of them, most often: keep that block as a flat case.
  bool to_one_block() {
    if (best_.options.granularity == Granularity::per_tensor && best_.shape.size() == 1) return false;
    const std::vector<Block> blocks = cut(best_.shape, best_.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (keep_if_fails(only_block(blocks[b], b))) return true;
    }
    return false;
  }

  Case only_block(const Block& block, std::size_t index) const {
    Case c = best_;
    c.options.granularity = Granularity::per_tensor;
    c.options.axis = Options{}.axis;
    c.options.block = Options{}.block;
    c.options.block_rows = Options{}.block_rows;
    c.shape = {static_cast<std::int64_t>(block.size())};
    const auto keep = [&](auto& to, const auto& from) {
      if (from.empty()) return;
      to.clear();
      for (std::size_t i = 0; i < block.size(); ++i) to.push_back(from[block.at(i)]);
    };
    keep(c.x, best_.x);
    keep(c.codes, best_.codes);
    keep(c.accumulators, best_.accumulators);
    if (!best_.given.empty()) c.given = {best_.given[index]};
    if (!best_.rescales.empty()) c.rescales = {best_.rescales[index]};
    return c;
  }

  bool fewer_elements() {
    if (best_.options.granularity != Granularity::per_tensor || best_.shape.size() != 1) return false;
    bool better = false;
    for (std::size_t length = size() / 2; length > 0; length /= 2) {
      for (std::size_t start = 0; start + length <= size() && size() > length;) {
        if (keep_if_fails(without(start, length)))
          better = true;
        else
          start += length;
      }
    }
    return better;
  }

  Case without(std::size_t start, std::size_t length) const {
    Case c = best_;
    const auto drop = [&](auto& from) {
      if (from.empty()) return;
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(start);
      from.erase(first, first + static_cast<std::ptrdiff_t>(length));
    };
    drop(c.x);
    drop(c.codes);
    drop(c.accumulators);
    c.shape = {static_cast<std::int64_t>(input_size(c))};
    return c;
  }

  bool plainer_options() {
    const Options plain;
    bool better = false;
    const auto attempt = [&](auto change) {
      Case c = best_;
      change(c.options);
      better |= keep_if_fails(std::move(c));
    };
    attempt([&](Options& o) { o.narrow_range = plain.narrow_range; });
    attempt([&](Options& o) { o.is_signed = plain.is_signed; });
    attempt([&](Options& o) { o.bits = plain.bits; });
    attempt([&](Options& o) { o.packing = plain.packing; });
    attempt([&](Options& o) { o.output_format = plain.output_format; });
    // A pattern of a given scale means another number in another format, so it stays with its format.
    if (best_.given.empty()) attempt([&](Options& o) { o.scale_format = plain.scale_format; });
    return better;
  }

  bool rounder_numbers() {
    bool better = false;
    for (std::size_t i = 0; i < best_.x.size(); ++i) {
      better |= rounder(best_.format, [i](Case& c) -> Bits& { return c.x[i]; });
    }
    for (std::size_t b = 0; b < best_.given.size(); ++b) {
      better |= rounder(best_.options.scale_format, [b](Case& c) -> Bits& { return c.given[b].scale; });
      better |= replace([b](Case& c) -> std::int32_t& { return c.given[b].zero_point; }, 0);
    }
    for (std::size_t i = 0; i < best_.codes.size(); ++i) {
      better |= replace([i](Case& c) -> std::int32_t& { return c.codes[i]; }, 0);
    }
    for (std::size_t i = 0; i < best_.accumulators.size(); ++i) {
      better |= smaller([i](Case& c) -> std::int32_t& { return c.accumulators[i]; });
    }
    for (std::size_t b = 0; b < best_.rescales.size(); ++b) better |= rounder_rescale(b);
    return better;
  }

  bool rounder_rescale(std::size_t b) {
    bool better = smaller([b](Case& c) -> std::int32_t& { return c.rescales[b].bias; });
    better |= smaller([b](Case& c) -> std::int32_t& { return c.rescales[b].zero_point; });
    better |= smaller([b](Case& c) -> std::int32_t& { return c.rescales[b].shift; });
    better |= smaller([b](Case& c) -> std::int64_t& { return c.rescales[b].multiplier; });
    better |= smaller([b](Case& c) -> std::int64_t& { return c.rescales[b].divisor; });
    if (best_.rescales[b].scale != 0)
      better |= rounder(Format::f32, [b](Case& c) -> Bits& { return c.rescales[b].scale; });
    return better;
  }

  // Zero, then with the sign dropped, then with the low bits cleared.
  template <typename Field>
  bool smaller(Field field) {
    using Number = std::remove_reference_t<decltype(field(best_))>;
    const Number now = field(best_);
    if (now == 0) return false;
    if (replace(field, Number{0}) || replace(field, Number{1})) return now != 1;
    if (now < 0 && now != std::numeric_limits<Number>::min() && replace(field, static_cast<Number>(-now))) return true;
    for (int drop = std::numeric_limits<Number>::digits - 1; drop > 0; --drop) {
      const Number rounded = static_cast<Number>(now >> drop << drop);
      if (rounded != 0 && rounded != now && replace(field, rounded)) return true;
    }
    return false;
  }

  template <typename Field, typename Value>
  bool replace(Field field, Value value) {
    Case c = best_;
    field(c) = value;
    return keep_if_fails(std::move(c));
  }

  // Zero, one, then the same number with fewer mantissa bits; never away from a rounder number.
  template <typename Field>
  bool rounder(Format format, Field field) {
    const Bits now = field(best_);
    const Bits one = round_double(format, 1.0);
    if (now == 0 || now == one) return false;
    if (replace(field, Bits{0}) || replace(field, one)) return true;
    if (info(format).precision == 1) return false;
    if (is_nan(format, now)) return replace(field, quiet_nan(format));
    bool better = false;
    if (is_negative(format, now)) better = replace(field, now & ~sign_bit(format));
    for (int drop = info(format).precision - 1; drop > 0; --drop) {
      const Bits mask = (Bits{1} << drop) - 1;
      if ((field(best_) & mask) == 0) break;
      if (replace(field, field(best_) & ~mask)) return true;
    }
    return better;
  }

  Case best_;
  const StillFails& fails_;
  std::size_t left_;
};

}  // namespace

Case minimize(const Case& c, const StillFails& fails, std::size_t budget) { return Minimizer(c, fails, budget).run(); }

}  // namespace assay
