// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Where the fields of the C ABI's structs lie, in bytes, asked once of the compiled header. */
final class Structs {
  private Structs() {}

  /** A zeroed direct buffer in native order, for structs and arrays of the C ABI. */
  static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** {@code wl_error_t}. */
  static final class Error {
    static final int SIZE = NativeStruct.bytes("wl_error_t");
    static final int OPERATION = NativeStruct.offset("wl_error_t", "operation");
    static final int CULPRIT_COUNT = NativeStruct.offset("wl_error_t", "culprit_count");
    static final int CULPRITS = NativeStruct.offset("wl_error_t", "culprits");
    static final int MESSAGE = NativeStruct.offset("wl_error_t", "message");

    private Error() {}
  }

  /** {@code wl_group_config_t}. */
  static final class GroupConfig {
    static final int SIZE = NativeStruct.bytes("wl_group_config_t");
    static final int RANKS = NativeStruct.offset("wl_group_config_t", "ranks");
    static final int FIRST_SEQUENCE = NativeStruct.offset("wl_group_config_t", "first_sequence");
    static final int CORES = NativeStruct.offset("wl_group_config_t", "cores");
    static final int DEADLINE_NS = NativeStruct.offset("wl_group_config_t", "deadline_ns");
    static final int BLOCKS = NativeStruct.offset("wl_group_config_t", "blocks");
    static final int ADJUST_THREADS =
        NativeStruct.offset("wl_group_config_t", "adjust_threads");

    private GroupConfig() {}
  }

  /** {@code wl_rank_state_t}. */
  static final class RankState {
    static final int SIZE = NativeStruct.bytes("wl_rank_state_t");
    static final int SEQUENCE = NativeStruct.offset("wl_rank_state_t", "sequence");
    static final int AWAITED = NativeStruct.offset("wl_rank_state_t", "awaited");
    static final int CLOSED = NativeStruct.offset("wl_rank_state_t", "closed");
    static final int CONTESTED = NativeStruct.offset("wl_rank_state_t", "contested");

    private RankState() {}
  }

  /** {@code wl_record_t}. */
  static final class Record {
    static final int SIZE = NativeStruct.bytes("wl_record_t");
    static final int SEQUENCE = NativeStruct.offset("wl_record_t", "sequence");
    static final int OPERATION = NativeStruct.offset("wl_record_t", "operation");
    static final int ALGORITHM = NativeStruct.offset("wl_record_t", "algorithm");
    static final int CODE = NativeStruct.offset("wl_record_t", "code");
    static final int BYTES = NativeStruct.offset("wl_record_t", "bytes");
    static final int ENTERED_NS = NativeStruct.offset("wl_record_t", "entered_ns");
    static final int LEFT_NS = NativeStruct.offset("wl_record_t", "left_ns");
    static final int WAITED_NS = NativeStruct.offset("wl_record_t", "waited_ns");
    static final int TEXT = NativeStruct.offset("wl_record_t", "text");

    private Record() {}
  }

  /** {@code wl_tensor_t}. */
  static final class Tensor {
    static final int SIZE = NativeStruct.bytes("wl_tensor_t");
    static final int DTYPE = NativeStruct.offset("wl_tensor_t", "dtype");
    static final int NDIM = NativeStruct.offset("wl_tensor_t", "ndim");
    static final int DATA = NativeStruct.offset("wl_tensor_t", "data");
    static final int SHAPE = NativeStruct.offset("wl_tensor_t", "shape");
    static final int STRIDES = NativeStruct.offset("wl_tensor_t", "strides");

    private Tensor() {}
  }

  /** {@code wl_floor_config_t}. */
  static final class FloorConfig {
    static final int SIZE = NativeStruct.bytes("wl_floor_config_t");
    static final int OPERATION = NativeStruct.offset("wl_floor_config_t", "operation");
    static final int RANKS = NativeStruct.offset("wl_floor_config_t", "ranks");
    static final int ITERATIONS = NativeStruct.offset("wl_floor_config_t", "iterations");
    static final int BYTES = NativeStruct.offset("wl_floor_config_t", "bytes");

    private FloorConfig() {}
  }

  /** {@code wl_transfer_config_t}. */
  static final class TransferConfig {
    static final int SIZE = NativeStruct.bytes("wl_transfer_config_t");
    static final int FINGERPRINT = offset("fingerprint");
    static final int SOURCE_BINDINGS = offset("source_bindings");
    static final int SOURCE_BINDING_WORDS = offset("source_binding_words");
    static final int SOURCE_BINDING_COUNT = offset("source_binding_count");
    static final int TARGET_BINDING_COUNT = offset("target_binding_count");
    static final int TARGET_BINDINGS = offset("target_bindings");
    static final int TARGET_BINDING_WORDS = offset("target_binding_words");
    static final int CHUNKS = offset("chunks");
    static final int CHUNK_WORDS = offset("chunk_words");
    static final int CHUNK_COUNT = offset("chunk_count");
    static final int STAGES = offset("stages");
    static final int STAGE_WORDS = offset("stage_words");
    static final int STAGE_COUNT = offset("stage_count");

    private TransferConfig() {}

    private static int offset(String field) {
      return NativeStruct.offset("wl_transfer_config_t", field);
    }
  }
}
