// SPDX-License-Identifier: Apache-2.0
// What the JNI library needs beside the C ABI: addresses and views of direct memory, the layout of
// the ABI's structs, and what is asked before any generated class is touched: the ABI version, and
// what devices lack. Included once, by the JNI source that JavaCPP generates.
#pragma once

#include <jni.h>
#include <stddef.h>
#include <string.h>

#include "windlass/windlass.h"

#define WL_SIZE(type) {#type, static_cast<jint>(sizeof(type))}
#define WL_FIELD(type, field) {#type "." #field, static_cast<jint>(offsetof(type, field))}

struct StructLayout {
  const char* name;
  jint bytes;
};

static const StructLayout kStructLayout[] = {
    WL_SIZE(wl_error_t),
    WL_FIELD(wl_error_t, struct_size),
    WL_FIELD(wl_error_t, code),
    WL_FIELD(wl_error_t, operation),
    WL_FIELD(wl_error_t, observer),
    WL_FIELD(wl_error_t, sequence),
    WL_FIELD(wl_error_t, culprit_count),
    WL_FIELD(wl_error_t, culprits),
    WL_FIELD(wl_error_t, message),
    WL_SIZE(wl_group_config_t),
    WL_FIELD(wl_group_config_t, struct_size),
    WL_FIELD(wl_group_config_t, ranks),
    WL_FIELD(wl_group_config_t, first_sequence),
    WL_FIELD(wl_group_config_t, cores),
    WL_FIELD(wl_group_config_t, deadline_ns),
    WL_FIELD(wl_group_config_t, blocks),
    WL_FIELD(wl_group_config_t, adjust_threads),
    WL_FIELD(wl_group_config_t, device_cores),
    WL_FIELD(wl_group_config_t, hosts),
    WL_SIZE(wl_cuda_device_t),
    WL_FIELD(wl_cuda_device_t, struct_size),
    WL_FIELD(wl_cuda_device_t, major),
    WL_FIELD(wl_cuda_device_t, minor),
    WL_FIELD(wl_cuda_device_t, driver_version),
    WL_FIELD(wl_cuda_device_t, multiprocessors),
    WL_FIELD(wl_cuda_device_t, total_bytes),
    WL_FIELD(wl_cuda_device_t, free_bytes),
    WL_FIELD(wl_cuda_device_t, name),
    WL_SIZE(wl_process_t),
    WL_FIELD(wl_process_t, struct_size),
    WL_FIELD(wl_process_t, pid),
    WL_FIELD(wl_process_t, started),
    WL_FIELD(wl_process_t, pid_namespace),
    WL_SIZE(wl_rank_state_t),
    WL_FIELD(wl_rank_state_t, struct_size),
    WL_FIELD(wl_rank_state_t, busy),
    WL_FIELD(wl_rank_state_t, sequence),
    WL_FIELD(wl_rank_state_t, operation),
    WL_FIELD(wl_rank_state_t, awaited),
    WL_FIELD(wl_rank_state_t, closed),
    WL_FIELD(wl_rank_state_t, contested),
    WL_FIELD(wl_rank_state_t, item_owner),
    WL_FIELD(wl_rank_state_t, item_phase),
    WL_FIELD(wl_rank_state_t, item),
    WL_FIELD(wl_rank_state_t, joined),
    WL_FIELD(wl_rank_state_t, lost),
    WL_FIELD(wl_rank_state_t, former),
    WL_FIELD(wl_rank_state_t, pid),
    WL_FIELD(wl_rank_state_t, started),
    WL_FIELD(wl_rank_state_t, pid_namespace),
    WL_FIELD(wl_rank_state_t, host),
    WL_FIELD(wl_rank_state_t, elsewhere),
    WL_SIZE(wl_report_group_t),
    WL_FIELD(wl_report_group_t, struct_size),
    WL_FIELD(wl_report_group_t, ranks),
    WL_FIELD(wl_report_group_t, id),
    WL_FIELD(wl_report_group_t, parent),
    WL_FIELD(wl_report_group_t, made_ns),
    WL_SIZE(wl_peer_memory_t),
    WL_FIELD(wl_peer_memory_t, struct_size),
    WL_FIELD(wl_peer_memory_t, form),
    WL_FIELD(wl_peer_memory_t, why),
    WL_SIZE(wl_kernel_profile_t),
    WL_FIELD(wl_kernel_profile_t, struct_size),
    WL_FIELD(wl_kernel_profile_t, reserved),
    WL_FIELD(wl_kernel_profile_t, kernel),
    WL_FIELD(wl_kernel_profile_t, runs),
    WL_FIELD(wl_kernel_profile_t, cores),
    WL_FIELD(wl_kernel_profile_t, cycles),
    WL_FIELD(wl_kernel_profile_t, overlap_cycles),
    WL_FIELD(wl_kernel_profile_t, flags),
    WL_FIELD(wl_kernel_profile_t, barriers),
    WL_FIELD(wl_kernel_profile_t, notifies),
    WL_FIELD(wl_kernel_profile_t, buffer_bytes),
    WL_FIELD(wl_kernel_profile_t, instructions),
    WL_FIELD(wl_kernel_profile_t, bytes),
    WL_FIELD(wl_kernel_profile_t, busy_cycles),
    WL_SIZE(wl_experts_t),
    WL_FIELD(wl_experts_t, struct_size),
    WL_FIELD(wl_experts_t, dtype),
    WL_FIELD(wl_experts_t, ranks),
    WL_FIELD(wl_experts_t, experts),
    WL_FIELD(wl_experts_t, top_k),
    WL_FIELD(wl_experts_t, alignment),
    WL_FIELD(wl_experts_t, quantised),
    WL_FIELD(wl_experts_t, reserved),
    WL_FIELD(wl_experts_t, hidden),
    WL_FIELD(wl_experts_t, tokens),
    WL_FIELD(wl_experts_t, rows),
    WL_SIZE(wl_experts_layout_t),
    WL_FIELD(wl_experts_layout_t, struct_size),
    WL_FIELD(wl_experts_layout_t, reserved),
    WL_FIELD(wl_experts_layout_t, table_bytes),
    WL_FIELD(wl_experts_layout_t, starts_at),
    WL_FIELD(wl_experts_layout_t, gets_at),
    WL_FIELD(wl_experts_layout_t, buffer_bytes),
    WL_FIELD(wl_experts_layout_t, scales_at),
    WL_FIELD(wl_experts_layout_t, records_at),
    WL_SIZE(wl_record_t),
    WL_FIELD(wl_record_t, struct_size),
    WL_FIELD(wl_record_t, sequence),
    WL_FIELD(wl_record_t, operation),
    WL_FIELD(wl_record_t, algorithm),
    WL_FIELD(wl_record_t, dtype),
    WL_FIELD(wl_record_t, op),
    WL_FIELD(wl_record_t, root),
    WL_FIELD(wl_record_t, code),
    WL_FIELD(wl_record_t, count),
    WL_FIELD(wl_record_t, bytes),
    WL_FIELD(wl_record_t, entered_ns),
    WL_FIELD(wl_record_t, left_ns),
    WL_FIELD(wl_record_t, waited_ns),
    WL_FIELD(wl_record_t, text),
    WL_SIZE(wl_tensor_t),
    WL_FIELD(wl_tensor_t, struct_size),
    WL_FIELD(wl_tensor_t, dtype),
    WL_FIELD(wl_tensor_t, ndim),
    WL_FIELD(wl_tensor_t, reserved),
    WL_FIELD(wl_tensor_t, data),
    WL_FIELD(wl_tensor_t, shape),
    WL_FIELD(wl_tensor_t, strides),
    WL_SIZE(wl_transfer_config_t),
    WL_FIELD(wl_transfer_config_t, struct_size),
    WL_FIELD(wl_transfer_config_t, reserved),
    WL_FIELD(wl_transfer_config_t, fingerprint),
    WL_FIELD(wl_transfer_config_t, source_bindings),
    WL_FIELD(wl_transfer_config_t, source_binding_words),
    WL_FIELD(wl_transfer_config_t, source_binding_count),
    WL_FIELD(wl_transfer_config_t, target_binding_count),
    WL_FIELD(wl_transfer_config_t, target_bindings),
    WL_FIELD(wl_transfer_config_t, target_binding_words),
    WL_FIELD(wl_transfer_config_t, chunks),
    WL_FIELD(wl_transfer_config_t, chunk_words),
    WL_FIELD(wl_transfer_config_t, chunk_count),
    WL_FIELD(wl_transfer_config_t, stages),
    WL_FIELD(wl_transfer_config_t, stage_words),
    WL_FIELD(wl_transfer_config_t, stage_count),
    WL_SIZE(wl_floor_config_t),
    WL_FIELD(wl_floor_config_t, struct_size),
    WL_FIELD(wl_floor_config_t, operation),
    WL_FIELD(wl_floor_config_t, ranks),
    WL_FIELD(wl_floor_config_t, iterations),
    WL_FIELD(wl_floor_config_t, bytes),
};

