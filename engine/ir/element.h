// Single elements of tensor constants, between bytes and text.
#pragma once
#include <c10/core/ScalarType.h>

#include <string>

#include "engine/ir/lexer.h"

namespace faultline {

// Whether elements of this dtype are written one by one; others (bit fields, packed ints) only as bytes.
bool hasElementText(c10::ScalarType dtype);

// The element at `bytes` as text: the shortest that reads back to the same bits (NaN: as some NaN).
std::string elementText(c10::ScalarType dtype, const char* bytes);

// Takes one element from the lexer and appends its bytes. Ints must fit the dtype; floats are rounded to it
// once. Throws ReadFailure.
void readElement(Lexer& lexer, c10::ScalarType dtype, std::string& bytes);

// A number with its sign, "inf" or "nan", as a double. Throws ReadFailure when there is none.
double readDoubleFrom(Lexer& lexer);

// The double that `text` (a sign and what a Number token is) stands for; fails at `begin` if it is too large.
double doubleOf(const Lexer& lexer, size_t begin, const std::string& text);

// Whether a number with its sign, "inf" or "nan" comes next.
bool atNumber(Lexer& lexer);

// Whether it is an int: no point, no exponent.
bool atInt(Lexer& lexer);

}  // namespace faultline
