// The choice of scale and zero point for one block, in integers only: exact, and the same in every floating-point
// environment.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "quantizer.h"

namespace quantizer {

struct CodeRange {
  std::int32_t qmin, qmax;
};
CodeRange code_range(const Spec& spec);

/// A scale in its stored form: the bit pattern of a positive finite value of a FloatFormat.
using Pattern = std::uint32_t;
bool is_positive_finite(FloatFormat format, Pattern scale);
float to_float(FloatFormat format, Pattern scale);  ///< exact

/// The scale of a block times that of the tensor, exactly; for float codes.
double scale_in_full(const Spec& spec, Pattern scale);

/// Of Scheme::nvfp4, for the greatest finite magnitude of the tensor.
float tensor_scale_for(float amax);

struct QParams {
  Pattern scale;
  std::int32_t zero_point;
  bool saturates;  ///< hi or lo is more than scale/2 outside what the codes reach
};
QParams choose(const Spec& spec, float hi, float lo);

/// x is finite and more than scale/2 outside what the codes reach.
bool out_of_reach(const Spec& spec, const QParams& qparams, float x);

}  // namespace quantizer
