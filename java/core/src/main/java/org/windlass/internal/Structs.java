// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** The places of the fields of the C ABI's structs, in bytes, asked once of the compiled header. */
public final class Structs {
  private Structs() {}

  /** A zeroed direct buffer in native order, for structs and arrays of the C ABI. */
  public static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** The text from {@code at} on, of at most {@code room} bytes, that NUL ends. */
  public static String text(ByteBuffer struct, int at, int room) {
    byte[] bytes = new byte[room];
    int length = 0;
    while (length < room && struct.get(at + length) != 0) {
      bytes[length] = struct.get(at + length);
      length++;
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }

  /** {@code wl_error_t}. */
  public static final class Error {
    public static final int SIZE = NativeStruct.bytes("wl_error_t");
    public static final int OPERATION = NativeStruct.offset("wl_error_t", "operation");
    public static final int CULPRIT_COUNT = NativeStruct.offset("wl_error_t", "culprit_count");
    public static final int CULPRITS = NativeStruct.offset("wl_error_t", "culprits");
    public static final int MESSAGE = NativeStruct.offset("wl_error_t", "message");

    private Error() {}
  }

  /** {@code wl_group_config_t}. */
  public static final class GroupConfig {
    public static final int SIZE = NativeStruct.bytes("wl_group_config_t");
    public static final int RANKS = NativeStruct.offset("wl_group_config_t", "ranks");
    public static final int FIRST_SEQUENCE =
        NativeStruct.offset("wl_group_config_t", "first_sequence");
    public static final int CORES = NativeStruct.offset("wl_group_config_t", "cores");
    public static final int DEADLINE_NS = NativeStruct.offset("wl_group_config_t", "deadline_ns");
    public static final int BLOCKS = NativeStruct.offset("wl_group_config_t", "blocks");
    public static final int ADJUST_THREADS =
        NativeStruct.offset("wl_group_config_t", "adjust_threads");
    public static final int HOSTS = NativeStruct.offset("wl_group_config_t", "hosts");

    private GroupConfig() {}
  }

  /** {@code wl_cuda_device_t}. */
  public static final class CudaDevice {
    public static final int SIZE = NativeStruct.bytes("wl_cuda_device_t");
    public static final int MAJOR = NativeStruct.offset("wl_cuda_device_t", "major");
    public static final int MINOR = NativeStruct.offset("wl_cuda_device_t", "minor");
    public static final int DRIVER_VERSION =
        NativeStruct.offset("wl_cuda_device_t", "driver_version");
    public static final int MULTIPROCESSORS =
        NativeStruct.offset("wl_cuda_device_t", "multiprocessors");
    public static final int TOTAL_BYTES = NativeStruct.offset("wl_cuda_device_t", "total_bytes");
    public static final int FREE_BYTES = NativeStruct.offset("wl_cuda_device_t", "free_bytes");
    public static final int NAME = NativeStruct.offset("wl_cuda_device_t", "name");

    private CudaDevice() {}
  }

  /** {@code wl_process_t}. */
  public static final class Process {
    public static final int SIZE = NativeStruct.bytes("wl_process_t");
    public static final int PID = NativeStruct.offset("wl_process_t", "pid");
    public static final int STARTED = NativeStruct.offset("wl_process_t", "started");
    public static final int PID_NAMESPACE = NativeStruct.offset("wl_process_t", "pid_namespace");

    private Process() {}
  }

  /** {@code wl_rank_state_t}. */
  public static final class RankState {
    public static final int SIZE = NativeStruct.bytes("wl_rank_state_t");
    public static final int SEQUENCE = NativeStruct.offset("wl_rank_state_t", "sequence");
    public static final int AWAITED = NativeStruct.offset("wl_rank_state_t", "awaited");
    public static final int CLOSED = NativeStruct.offset("wl_rank_state_t", "closed");
    public static final int CONTESTED = NativeStruct.offset("wl_rank_state_t", "contested");
    public static final int ITEM_OWNER = NativeStruct.offset("wl_rank_state_t", "item_owner");
    public static final int ITEM_PHASE = NativeStruct.offset("wl_rank_state_t", "item_phase");
    public static final int ITEM = NativeStruct.offset("wl_rank_state_t", "item");
    public static final int FORMER = NativeStruct.offset("wl_rank_state_t", "former");
    public static final int PID = NativeStruct.offset("wl_rank_state_t", "pid");
    public static final int STARTED = NativeStruct.offset("wl_rank_state_t", "started");
    public static final int PID_NAMESPACE = NativeStruct.offset("wl_rank_state_t", "pid_namespace");
    public static final int HOST = NativeStruct.offset("wl_rank_state_t", "host");
    public static final int ELSEWHERE = NativeStruct.offset("wl_rank_state_t", "elsewhere");
    public static final int LOST = NativeStruct.offset("wl_rank_state_t", "lost");

    private RankState() {}
  }

  /** {@code wl_report_group_t}. */
  public static final class ReportGroup {
    public static final int SIZE = NativeStruct.bytes("wl_report_group_t");
    public static final int RANKS = NativeStruct.offset("wl_report_group_t", "ranks");
    public static final int ID = NativeStruct.offset("wl_report_group_t", "id");
    public static final int PARENT = NativeStruct.offset("wl_report_group_t", "parent");
    public static final int MADE_NS = NativeStruct.offset("wl_report_group_t", "made_ns");

    private ReportGroup() {}
  }

  /** {@code wl_peer_memory_t}. */
  public static final class PeerMemory {
    public static final int SIZE = NativeStruct.bytes("wl_peer_memory_t");
    public static final int FORM = NativeStruct.offset("wl_peer_memory_t", "form");
    public static final int WHY = NativeStruct.offset("wl_peer_memory_t", "why");

    private PeerMemory() {}
  }

  /** {@code wl_kernel_profile_t}. */
  public static final class KernelProfile {
    public static final int SIZE = NativeStruct.bytes("wl_kernel_profile_t");
    public static final int KERNEL = offset("kernel");
    public static final int RUNS = offset("runs");
    public static final int CORES = offset("cores");
    public static final int CYCLES = offset("cycles");
    public static final int OVERLAP_CYCLES = offset("overlap_cycles");
    public static final int FLAGS = offset("flags");
    public static final int BARRIERS = offset("barriers");
    public static final int NOTIFIES = offset("notifies");
    public static final int BUFFER_BYTES = offset("buffer_bytes");
    public static final int INSTRUCTIONS = offset("instructions");
    public static final int BYTES = offset("bytes");
    public static final int BUSY_CYCLES = offset("busy_cycles");

    private KernelProfile() {}

    private static int offset(String field) {
      return NativeStruct.offset("wl_kernel_profile_t", field);
    }
  }

  /** {@code wl_experts_t}. */
  public static final class Experts {
    private static final int SIZE = NativeStruct.bytes("wl_experts_t");
    private static final int DTYPE = NativeStruct.offset("wl_experts_t", "dtype");
    private static final int RANKS = NativeStruct.offset("wl_experts_t", "ranks");
    private static final int EXPERTS = NativeStruct.offset("wl_experts_t", "experts");
    private static final int TOP_K = NativeStruct.offset("wl_experts_t", "top_k");
    private static final int ALIGNMENT = NativeStruct.offset("wl_experts_t", "alignment");
    private static final int QUANTISED = NativeStruct.offset("wl_experts_t", "quantised");
    private static final int HIDDEN = NativeStruct.offset("wl_experts_t", "hidden");
    private static final int TOKENS = NativeStruct.offset("wl_experts_t", "tokens");
    private static final int ROWS = NativeStruct.offset("wl_experts_t", "rows");

    private Experts() {}

    /** One that says so. */
    public static ByteBuffer of(
        int dtype,
        int ranks,
        int experts,
        int topK,
        int alignment,
        boolean quantised,
        long hidden,
        long tokens,
        long rows) {
      ByteBuffer struct = allocate(SIZE);
      struct.putInt(0, SIZE);
      struct.putInt(DTYPE, dtype);
      struct.putInt(RANKS, ranks);
      struct.putInt(EXPERTS, experts);
      struct.putInt(TOP_K, topK);
      struct.putInt(ALIGNMENT, alignment);
      struct.putInt(QUANTISED, quantised ? 1 : 0);
      struct.putLong(HIDDEN, hidden);
      struct.putLong(TOKENS, tokens);
      struct.putLong(ROWS, rows);
      return struct;
    }
  }

  /** {@code wl_experts_layout_t}. */
  public static final class ExpertsLayout {
    public static final int SIZE = NativeStruct.bytes("wl_experts_layout_t");
    public static final int TABLE_BYTES = offset("table_bytes");
    public static final int STARTS_AT = offset("starts_at");
    public static final int GETS_AT = offset("gets_at");
    public static final int BUFFER_BYTES = offset("buffer_bytes");
    public static final int SCALES_AT = offset("scales_at");
    public static final int RECORDS_AT = offset("records_at");

    private ExpertsLayout() {}

    private static int offset(String field) {
      return NativeStruct.offset("wl_experts_layout_t", field);
    }
  }

  /** {@code wl_record_t}. */
  public static final class Record {
    public static final int SIZE = NativeStruct.bytes("wl_record_t");
    public static final int SEQUENCE = NativeStruct.offset("wl_record_t", "sequence");
    public static final int OPERATION = NativeStruct.offset("wl_record_t", "operation");
    public static final int ALGORITHM = NativeStruct.offset("wl_record_t", "algorithm");
    public static final int CODE = NativeStruct.offset("wl_record_t", "code");
    public static final int BYTES = NativeStruct.offset("wl_record_t", "bytes");
    public static final int ENTERED_NS = NativeStruct.offset("wl_record_t", "entered_ns");
    public static final int LEFT_NS = NativeStruct.offset("wl_record_t", "left_ns");
    public static final int WAITED_NS = NativeStruct.offset("wl_record_t", "waited_ns");
    public static final int TEXT = NativeStruct.offset("wl_record_t", "text");

    private Record() {}
  }

  /** {@code wl_tensor_t}. */
  public static final class Tensor {
    public static final int SIZE = NativeStruct.bytes("wl_tensor_t");
    public static final int DTYPE = NativeStruct.offset("wl_tensor_t", "dtype");
    public static final int NDIM = NativeStruct.offset("wl_tensor_t", "ndim");
    public static final int DATA = NativeStruct.offset("wl_tensor_t", "data");
    public static final int SHAPE = NativeStruct.offset("wl_tensor_t", "shape");
    public static final int STRIDES = NativeStruct.offset("wl_tensor_t", "strides");

    private Tensor() {}
  }

  /** {@code wl_floor_config_t}. */
  public static final class FloorConfig {
    public static final int SIZE = NativeStruct.bytes("wl_floor_config_t");
    public static final int OPERATION = NativeStruct.offset("wl_floor_config_t", "operation");
    public static final int RANKS = NativeStruct.offset("wl_floor_config_t", "ranks");
    public static final int ITERATIONS = NativeStruct.offset("wl_floor_config_t", "iterations");
    public static final int BYTES = NativeStruct.offset("wl_floor_config_t", "bytes");

    private FloorConfig() {}
  }

  /** {@code wl_transfer_config_t}. */
  public static final class TransferConfig {
    public static final int SIZE = NativeStruct.bytes("wl_transfer_config_t");
    public static final int FINGERPRINT = offset("fingerprint");
    public static final int SOURCE_BINDINGS = offset("source_bindings");
    public static final int SOURCE_BINDING_WORDS = offset("source_binding_words");
    public static final int SOURCE_BINDING_COUNT = offset("source_binding_count");
    public static final int TARGET_BINDING_COUNT = offset("target_binding_count");
    public static final int TARGET_BINDINGS = offset("target_bindings");
    public static final int TARGET_BINDING_WORDS = offset("target_binding_words");
    public static final int CHUNKS = offset("chunks");
    public static final int CHUNK_WORDS = offset("chunk_words");
    public static final int CHUNK_COUNT = offset("chunk_count");
    public static final int STAGES = offset("stages");
    public static final int STAGE_WORDS = offset("stage_words");
    public static final int STAGE_COUNT = offset("stage_count");

    private TransferConfig() {}

    private static int offset(String field) {
      return NativeStruct.offset("wl_transfer_config_t", field);
    }
  }
}
