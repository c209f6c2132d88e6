// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The frames between a {@link SocketStore} and a {@link StoreServer}. A frame is a length of four
 * bytes and as many bytes after it; numbers have their most significant byte first. A text is a
 * length of two bytes and UTF-8; an array is a length of four bytes, -1 for none, and its bytes.
 *
 * <p>They meet by HELLO, CHALLENGE, PROOF and WELCOME, or REFUSED at any point ({@link Greeting}).
 * After that a request is a kind, an id of four bytes, and
 *
 * <pre>
 * SET     key text, value array              reply: nothing
 * GET     key text                           reply: value array
 * AWAIT   key text, seen array               reply: value array, once it is other than seen
 * ADD     key text, eight bytes              reply: eight bytes
 * CAS     key text, expected array, array    reply: a byte, 1 or 0
 * HOLD    key text, value array              reply: a byte, 1 or 0
 * KEYS    prefix text                        reply: four bytes of count, key texts
 * CANCEL                                     ends the AWAIT of that id; no reply
 * PING                                       reply: nothing
 * LEAVE   text                               why the member goes; no reply
 * </pre>
 *
 * and a reply a byte of code, 0 for done, the request's id, and the above or a text. Replies come
 * in any order. A reply with a code and the id 0 tells why the server ends the session.
 */
final class Wire {
  static final int PROTOCOL = 2;
  static final int MAGIC = 0x574c5354; // "WLST"

  static final byte HELLO = 1;
  static final byte CHALLENGE = 2;
  static final byte PROOF = 3;
  static final byte WELCOME = 4;
  static final byte REFUSED = 5;

  static final byte SET = 16;
  static final byte GET = 17;
  static final byte AWAIT = 18;
  static final byte ADD = 19;
  static final byte CAS = 20;
  static final byte HOLD = 21;
  static final byte KEYS = 22;
  static final byte CANCEL = 23;
  static final byte PING = 24;
  static final byte LEAVE = 25;

  static final byte DONE = 0;

  /** The id of a request whose reply nobody waits for. */
  static final int NO_CALL = 0;

  /** A request before its body: kind or code, and id. */
  static final int HEAD = 1 + Integer.BYTES;

  /** Of the longest frame from or to who has not shown the token. */
  static final int MEETING_FRAME = 1 << 10;

  /** Of the longest frame: a CAS of two values, or a listing. */
  static final int FRAME = 2 * Limits.VALUE + Limits.KEY + 64;

  /** Of the longest text that tells of a refusal. */
  static final int REFUSAL = 800;

  private Wire() {}

  /** A frame with room for {@code body} bytes, to be filled up and flipped. */
  static ByteBuffer frame(int body) {
    return ByteBuffer.allocate(Integer.BYTES + body).putInt(body);
  }

  /** How long {@code utf8} is as a text. */
  static int textBytes(byte[] utf8) {
    return Short.BYTES + utf8.length;
  }

  /** How long {@code bytes} is as an array. */
  static int arrayBytes(byte[] bytes) {
    return Integer.BYTES + (bytes == null ? 0 : bytes.length);
  }

  static void putText(ByteBuffer frame, byte[] utf8) {
    frame.putShort((short) utf8.length).put(utf8);
  }

  static void putArray(ByteBuffer frame, byte[] bytes) {
    frame.putInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) {
      frame.put(bytes);
    }
  }

  static String text(ByteBuffer frame, int most) throws MalformedException {
    int length = Short.toUnsignedInt(frame.getShort());
    if (length > most || length > frame.remaining()) {
      throw new MalformedException("a text of " + length + " bytes");
    }
    ByteBuffer utf8 = frame.slice(frame.position(), length);
    frame.position(frame.position() + length);
    try {
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

  /** Null for none. */
  static byte[] array(ByteBuffer frame) throws MalformedException {
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

  static List<String> keys(ByteBuffer frame) throws MalformedException {
    int count = frame.getInt();
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      keys.add(key(frame));
    }
    return keys;
  }

  static void end(ByteBuffer frame) throws MalformedException {
    if (frame.hasRemaining()) {
      throw new MalformedException(frame.remaining() + " bytes too many");
    }
  }

  /** A REFUSED frame; what is too long of the text is cut. */
  static ByteBuffer refused(int code, String text) {
    byte[] utf8 = cut(text);
    ByteBuffer frame = frame(1 + Integer.BYTES + textBytes(utf8)).put(REFUSED).putInt(code);
    putText(frame, utf8);
    return frame.flip();
  }

  /** Makes a LEAVE frame. A text that is too long is cut. */
  static ByteBuffer leave(String text) {
    byte[] utf8 = cut(text);
    ByteBuffer frame = frame(HEAD + textBytes(utf8)).put(LEAVE).putInt(NO_CALL);
    putText(frame, utf8);
    return frame.flip();
  }

  /** A reply that tells of a refusal. */
  static ByteBuffer refusal(int id, Refusal refusal) {
    byte[] utf8 = cut(refusal.getMessage());
    ByteBuffer frame = frame(HEAD + textBytes(utf8)).put((byte) refusal.code()).putInt(id);
    putText(frame, utf8);
    return frame.flip();
  }

  private static byte[] cut(String text) {
    String shown = Texts.printable(text);
    while (shown.getBytes(StandardCharsets.UTF_8).length > REFUSAL) {
      shown = shown.substring(0, shown.length() - 1);
    }
    return shown.getBytes(StandardCharsets.UTF_8);
  }
}
