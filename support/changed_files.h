// Files are mapped, and somebody else may cut one off meanwhile: then there is nothing to read.
#pragma once

namespace tw {

// From now on the process ends with this exit code then, cleans up as end signals do, and says
// which file it was. For programs, before there are threads.
void exit_when_mapped_files_shrink(int code);

}  // namespace tw
