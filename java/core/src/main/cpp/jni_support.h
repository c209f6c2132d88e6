// SPDX-License-Identifier: Apache-2.0
// What the JNI library needs beside the C ABI: addresses and views of direct memory, the layout of
// the ABI's structs, and what is asked before any generated class is touched: the ABI version, and
// what devices lack. Included once, by the JNI source that JavaCPP generates.
#pragma once

#include <jni.h>
#include <stddef.h>
#include <string.h>

#include "windlass/windlass.h"

struct StructLayout {
  const char* name;
  jint bytes;
};

// "type" with its size and "type.field" with the field's offset, for all structs of windlass.h.
static const StructLayout kStructLayout[] = {
#include "struct_layout.inc"
};

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

// Bytes that kStructLayout has for a name, or -1.
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
