/* The functions that generated code calls to use a device, and the life of a context's devices.
 * After a failure the rest of the run is skipped. */
#include "device.h"

tw_status tw_device_failed(tw_device* device, const char* what, const char* which, int64_t code) {
  if (device->status == TW_OK) {
    text_clear(device->error);
    text_add(device->error, "device ");
    text_add(device->error, device->desc->name);
    text_add(device->error, ": ");
    text_add(device->error, what);
    text_add(device->error, which);
    if (code) {
      text_add(device->error, ": error ");
      text_add_number(device->error, code);
    }
  }
  return device->status = TW_E_DEVICE;
}

void* tw_device_state(tw_device* device, uint64_t bytes) {
  device->state = tw_map(bytes);
  device->state_bytes = bytes;
  if (!device->state) tw_device_failed(device, "no memory", "", 0);
  return device->state;
}

void* tw_device_library(tw_device* device, const char* const* names, size_t count,
                        const char* missing) {
  void* library = 0;
  if (!dlopen || !dlsym) {
    tw_device_failed(device, "the program that loads this library has no dlopen", "", 0);
    return 0;
  }
  for (size_t i = 0; i < count && !library; ++i) library = dlopen(names[i], 2 /* RTLD_NOW */);
  if (!library) tw_device_failed(device, missing, names[0], 0);
  return library; /* never closed: drivers do not like to be unloaded */
}

void tw_device_launch(const tw_env* env, int32_t index, int32_t launch, const int64_t* arguments) {
  tw_device* device = &env->devices[index];
  device->in_region = env->workspaces != 0;
  if (device->status == TW_OK)
    device->status = device->desc->driver->launch(device, launch, arguments);
}

void tw_device_move(const tw_env* env, int32_t index, int64_t to, int64_t from, int64_t bytes,
                    int32_t weights) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK && bytes)
    device->status = device->desc->driver->move(device, to, from, bytes, weights);
}

int32_t tw_device_regions(const tw_env* env, int32_t index) {
  env->devices[index].apart = 1;
  return env->devices[index].status;
}

int32_t tw_device_region_ends(const tw_env* env, int32_t index, int32_t sent) {
  if (sent) tw_device_wait(env, index);
  return env->devices[index].status;
}

/* 1: the data of `tensor` are in the device's own memory. *memory is then their start, as the
 * caller gave it. */
static int on_device(const tw_env* env, int32_t tensor, void** memory) {
  if (!tensor || !env->asynchronous || (env->places && env->places[tensor - 1] != TW_DEVICE))
    return 0;
  *memory = tensor <= tw_model->input_count ? env->inputs[tensor - 1]
                                            : env->outputs[tensor - 1 - tw_model->input_count];
  return 1;
}

void tw_device_write(const tw_env* env, int32_t index, int64_t at, const void* from, int64_t bytes,
                     int32_t tensor) {
  tw_device* device = &env->devices[index];
  const tw_driver* driver = device->desc->driver;
  void* memory;
  if (device->status != TW_OK || !bytes) return;
  if (on_device(env, tensor, &memory))
    device->status = driver->copy(device, at, memory,
                                  (int64_t)((uintptr_t)from - (uintptr_t)memory), bytes, 0);
  else device->status = driver->write(device, at, from, bytes);
}

void tw_device_read(const tw_env* env, int32_t index, int64_t at, void* to, int64_t bytes,
                    int32_t tensor) {
  tw_device* device = &env->devices[index];
  const tw_driver* driver = device->desc->driver;
  void* memory;
  if (device->status == TW_OK && bytes) {
    if (on_device(env, tensor, &memory))
      device->status = driver->copy(device, at, memory,
                                    (int64_t)((uintptr_t)to - (uintptr_t)memory), bytes, 1);
    else device->status = driver->read(device, at, to, bytes);
  }
  if (!env->asynchronous) tw_device_wait(env, index); /* the processor reads these bytes next */
}

void tw_device_wait(const tw_env* env, int32_t index) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK) device->status = device->desc->driver->wait(device);
}