#undef WL_SIZE
#undef WL_FIELD

extern "C" {

JNIEXPORT jint JNICALL Java_org_windlass_internal_NativeLoader_abiVersion(JNIEnv*, jclass) {
  return static_cast<jint>(wl_abi_version());
}

// What `find` misses here; null for nothing. The ABI is called, never pointed to: a call is bound
// when it is made, so that this library loads beside one of another version, and says so.
static jstring refusalOf(JNIEnv* env, int32_t (*find)(wl_error_t*)) {
  wl_error_t error = {};
  error.struct_size = sizeof error;
  return find(&error) == WL_OK ? nullptr : env->NewStringUTF(error.message);
}

JNIEXPORT jstring JNICALL Java_org_windlass_internal_NativeLoader_ascendRefusal(JNIEnv* env, jclass) {
  return refusalOf(env, [](wl_error_t* error) { return wl_ascend_find(error); });
}

JNIEXPORT jstring JNICALL Java_org_windlass_internal_NativeLoader_cudaRefusal(JNIEnv* env, jclass) {
  return refusalOf(env, [](wl_error_t* error) { return wl_cuda_find(error); });
}

JNIEXPORT jobject JNICALL Java_org_windlass_internal_NativeMemory_view(JNIEnv* env, jclass, jlong address,
                                                                       jlong bytes) {
  return env->NewDirectByteBuffer(reinterpret_cast<void*>(address), bytes);
}

JNIEXPORT jlong JNICALL Java_org_windlass_internal_NativeMemory_addressOf(JNIEnv* env, jclass, jobject buffer) {
  return reinterpret_cast<jlong>(env->GetDirectBufferAddress(buffer));
}

// "type" gives its size, "type.field" the field's offset, and an unknown name -1.
JNIEXPORT jint JNICALL Java_org_windlass_internal_NativeStruct_layout(JNIEnv* env, jclass, jstring name) {
  const char* chars = env->GetStringUTFChars(name, nullptr);
  if (chars == nullptr) {
    return -1;
  }
  jint bytes = -1;
  for (const StructLayout& entry : kStructLayout) {
    if (strcmp(entry.name, chars) == 0) {
      bytes = entry.bytes;
      break;
    }
  }
  env->ReleaseStringUTFChars(name, chars);
  return bytes;
}

}  // extern "C"
