// An exit with a message when a mapped file shrinks: reading bytes that another program has cut off
// raises SIGBUS.
#pragma once

namespace tw {

// From here on, SIGBUS in a mapped file names the file, cleans up as end signals do, and ends the
// process with this exit code. Programs call it before they have threads.
void exit_when_mapped_files_shrink(int code);

}  // namespace tw