/* A queue fits the driver that it names, and a model with one device. */
static tw_status queue_fits(const tw_queue* queue, tw_text* error) {
  const char* driver = tw_model->device_count == 1 ? tw_model->devices[0].driver->name : 0;
  if (!queue || (queue->driver && driver && text_same(queue->driver, driver) &&
                 tw_model->devices[0].driver->copy))
    return TW_OK;
  text_clear(error);
  text_add(error, "options.queue: the model ");
  text_add(error, tw_model->device_count == 0  ? "runs on the processor"
                  : tw_model->device_count > 1 ? "has several devices"
                                               : "takes no such queue: its device's driver is ");
  if (driver) text_add(error, driver);
  return TW_E_ARGUMENT;
}

tw_status tw_devices_open(tw_device* devices, const uint8_t* weights, const tw_queue* queue,
                          tw_text* error) {
  tw_status status = queue_fits(queue, error);
  for (uint64_t i = 0; i < tw_model->device_count && status == TW_OK; ++i) {
    tw_device* device = &devices[i];
    device->desc = &tw_model->devices[i];
    device->error = error;
    status = device->desc->driver->open(device, weights + device->desc->weights_offset, queue);
  }
  return status;
}

static tw_status begin(tw_device* device, const int64_t* symbols, int32_t plain) {
  uint64_t bytes = device->desc->arena_bytes(symbols);
  device->status = TW_OK;
  device->in_region = device->apart = 0;
  memset(&device->stats, 0, sizeof device->stats);
  if (bytes > INT64_MAX) return TW_E_MEMORY; /* more bytes than can be counted */
  if (bytes > device->arena_bytes) {
    tw_status status = device->desc->driver->reserve(device, bytes);
    if (status != TW_OK) return status;
    device->arena_bytes = bytes;
  }
  return device->desc->driver->begin ? device->desc->driver->begin(device, symbols, plain) : TW_OK;
}

tw_status tw_devices_begin(tw_device* devices, const int64_t* symbols, int32_t plain) {
  tw_status status = TW_OK;
  for (uint64_t i = 0; i < tw_model->device_count && status == TW_OK; ++i)
    status = begin(&devices[i], symbols, plain);
  return status;
}

tw_status tw_devices_status(const tw_device* devices) {
  tw_status status = TW_OK;
  for (uint64_t i = 0; i < tw_model->device_count && status == TW_OK; ++i)
    status = devices[i].status;
  return status;
}

tw_status tw_devices_finish(tw_device* devices) {
  for (uint64_t i = 0; i < tw_model->device_count; ++i) {
    tw_device* device = &devices[i];
    tw_status last = device->desc->driver->wait(
        device); /* also after a failure: nothing may use the caller's memory later */
    if (device->status == TW_OK) device->status = last;
  }
  return tw_devices_status(devices);
}

void tw_devices_close(tw_device* devices) {
  for (uint64_t i = 0; i < tw_model->device_count; ++i) {
    tw_device* device = &devices[i];
    if (!device->state) continue;
    device->desc->driver->close(device);
    munmap(device->state, (size_t)device->state_bytes);
  }
}

tw_status tw_devices_whole(tw_text* error) {
  if (tw_model->device_count == 1 && tw_model->host_calls == 0 && tw_model->devices[0].driver->copy)
    return TW_OK;
  text_clear(error);
  if (tw_model->device_count == 0) {
    text_add(error, "no asynchronous run: the model runs on the processor");
  } else if (tw_model->device_count > 1) {
    text_add(error, "no asynchronous run: the model has several devices");
  } else if (tw_model->host_calls == 0) {
    text_add(error, "no asynchronous run: the driver has none: ");
    text_add(error, tw_model->devices[0].driver->name);
  } else {
    text_add(error, "no asynchronous run: ");
    text_add_number(error, (int64_t)tw_model->host_calls);
    text_add(error, " of the model's ");
    text_add_number(error, tw_model->call_count);
    text_add(error, " calls need the processor");
  }
  return TW_E_UNSUPPORTED;
}
