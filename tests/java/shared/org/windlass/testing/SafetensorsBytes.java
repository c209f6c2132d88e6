// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Safetensors files byte by byte, apart from the code under test. */
public final class SafetensorsBytes {
  private SafetensorsBytes() {}

  /** What a file of this header and data holds. */
  public static byte[] of(String json, byte... data) {
    byte[] header = json.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(8 + header.length + data.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length)
        .put(header)
        .put(data)
        .array();
  }

  /** A file of this header and data. */
  public static Path write(Path path, String json, byte... data) throws IOException {
    return Files.write(path, of(json, data));
  }

  /** A file of this header and so many zeros, which take no room; gives where those begin. */
  public static long zeros(Path path, String json, long count) throws IOException {
    byte[] start = of(json);
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
      file.write(start);
      file.setLength(start.length + count);
    }
    return start.length;
  }

  /** A file of one u8 tensor. */
  public static Path bytes(Path path, String name, byte... data) throws IOException {
    return write(
        path,
        "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + data.length + "],\"data_offsets\":[0,"
            + data.length + "]}}",
        data);
  }
}
