// Every bound on what the generator makes, with its reason: the search space can be read here.
#pragma once
#include <cstddef>
#include <cstdint>

namespace faultline::limits {

// Small tensors find the same bugs as large ones, quicker, and can be read in a report.
inline constexpr int64_t max_size = 5;
inline constexpr size_t max_rank = 4;
inline constexpr int64_t max_elements = 256;

// A case draws its sizes from a palette this small, so that tensors fit each other by chance.
inline constexpr size_t sizes_per_case = 3;

// Results larger than 2 to this power lead to inf and NaN a few ops later, where only their class can be
// compared.
inline constexpr int max_magnitude = 14;
inline constexpr int max_magnitude_half = 8;  // float16 ends at 65504
inline constexpr uint32_t wild_percent = 4;   // … some are let through: not finite is a case of its own

// Operands of exp and the like: e to the 8 is still far from every limit.
inline constexpr int small_magnitude = 3;
// How often a wish about values (small, positive) is ignored.
inline constexpr uint32_t careless_percent = 8;

// How often a write is kept although backward then throws: eager's error must be everybody's error, but
// teaches little.
inline constexpr uint32_t spoiled_percent = 4;

inline constexpr size_t max_inputs = 9;
inline constexpr uint32_t new_tensor_weight = 4;  // against the two below
inline constexpr uint32_t loose_end_weight =
    8;  // values nobody used yet: what reaches no return has no gradient
inline constexpr uint32_t other_value_weight = 2;
inline constexpr uint32_t recent_value_factor = 2;  // the last few values, so that chains grow deep
inline constexpr size_t recent_values = 4;

inline constexpr size_t max_list = 3;   // tensors in a cat or stack
inline constexpr size_t max_depth = 2;  // If and Loop within each other
inline constexpr int64_t max_trips = 3;
inline constexpr size_t max_runs = 4;
inline constexpr size_t max_returns = 6;

}  // namespace faultline::limits
