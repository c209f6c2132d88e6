// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.windlass.DType;

/** Small safetensors files, written and read apart from the code under test. */
public final class TestFile {
  /** A tensor's elements, each as its bits. */
  public record Tensor(String name, DType dtype, int[] shape, long[] bits) {
    @Override
    public boolean equals(Object object) {
      return object instanceof Tensor other
          && name.equals(other.name)
          && dtype == other.dtype
          && Arrays.equals(shape, other.shape)
          && Arrays.equals(bits, other.bits);
    }

    @Override
    public int hashCode() {
      return name.hashCode();
    }

    @Override
    public String toString() {
      StringBuilder text = new StringBuilder(name + " " + dtype + Arrays.toString(shape));
      for (long element : bits) {
        text.append(' ').append(Long.toHexString(element));
      }
      return text.toString();
    }
  }

  private TestFile() {}

  public static void write(Path path, List<Tensor> tensors, Map<String, String> metadata)
      throws IOException {
    ByteArrayOutputStream data = new ByteArrayOutputStream();
    ByteArrayOutputStream header = new ByteArrayOutputStream();
    try (JsonGenerator json = new JsonFactory().createGenerator(header)) {
      json.writeStartObject();
      if (!metadata.isEmpty()) {
        json.writeObjectFieldStart("__metadata__");
        for (Map.Entry<String, String> entry : metadata.entrySet()) {
          json.writeStringField(entry.getKey(), entry.getValue());
        }
        json.writeEndObject();
      }
      for (Tensor tensor : tensors) {
        json.writeObjectFieldStart(tensor.name());
        json.writeStringField("dtype", tensor.dtype().safetensorsName());
        json.writeFieldName("shape");
        json.writeArray(tensor.shape(), 0, tensor.shape().length);
        json.writeFieldName("data_offsets");
        int begin = data.size();
        data.writeBytes(pack(tensor));
        json.writeArray(new int[] {begin, data.size()}, 0, 2);
        json.writeEndObject();
      }
      json.writeEndObject();
    }
    SafetensorsBytes.write(path, header.toString(StandardCharsets.UTF_8), data.toByteArray());
  }

  /** Bits that lie in one byte for certain. */
  private static int step(int width) {
    return width % 8 == 0 ? 8 : 1;
  }

  private static byte[] pack(Tensor tensor) {
    int width = tensor.dtype().bits();
    int step = step(width);
    long mask = (1 << step) - 1;
    byte[] bytes = new byte[tensor.bits().length * width / 8];
    for (int i = 0; i < tensor.bits().length; i++) {
      for (int b = 0; b < width; b += step) {
        long bit = (long) i * width + b;
        bytes[(int) (bit / 8)] |= (byte) ((tensor.bits()[i] >>> b & mask) << bit % 8);
      }
    }
    return bytes;
  }

  private static long[] unpack(DType dtype, byte[] bytes) {
    int width = dtype.bits();
    int step = step(width);
    long mask = (1 << step) - 1;
    long[] bits = new long[bytes.length * 8 / width];
    for (int i = 0; i < bits.length; i++) {
      for (int b = 0; b < width; b += step) {
        long bit = (long) i * width + b;
        bits[i] |= (bytes[(int) (bit / 8)] >>> bit % 8 & mask) << b;
      }
    }
    return bits;
  }

  /** What a file holds, in the order of its header; the metadata is under an empty name. */
  public record Content(List<Tensor> tensors, Map<String, String> metadata) {}

  public static Content read(Path path) throws IOException {
    byte[] all = Files.readAllBytes(path);
    int header = (int) ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN).getLong();
    int data = 8 + header;
    Map<String, Tensor> tensors = new LinkedHashMap<>();
    Map<String, String> metadata = new TreeMap<>();
    try (JsonParser json = new JsonFactory().createParser(all, 8, header)) {
      json.nextToken();
      while (json.nextToken() != JsonToken.END_OBJECT) {
        String name = json.currentName();
        json.nextToken();
        if (name.equals("__metadata__")) {
          while (json.nextToken() != JsonToken.END_OBJECT) {
            metadata.put(json.currentName(), json.nextTextValue());
          }
          continue;
        }
        DType dtype = null;
        int[] shape = {};
        int[] offsets = {};
        while (json.nextToken() != JsonToken.END_OBJECT) {
          String key = json.currentName();
          json.nextToken();
          switch (key) {
            case "dtype" -> dtype = DType.parse(json.getText());
            case "shape" -> shape = ints(json);
            default -> offsets = ints(json);
          }
        }
        byte[] bytes = Arrays.copyOfRange(all, data + offsets[0], data + offsets[1]);
        tensors.put(name, new Tensor(name, dtype, shape, unpack(dtype, bytes)));
      }
    }
    return new Content(List.copyOf(tensors.values()), metadata);
  }

  private static int[] ints(JsonParser json) throws IOException {
    java.util.stream.IntStream.Builder values = java.util.stream.IntStream.builder();
    while (json.nextToken() != JsonToken.END_ARRAY) {
      values.add(json.getIntValue());
    }
    return values.build().toArray();
  }
}
