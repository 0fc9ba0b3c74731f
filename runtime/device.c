/* What generated code calls to use a device, and the life of a context's devices. After a failure the rest of the run is skipped. */
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

void tw_device_launch(const tw_env* env, int32_t index, int32_t launch, const int64_t* arguments) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK) device->status = device->desc->driver->launch(device, launch, arguments);
}

void tw_device_write(const tw_env* env, int32_t index, int64_t at, const void* from, int64_t bytes) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK && bytes) device->status = device->desc->driver->write(device, at, from, bytes);
}

void tw_device_read(const tw_env* env, int32_t index, int64_t at, void* to, int64_t bytes) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK && bytes) device->status = device->desc->driver->read(device, at, to, bytes);
  if (device->status == TW_OK) device->status = device->desc->driver->wait(device);   /* the processor reads it next */
}

void tw_device_wait(const tw_env* env, int32_t index) {
  tw_device* device = &env->devices[index];
  if (device->status == TW_OK) device->status = device->desc->driver->wait(device);
}

tw_status tw_devices_open(tw_device* devices, const uint8_t* weights, tw_text* error) {
  for (uint64_t i = 0; i < tw_model.device_count; ++i) {
    tw_device* device = &devices[i];
    device->desc = &tw_model.devices[i];
    device->error = error;
    tw_status status = device->desc->driver->open(device, weights + device->desc->weights_offset);
    if (status != TW_OK) return status;
  }
  return TW_OK;
}

tw_status tw_devices_reserve(tw_device* devices, const int64_t* symbols) {
  for (uint64_t i = 0; i < tw_model.device_count; ++i) {
    tw_device* device = &devices[i];
    uint64_t bytes = device->desc->arena_bytes(symbols);
    device->status = TW_OK;
    memset(&device->stats, 0, sizeof device->stats);
    if (bytes <= device->arena_bytes) continue;
    tw_status status = device->desc->driver->reserve(device, bytes);
    if (status != TW_OK) return status;
    device->arena_bytes = bytes;
  }
  return TW_OK;
}

tw_status tw_devices_finish(tw_device* devices) {
  tw_status status = TW_OK;
  for (uint64_t i = 0; i < tw_model.device_count; ++i) {
    tw_device* device = &devices[i];
    tw_status last = device->desc->driver->wait(device);   /* also after a failure: nothing may use the caller's memory later */
    if (device->status == TW_OK) device->status = last;
    if (status == TW_OK) status = device->status;
  }
  return status;
}

void tw_devices_close(tw_device* devices) {
  for (uint64_t i = 0; i < tw_model.device_count; ++i)
    if (devices[i].desc) devices[i].desc->driver->close(&devices[i]);
}
