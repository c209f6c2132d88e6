// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.testing.ReferenceNumbers;

/**
 * What every rank brings to a dispatch, made from a seed, so that each rank knows it of all; and, slowly
 * and by definition, what comes of it.
 */
record ExpertCase(ExpertOptions options, int ranks, Router router, long seed) {
  /** How a test's routers choose. */
  enum Router {
    /** Some of a token's slots at random; some tokens none. */
    RANDOM,
    /** Every token goes nowhere. */
    NOWHERE,
    /** Every token goes to one expert, the last. */
    ALL_TO_ONE
  }

  /** Whose row of an expert one is. */
  record Row(int rank, int token, int slot) {}

  int tokens(int rank) {
    return new Random(seed + 31L * rank).nextInt((int) options.tokens() + 1);
  }

  /** [tokens, topK], row after row. */
  int[] ids(int rank) {
    Random random = new Random(seed * 7 + rank);
    int[] ids = new int[tokens(rank) * options.topK()];
    for (int token = 0; token < tokens(rank); token++) {
      List<Integer> choice = new ArrayList<>();
      for (int expert = 0; expert < options.experts(); expert++) {
        choice.add(expert);
      }
      Collections.shuffle(choice, random);
      for (int slot = 0; slot < options.topK(); slot++) {
        ids[token * options.topK() + slot] =
            switch (router) {
              case NOWHERE -> -1;
              case ALL_TO_ONE -> slot == 0 ? options.experts() - 1 : -1;
              case RANDOM -> random.nextInt(4) == 0 || token % 5 == 3 ? -1 : choice.get(slot);
            };
      }
    }
    return ids;
  }

  float[] weights(int rank) {
    Random random = new Random(seed * 13 + rank);
    float[] weights = new float[tokens(rank) * options.topK()];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = random.nextFloat() * 2 - 0.5f;
    }
    return weights;
  }

  /** Bits of [tokens, hidden] in the options' dtype; now and then something that is no number. */
  long[] values(int rank, int round) {
    Random random = new Random(seed * 17 + rank * 5L + round);
    long[] bits = new long[tokens(rank) * (int) options.hidden()];
    for (int i = 0; i < bits.length; i++) {
      double value = random.nextGaussian() * Math.pow(2, random.nextInt(12) - 8);
      if (random.nextInt(500) == 0) {
        value = random.nextBoolean() ? Double.NaN : Double.NEGATIVE_INFINITY;
      }
      bits[i] = ReferenceNumbers.encode(options.dtype(), value);
    }
    return bits;
  }

  int expertsOf() {
    return options.experts() / ranks;
  }

  /** The rows of each of a rank's experts. */
  List<List<Row>> rows(int rank) {
    List<List<Row>> all = new ArrayList<>();
    for (int expert = 0; expert < expertsOf(); expert++) {
      all.add(new ArrayList<>());
    }
    for (int from = 0; from < ranks; from++) {
      int[] ids = ids(from);
      for (int i = 0; i < ids.length; i++) {
        if (ids[i] >= 0 && ids[i] / expertsOf() == rank) {
          all.get(ids[i] % expertsOf()).add(new Row(from, i / options.topK(), i % options.topK()));
        }
      }
    }
    return all;
  }

  /** The bits of what an expert makes of an element of a row, of whichever dtype. */
  long answer(DType dtype, Row row, int element) {
    long hash = (row.rank * 1009L + row.token) * 1013 + row.slot * 31 + element * 7919L + seed;
    return ReferenceNumbers.encode(dtype, (hash * 0x9e3779b97f4a7c15L >> 40) / 65536.0);
  }

  /** The sum that a combine makes of one element: {@code terms} in the order of slots. */
  static long combined(DType dtype, float[] weights, long[] terms) {
    if (dtype == DType.F64) {
      double sum = 0;
      for (int i = 0; i < terms.length; i++) {
        double product = weights[i] * ReferenceNumbers.decode(dtype, terms[i]);
        sum = i == 0 ? product : sum + product;
      }
      return ReferenceNumbers.encode(dtype, sum);
    }
    float sum = 0;
    for (int i = 0; i < terms.length; i++) {
      float product = weights[i] * (float) ReferenceNumbers.decode(dtype, terms[i]);
      sum = i == 0 ? product : sum + product;
    }
    return ReferenceNumbers.encode(dtype, sum);
  }

  /** The scale of a block of elements. */
  static float scale(DType dtype, long[] bits, int from, int to) {
    float largest = 1e-4f;
    for (int i = from; i < to; i++) {
      float magnitude = Math.abs((float) ReferenceNumbers.decode(dtype, bits[i]));
      if (magnitude > largest) { // no NaN is
        largest = magnitude;
      }
    }
    return largest / 448.0f;
  }

  /** One element over that. */
  static long quantised(DType dtype, long bits, float scale) {
    float value = (float) ReferenceNumbers.decode(dtype, bits) * (1.0f / scale);
    return ReferenceNumbers.encode(DType.F8E4M3, value);
  }

  /** Writes elements, as bits, into a contiguous tensor. */
  static void write(Tensor tensor, long[] bits) {
    switch (tensor.dtype().bytes()) {
      case 1 -> {
        byte[] all = new byte[bits.length];
        for (int i = 0; i < all.length; i++) {
          all[i] = (byte) bits[i];
        }
        tensor.asByteBuffer().put(all);
      }
      case 2 -> {
        short[] all = new short[bits.length];
        for (int i = 0; i < all.length; i++) {
          all[i] = (short) bits[i];
        }
        tensor.asByteBuffer().asShortBuffer().put(all);
      }
      case 4 -> {
        int[] all = new int[bits.length];
        for (int i = 0; i < all.length; i++) {
          all[i] = (int) bits[i];
        }
        tensor.asByteBuffer().asIntBuffer().put(all);
      }
      default -> tensor.asByteBuffer().asLongBuffer().put(bits);
    }
  }

  /** Elements of a contiguous tensor, as bits. */
  static long[] read(Tensor tensor) {
    long[] bits = new long[(int) tensor.numel()];
    var bytes = tensor.asByteBuffer();
    for (int i = 0; i < bits.length; i++) {
      bits[i] =
          switch (tensor.dtype().bytes()) {
            case 1 -> bytes.get(i) & 0xff;
            case 2 -> bytes.getShort(2 * i) & 0xffff;
            case 4 -> bytes.getInt(4 * i) & 0xffffffffL;
            default -> bytes.getLong(8 * i);
          };
    }
    return bits;
  }
}
