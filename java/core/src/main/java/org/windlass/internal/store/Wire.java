// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.ByteArrayOutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.error.WindlassException;

/**
 * Encodes and decodes the bodies of frames between a {@link SocketStore} and a {@link StoreServer};
 * see docs/explanation/protocols.md. {@link Greeting} has the frames before the {@link Seal}.
 */
final class Wire {
  static final int PROTOCOL = 4;
  static final int MAGIC = 0x574c5354; // "WLST"
  static final byte HELLO = 1;
  static final byte CHALLENGE = 2;
  static final byte PROOF = 3;
  static final byte WELCOME = 4;
  static final byte REFUSED = 5;

  static final byte SET = 16;
  static final byte GET = 17;
  static final byte AWAIT = 18;
  static final byte CAS = 20;
  static final byte HOLD = 21;
  static final byte KEYS = 22;
  static final byte CANCEL = 23;
  static final byte PING = 24;
  static final byte LEAVE = 25;

  static final byte DONE = 0;

  static final int NO_CALL = 0; // the id of a request whose reply nobody waits for
  static final int HEAD = 1 + Integer.BYTES;

  /** Bytes of the longest frame before the proof of the token. */
  static final int HANDSHAKE_FRAME = 1 << 10;

  /** Bytes of the longest frame. An AWAIT with the largest allowed values is shorter. */
  static final int FRAME = 4 << 20;
  static final int REFUSAL = 800; // bytes of the longest reason of a refusal

  private Wire() {}

  @FunctionalInterface
  interface Reading<T> {
    T of(ByteBuffer frame) throws MalformedException;
  }

  /**
   * Reads the remaining fields of a frame.
   *
   * @throws MalformedException if the frame has more or fewer fields
   */
  static <T> T read(ByteBuffer frame, Reading<T> reading) throws MalformedException {
    T result;
    try {
      result = reading.of(frame);
    } catch (BufferUnderflowException e) {
      throw new MalformedException("a frame that ends too early");
    }
    if (frame.hasRemaining()) {
      throw new MalformedException(frame.remaining() + " bytes too many");
    }
    return result;
  }

  static byte[] body(int kind, int id, byte[]... fields) {
    byte[] head = ByteBuffer.allocate(HEAD).put((byte) kind).putInt(id).array();
    return concat(head, concat(fields));
  }

  static byte[] concat(byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    return all.toByteArray();
  }

  static byte[] text(String text) {
    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
    return concat(ByteBuffer.allocate(Short.BYTES).putShort((short) utf8.length).array(), utf8);
  }

  static String text(ByteBuffer frame, int most) throws MalformedException {
    int length = Short.toUnsignedInt(frame.getShort());
    if (length > most || length > frame.remaining()) {
      throw new MalformedException("a text of " + length + " bytes");
    }
    try {
      ByteBuffer utf8 = ByteBuffer.wrap(bytes(frame, length));
      return StandardCharsets.UTF_8.newDecoder().decode(utf8).toString();
    } catch (CharacterCodingException e) {
      throw new MalformedException("a text that is no UTF-8");
    }
  }

  static String key(ByteBuffer frame) throws MalformedException {
    String key = text(frame, Limits.KEY);
    if (key.isEmpty()) {
      throw new MalformedException("an empty key");
    }
    return key;
  }

  static byte[] keys(List<String> keys) {
    byte[] count = ByteBuffer.allocate(Integer.BYTES).putInt(keys.size()).array();
    return concat(count, concat(keys.stream().map(Wire::text).toArray(byte[][]::new)));
  }

  static List<String> keys(ByteBuffer frame) throws MalformedException {
    List<String> keys = new ArrayList<>();
    for (int count = frame.getInt(); count > 0; count--) {
      keys.add(key(frame));
    }
    return keys;
  }

