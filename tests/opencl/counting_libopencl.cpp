// A libOpenCL.so.1 for tests that counts program builds and live objects, and calls the machine's
// own library for everything. Each argument of OpenCL is a word, so all functions pass on as many
// words as the longest list of arguments has.
#include <dlfcn.h>

#include <cstdint>

namespace {

using Word = intptr_t;
using Any = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

int32_t builds = 0, objects = 0;

Any real(const char* name) {
  static void* library = dlopen(TW_REAL_OPENCL, RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<Any>(dlsym(library, name)) : nullptr;
}

}  // namespace

#define FORWARD(name, more)                                                             \
  extern "C" __attribute__((visibility("default"))) Word name(                          \
      Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j) { \
    more;                                                                               \
    const Any function = real(#name);                                                   \
    return function ? function(a, b, c, d, e, f, g, h, i, j) : -1001; /* no platform */ \
  }
FORWARD(clGetPlatformIDs, )
FORWARD(clGetDeviceIDs, )
FORWARD(clGetDeviceInfo, )
FORWARD(clCreateContext, ++objects)
FORWARD(clCreateCommandQueue, ++objects)
FORWARD(clCreateProgramWithSource, ++objects)
FORWARD(clBuildProgram, ++builds)
FORWARD(clGetProgramBuildInfo, )
FORWARD(clCreateKernel, ++objects)
FORWARD(clCreateBuffer, ++objects)
FORWARD(clSetKernelArg, )
FORWARD(clEnqueueNDRangeKernel, )
FORWARD(clEnqueueWriteBuffer, )
FORWARD(clEnqueueReadBuffer, )
FORWARD(clEnqueueCopyBuffer, )
FORWARD(clGetCommandQueueInfo, )
FORWARD(clFinish, )
FORWARD(clRetainContext, ++objects)
FORWARD(clRetainCommandQueue, ++objects)
FORWARD(clReleaseContext, --objects)
FORWARD(clReleaseCommandQueue, --objects)
FORWARD(clReleaseProgram, --objects)
FORWARD(clReleaseKernel, --objects)
FORWARD(clReleaseMemObject, --objects)

extern "C" __attribute__((visibility("default"))) int32_t tw_opencl_builds() { return builds; }
extern "C" __attribute__((visibility("default"))) int32_t tw_opencl_objects() { return objects; }
