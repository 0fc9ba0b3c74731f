/* Tensors in files: .npy, an ONNX TensorProto in .pb, and raw bytes */
#ifndef TW_RUNNER_FILES_H
#define TW_RUNNER_FILES_H
#include "elements.h"

int ends_with(const char* text, const char* ending);
int file_exists(const char* path);
/* Reads a .npy or .pb file. Ends the program where the file is neither, or damaged. */
tw_array read_array(const char* path);
/* Reads the file's bytes as elements of that shape. */
tw_array read_raw(const char* path, int32_t dtype, const int64_t* dims, int32_t rank);
void write_npy(const char* path, const tw_array* array);
#endif