  static byte @Nullable [] array(ByteBuffer frame) throws MalformedException {
    int length = frame.getInt();
    if (length == -1) {
      return null;
    }
    if (length < 0 || length > Limits.VALUE || length > frame.remaining()) {
      throw new MalformedException("an array of " + length + " bytes");
    }
    return bytes(frame, length);
  }

  static byte[] value(ByteBuffer frame) throws MalformedException {
    byte[] value = array(frame);
    if (value == null) {
      throw new MalformedException("no value");
    }
    return value;
  }

  static byte[] bytes(ByteBuffer frame, int length) {
    byte[] bytes = new byte[length];
    frame.get(bytes);
    return bytes;
  }

  /** Makes the body of a REFUSED frame. A text that is too long is cut. */
  static byte[] refused(int code, String text) {
    return body(REFUSED, code, text(cut(text)));
  }

  /** Makes the body of a LEAVE frame. A text that is too long is cut. */
  static byte[] leave(String text) {
    return request(LEAVE, NO_CALL, cut(text));
  }

  private static String cut(String text) {
    String shown = Texts.printable(text);
    while (shown.getBytes(StandardCharsets.UTF_8).length > REFUSAL) {
      shown = shown.substring(0, shown.length() - 1);
    }
    return shown;
  }

  static byte[] refusal(int id, WindlassException why) {
    return body(why.code().number(), id, text(cut(String.valueOf(why.getMessage()))));
  }

  static WindlassException refusal(byte code, ByteBuffer frame) throws MalformedException {
    return WindlassException.of(code, Texts.printable(text(frame, REFUSAL)), List.of());
  }

  /**
   * A request. Fields that its kind does not have are null or empty.
   *
   * @param text a key, a prefix or a reason
   * @param expected value that CAS expects
   * @param seen keys that AWAIT waits for, and their known values
   */
  record Request(
      byte kind,
      int id,
      String text,
      byte @Nullable [] expected,
      byte @Nullable [] value,
      Map<String, byte @Nullable []> seen) {}

  static byte[] request(byte kind, int id, String text, byte[] @Nullable ... arrays) {
    return body(
        kind,
        id,
        Encoding.bytes(
            out -> {
              out.write(text(text));
              Encoding.putArrays(out, Arrays.asList(arrays));
            }));
  }

  static Request request(ByteBuffer frame) throws MalformedException {
    byte kind = frame.get();
    int id = frame.getInt();
    String text =
        switch (kind) {
          case SET, GET, CAS, HOLD -> key(frame);
          case KEYS -> text(frame, Limits.KEY);
          case LEAVE -> text(frame, REFUSAL);
          case AWAIT, CANCEL, PING -> "";
          default -> throw new MalformedException("a request of kind " + kind);
        };
    byte[] expected = kind == CAS ? array(frame) : null;
    byte[] value =
        switch (kind) {
          case SET, HOLD -> value(frame);
          case CAS -> array(frame);
          default -> null;
        };
    Map<String, byte @Nullable []> seen = kind == AWAIT ? seen(frame) : Map.of();
    return new Request(kind, id, text, expected, value, seen);
  }

  static byte[] await(int id, Map<String, byte @Nullable []> seen) {
    return body(
        AWAIT,
        id,
        Encoding.bytes(
            out -> {
              out.writeInt(seen.size());
              for (Map.Entry<String, byte @Nullable []> each : seen.entrySet()) {
                out.write(text(each.getKey()));
                Encoding.putArray(out, each.getValue());
              }
            }));
  }

  private static Map<String, byte @Nullable []> seen(ByteBuffer frame) throws MalformedException {
    int count = frame.getInt();
    Map<String, byte @Nullable []> seen = new LinkedHashMap<>();
    for (int i = 0; i < Math.min(count, Limits.WATCHED + 1); i++) {
      seen.put(key(frame), array(frame));
    }
    if (count < 1 || seen.size() != count || count > Limits.WATCHED) {
      throw new MalformedException("a wait for " + count + " keys, or for one of them twice");
    }
    return seen;
  }
}
