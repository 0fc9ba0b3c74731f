/* Devices beside the processor. A driver is one table of functions. Generated code names the
 * drivers that its model needs, so a library without devices carries none of them. A device belongs
 * to one context, with a queue and an arena of its own; code and weights may be shared. */
#ifndef TW_DEVICE_H
#define TW_DEVICE_H
#include "../model.h"
#include "../text.h"

typedef struct tw_device {
  const tw_device_desc* desc;
  void* state; /* memory of the driver */
  uint64_t state_bytes;
  uint64_t arena_bytes;
  tw_status status;      /* the first failure since the run began */
  tw_device_stats stats; /* counts of the run, from drivers that count */
  tw_text* error;        /* text of the failure */
  int32_t in_region;     /* the next launch or copy is a region's, which other runs may not have */
  int32_t apart; /* a region may have run since the last launch; drivers that read this reset it */
} tw_device;

/* Failures leave a text in device->error. Operations run in the order in which they are enqueued.
 * Copies may return before they are done, so the host's memory must stay as it is until `wait`. */
typedef struct tw_driver {
  const char* name;
  /* Builds the code, uploads desc->weight_bytes and enters a queue: the caller's, or one of its own
   * where `queue` is NULL. */
  tw_status (*open)(tw_device* device, const uint8_t* weights, const tw_queue* queue);
  void (*close)(tw_device* device); /* also after a failed open */
  tw_status (*reserve)(tw_device* device,
                       /* Makes a new arena and drops the contents of the old one. */
                       uint64_t arena_bytes);
  tw_status (*write)(tw_device* device, int64_t at, const void* from, int64_t bytes);
  tw_status (*read)(tw_device* device, int64_t at, void* to, int64_t bytes);
  tw_status (*launch)(tw_device* device, int32_t launch,
                      const int64_t* arguments); /* tw_device_launch describes the arguments */
  tw_status (*wait)(tw_device* device);
  /* Copies within the device, to the arena from the weights or the arena. The two ranges do not
   * overlap. */
  tw_status (*move)(tw_device* device, int64_t to, int64_t from, int64_t bytes, int32_t weights);
  /* The functions from here on are optional. `begin` starts a run: its launches and copies outside
   * of regions come in the same order with the same arguments as in other runs with these symbols
   * and this arena. `plain`: each launch runs at once, for a profile. */
  tw_status (*begin)(tw_device* device, const int64_t* symbols, int32_t plain);
  /* Copies between the arena and the caller's memory on the device, from `offset` in it; `out`:
   * from the arena. Without this function no run is asynchronous. */
  tw_status (*copy)(tw_device* device, int64_t at, void* memory, int64_t offset, int64_t bytes,
                    int32_t out);
} tw_driver;

extern const tw_driver tw_opencl_driver __attribute__((visibility("hidden")));
extern const tw_driver tw_vdla_driver __attribute__((visibility("hidden")));
extern const tw_driver tw_cuda_driver __attribute__((visibility("hidden")));

tw_status tw_device_failed(tw_device* device, const char* what, const char* which,
                           int64_t code); /* the text is "device gpu: what which: error code" */
/* For a driver's `open`: sets device->state to zeroed memory that lives until the device is closed.
 * NULL: failed. */
void* tw_device_state(tw_device* device, uint64_t bytes);
/* Opens the first library of `names` that exists. NULL: failed, and the error says `missing`, which
 * names what a machine without these libraries lacks. */
void* tw_device_library(tw_device* device, const char* const* names, size_t count,
                        const char* missing);

/* The devices of a context: open all or none; grow their arenas and begin a run on all; wait for
 * all and return the first failure; close all. */
tw_status tw_devices_open(tw_device* devices, const uint8_t* weights, const tw_queue* queue,
                          tw_text* error);
tw_status tw_devices_begin(tw_device* devices, const int64_t* symbols, int32_t plain);
tw_status tw_devices_status(const tw_device* devices);
tw_status tw_devices_finish(tw_device* devices);
void tw_devices_close(tw_device* devices);
/* TW_OK when a run needs nothing but one device. */
tw_status tw_devices_whole(tw_text* error);
#endif
