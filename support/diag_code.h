// The kinds of errors.
#pragma once

namespace tw {

enum class DiagCode {
  invalid_argument,  // a flag, a file name, a wrong shape or type given by the user
  io,                // a file that cannot be read or written
  parse,             // text (YAML, IR, schedule) that does not parse
  invalid_model,     // an ONNX file that is damaged or breaks the standard
  unsupported,       // a valid request that this version cannot serve
  illegal_schedule,  // a schedule step that may not be applied here
  mismatch,          // results that differ
  limit,             // a resource limit was met
  not_pinned,        // a tuned schedule that --frozen asks for and no lock has
  damaged,           // a library whose bytes differ from those that were written
  over_budget,       // needs more than its budget allows
};

}  // namespace tw
