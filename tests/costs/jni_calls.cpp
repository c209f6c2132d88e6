// SPDX-License-Identifier: Apache-2.0
// A JVM agent that counts calls of the library's native methods, by name. Also marks the log of
// strace, as operations.cpp does.
#include <jvmti.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

jvmtiEnv* jvmti = nullptr;
std::mutex mutex;
std::map<std::string, int> calls;

void JNICALL entered(jvmtiEnv* env, JNIEnv*, jthread, jmethodID method) {
  jboolean isNative = JNI_FALSE;
  env->IsMethodNative(method, &isNative);
  if (!isNative) return;
  jclass type = nullptr;
  char* signature = nullptr;
  char* name = nullptr;
  env->GetMethodDeclaringClass(method, &type);
  env->GetClassSignature(type, &signature, nullptr);
  env->GetMethodName(method, &name, nullptr, nullptr);
  if (std::strncmp(signature, "Lorg/windlass/", 14) == 0 ||
      std::strncmp(signature, "Lorg/bytedeco/", 14) == 0) {
    const std::lock_guard<std::mutex> lock(mutex);
    ++calls[name];
  }
  env->Deallocate(reinterpret_cast<unsigned char*>(signature));
  env->Deallocate(reinterpret_cast<unsigned char*>(name));
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  void* env = nullptr;
  if (vm->GetEnv(&env, JVMTI_VERSION_1_2) != JNI_OK) return JNI_ERR;
  jvmti = static_cast<jvmtiEnv*>(env);
  jvmtiCapabilities wanted = {};
  wanted.can_generate_method_entry_events = 1;
  jvmtiEventCallbacks callbacks = {};
  callbacks.MethodEntry = entered;
  if (jvmti->AddCapabilities(&wanted) != JVMTI_ERROR_NONE ||
      jvmti->SetEventCallbacks(&callbacks, sizeof callbacks) != JVMTI_ERROR_NONE)
    return JNI_ERR;
  return JNI_OK;
}

// Counts from here on.
JNIEXPORT void JNICALL Java_Costs_countCalls(JNIEnv*, jclass) {
  jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, nullptr);
}

// Ends the count. Returns it as "name:count,name:count", or "-".
JNIEXPORT jstring JNICALL Java_Costs_calls(JNIEnv* env, jclass) {
  jvmti->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, nullptr);
  const std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto& [name, count] : calls) {
    text += (text.empty() ? "" : ",") + name + ":" + std::to_string(count);
  }
  calls.clear();
  return env->NewStringUTF(text.empty() ? "-" : text.c_str());
}

JNIEXPORT void JNICALL Java_Costs_mark(JNIEnv* env, jclass, jstring text) {
  const char* characters = env->GetStringUTFChars(text, nullptr);
  // Fails, since the file is not open. strace shows the text.
  if (write(-1, characters, std::strlen(characters)) == 0) std::abort();
  env->ReleaseStringUTFChars(text, characters);
}

}  // extern "C"
