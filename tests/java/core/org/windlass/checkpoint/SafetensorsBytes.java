// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Safetensors files byte by byte, apart from the code under test. */
final class SafetensorsBytes {
  private SafetensorsBytes() {}

  /** A file of this header and data. */
  static Path write(Path path, String json, byte... data) throws IOException {
    byte[] header = json.getBytes(StandardCharsets.UTF_8);
    ByteBuffer file =
        ByteBuffer.allocate(8 + header.length + data.length).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(header.length).put(header).put(data);
    return Files.write(path, file.array());
  }

  /** A file of one u8 tensor. */
  static Path bytes(Path path, String name, byte... data) throws IOException {
    return write(
        path,
        "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + data.length + "],\"data_offsets\":[0,"
            + data.length + "]}}",
        data);
  }
}
