// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/cuda.h"

namespace windlass::cuda {
namespace {

constexpr const char* kUpdate =
    "install a driver for CUDA 13.0 or later, 580 or later as nvidia-smi counts";
constexpr const char* kLost =
    "the process has lost its context on this device: start it again; compute-sanitizer finds "
    "what touched what it shouldn't";
constexpr const char* kCapture =
    "operations of ranks that their hosts wait for can't be captured: run them on a stream that "
    "captures nothing";
constexpr const char* kMps =
    "the MPS service that this process was told to use does not serve it: "
    "look at its log, or end it with 'echo quit | nvidia-cuda-mps-control'";
constexpr const char* kFault = "look for Xid lines in dmesg, and at nvidia-smi -q for its health";
constexpr const char* kAsk = "run windlass doctor, and report it with what that prints";

constexpr Meaning kMeanings[] = {
    {2, 2, WL_RESOURCE, "ask for less, or end what else uses the device's memory"},
    {3, 3, WL_DEVICE, "the driver is not initialised: run nvidia-smi to see why"},
    {4, 4, WL_DEVICE, "the process ends already: close communicators before"},
    {34, 34, WL_UNSUPPORTED,
     "the libcuda.so.1 that is found is the toolkit's stub: have the driver's own found first"},
    {35, 36, WL_UNSUPPORTED, kUpdate},
    {46, 46, WL_RESOURCE,
     "another process has it for itself: see its compute mode by nvidia-smi -q -d COMPUTE"},
    {100, 100, WL_UNSUPPORTED,
     "no device is seen: look at nvidia-smi and at CUDA_VISIBLE_DEVICES, and in a container start "
     "it with its GPUs"},
    {101, 101, WL_UNSUPPORTED, "there is no such device: windlass doctor lists those that are"},
    {102, 102, WL_UNSUPPORTED, "the device has no licence"},
    {200, 200, WL_UNSUPPORTED, kUpdate},
    {209, 209, WL_UNSUPPORTED, "the kernels are for compute capability 8.0 and later"},
    {214, 214, WL_DEVICE, kFault},
    {217, 217, WL_UNSUPPORTED,
     "have ranks on devices that reach one another: windlass doctor says which"},
    {218, 218, WL_UNSUPPORTED, kUpdate},
    {220, 220, WL_DEVICE, kFault},
    {221, 221, WL_UNSUPPORTED, "the driver lacks its compiler, libnvidia-ptxjitcompiler.so"},
    {222, 222, WL_UNSUPPORTED, kUpdate},
    {223, 223, WL_UNSUPPORTED,
     "CUDA_DISABLE_PTX_JIT is set, and the kernels have no code for the device"},
    {226, 226, WL_DEVICE, kLost},
    {304, 304, WL_RESOURCE, "a call of the system failed: look at ulimit -l, ulimit -n and dmesg"},
    {700, 700, WL_DEVICE, kLost},
    {701, 701, WL_RESOURCE, "have fewer ranks share the device"},
    {702, 702, WL_DEVICE,
     "the system ends long kernels on a device with a display: use another one"},
    {709, 709, WL_DEVICE, "another library of the process has reset the device: have it not"},
    {710, 710, WL_DEVICE, kLost},
    {714, 719, WL_DEVICE, kLost},
    {720, 720, WL_RESOURCE,
     "have fewer ranks share the device, or end what else takes its processors"},
    {721, 721, WL_DEVICE, kLost},
    {800, 800, WL_UNSUPPORTED, "the system forbids it: look at the container's rights"},
    {801, 801, WL_UNSUPPORTED, "neither the device nor its driver has it"},
    {802, 802, WL_RESOURCE, "start nvidia-fabricmanager, and wait until nvidia-smi says Completed"},
    {803, 803, WL_UNSUPPORTED, "libcuda.so.1 and the kernel module differ: start the system again"},
    {804, 804, WL_UNSUPPORTED,
     "take cuda-compat out of LD_LIBRARY_PATH: this device does not bear it"},
    {805, 809, WL_RESOURCE, kMps},
    {810, 810, WL_DEVICE,
     "another client of the MPS service has failed, and this one with it: start it again"},
    {900, 908, WL_UNSUPPORTED, kCapture},
};

}  // namespace

Meaning meaningOf(CuResult result) {
  for (const Meaning& each : kMeanings)
    if (each.first <= result && result <= each.last) return each;
  return {-1, -1, WL_DEVICE, kAsk};
}

}  // namespace windlass::cuda
