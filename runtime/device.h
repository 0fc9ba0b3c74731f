/* Devices beside the processor. A driver is one table; generated code names those that its model needs, so that a library
 * without devices carries none of them. A device belongs to one context: its queue, its arena, its copy of the weights. */
#ifndef TW_DEVICE_H
#define TW_DEVICE_H
#include "model.h"
#include "text.h"

typedef struct tw_device {
  const tw_device_desc* desc;
  void* state;                /* the driver's */
  uint64_t arena_bytes;
  tw_status status;           /* the first failure since the run began */
  tw_device_stats stats;      /* of the run, kept by drivers that count */
  tw_text* error;             /* its text */
} tw_device;

/* Failures leave a text in device->error. What is enqueued runs in order; write and read may return before they are done, the
 * host's memory stays as it is until `wait`. */
typedef struct tw_driver {
  const char* name;
  tw_status (*open)(tw_device* device, const uint8_t* weights);    /* builds the code and uploads desc->weight_bytes */
  void (*close)(tw_device* device);                                /* also what a failed open left */
  tw_status (*reserve)(tw_device* device, uint64_t arena_bytes);   /* a new arena; the old one's contents are lost */
  tw_status (*write)(tw_device* device, int64_t at, const void* from, int64_t bytes);
  tw_status (*read)(tw_device* device, int64_t at, void* to, int64_t bytes);
  tw_status (*launch)(tw_device* device, int32_t launch, const int64_t* arguments);   /* tw_device_launch documents them */
  tw_status (*wait)(tw_device* device);
} tw_driver;

extern const tw_driver tw_opencl_driver __attribute__((visibility("hidden")));
extern const tw_driver tw_vdla_driver __attribute__((visibility("hidden")));
extern const tw_driver tw_cuda_driver __attribute__((visibility("hidden")));

tw_status tw_device_failed(tw_device* device, const char* what, const char* which, int64_t code);  /* "opencl: what which: code" */
/* For a context's devices: open all (or none), see to their arenas, wait for all and tell the first failure, close all. */
tw_status tw_devices_open(tw_device* devices, const uint8_t* weights, tw_text* error);
tw_status tw_devices_reserve(tw_device* devices, const int64_t* symbols);
tw_status tw_devices_finish(tw_device* devices);
void tw_devices_close(tw_device* devices);
#endif
