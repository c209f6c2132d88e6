// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

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
 * CAS     key text, expected array, array    reply: a byte, 1 or 0
 * HOLD    key text, value array              reply: a byte, 1 or 0
 * KEYS    prefix text                        reply: four bytes of count, key texts
 * CANCEL                                     ends the AWAIT of that id; no reply
 * PING                                       reply: nothing
 * LEAVE   text                               why the member goes; no reply
 * GATHER  name text, size, byte, limit,      reply: see below
 *         key text, array, count, values
 * QUIT    name text                          ends the member's part in GATHER; no reply
 * </pre>
 *
 * and a reply a byte of code, 0 for done, the request's id, and the above or a text. Replies come
 * in any order. A reply with a code and the id 0 says why the server ends the session. After the
 * text of a refusal follow a count of four bytes and as many ranks, the faulty ranks.
 *
 * <p>GATHER is one round of an all-gather. It has the number of all ranks, 1 if this is the last
 * round, the milliseconds that the member waits, a key and the value that it has as long as the
 * others may come (an empty text and no array for none), and how many values follow: four bytes of
 * a rank and what that says, an array. Its replies have a byte of their own: 0 notes that rank 0
 * has come, 1 has a piece of the values, 2 the last piece. Together these are an array for each
 * rank, in rank order.
 */
final class Wire {
  static final int PROTOCOL = 3;
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
  static final byte GATHER = 26;
  static final byte QUIT = 27;

  static final byte DONE = 0;

  /** Code of a GATHER whose other ranks come no more. */
  static final byte GONE = 64;

  static final byte NOTE = 0;
  static final byte PIECE = 1;
  static final byte LAST_PIECE = 2;

  /** The longest piece of the values of a GATHER. */
  static final int PIECE_BYTES = 512 << 10;

  /** The id of a request whose reply nobody waits for. */
  static final int NO_CALL = 0;

  /** Bytes of a request or reply before its body: kind or code, and id. */
  static final int HEAD = 1 + Integer.BYTES;

  /** Bytes of the longest frame before the proof of the token. */
  static final int MEETING_FRAME = 1 << 10;

  /** Bytes of the longest frame: a GATHER that has what all ranks of a large job say. */
  static final int FRAME = 8 << 20;

  /** Bytes of the longest reason of a refusal. */
  static final int REFUSAL = 800;

  private Wire() {}

  /** Makes a frame with room for {@code body} bytes, to be filled and flipped. */
  static ByteBuffer frame(int body) {
    return ByteBuffer.allocate(Integer.BYTES + body).putInt(body);
  }

  /** Returns the bytes that {@code utf8} takes as a text. */
  static int textBytes(byte[] utf8) {
    return Short.BYTES + utf8.length;
  }

  /** Returns the bytes that {@code bytes} takes as an array. */
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

  /** Reads an array; null for none. */
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

  /** Makes a REFUSED frame. A text that is too long is cut. */
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

  /** Makes a reply with a refusal. */
  static ByteBuffer refusal(int id, Refusal refusal) {
    byte[] utf8 = cut(refusal.getMessage());
    List<Integer> faultyRanks = refusal.faultyRanks();
    ByteBuffer frame = frame(HEAD + textBytes(utf8) + Integer.BYTES * (1 + faultyRanks.size()));
    frame.put((byte) refusal.code()).putInt(id);
    putText(frame, utf8);
    frame.putInt(faultyRanks.size());
    faultyRanks.forEach(frame::putInt);
    return frame.flip();
  }

  /** Reads a refusal behind its id. */
  static Refusal refusal(byte code, ByteBuffer frame) throws MalformedException {
    String text = Texts.printable(text(frame, REFUSAL));
    List<Integer> faultyRanks = new ArrayList<>();
    for (int count = count(frame, Member.MOST_RANKS); count > 0; count--) {
      faultyRanks.add(frame.getInt());
    }
    end(frame);
    return new Refusal(code, text, faultyRanks);
  }

  private static int count(ByteBuffer frame, int most) throws MalformedException {
    int count = frame.getInt();
    if (count < 0 || count > most) {
      throw new MalformedException("a count of " + count);
    }
    return count;
  }

  /** Makes a GATHER frame. */
  static ByteBuffer gather(int id, Round round) {
    byte[] name = round.name().getBytes(StandardCharsets.UTF_8);
    boolean isWatched = round.others() != null;
    byte[] key = (isWatched ? round.others().key() : "").getBytes(StandardCharsets.UTF_8);
    byte[] value = isWatched ? round.others().value() : null;
    int bytes = HEAD + textBytes(name) + Integer.BYTES + 1 + Long.BYTES;
    bytes += textBytes(key) + arrayBytes(value) + Integer.BYTES;
    for (byte[] said : round.own().values()) {
      bytes += Integer.BYTES + arrayBytes(said);
    }
    ByteBuffer frame = frame(bytes).put(GATHER).putInt(id);
    putText(frame, name);
    frame.putInt(round.size()).put((byte) (round.isLast() ? 1 : 0)).putLong(round.limitMs());
    putText(frame, key);
    putArray(frame, value);
    frame.putInt(round.own().size());
    round
        .own()
        .forEach(
            (rank, said) -> {
              frame.putInt(rank);
              putArray(frame, said);
            });
    return frame.flip();
  }

  /** Reads what {@link #gather} wrote behind the id. */
  static Round round(ByteBuffer frame) throws MalformedException {
    String name = key(frame);
    int size = count(frame, Member.MOST_RANKS);
    byte last = frame.get();
    long limitMs = frame.getLong();
    String key = text(frame, Limits.KEY);
    byte[] value = array(frame);
    int count = count(frame, size);
    Map<Integer, byte[]> own = new TreeMap<>();
    for (int i = 0; i < count; i++) {
      int rank = frame.getInt();
      if (rank < 0 || rank >= size || own.put(rank, value(frame)) != null) {
        throw new MalformedException("rank " + rank + " of " + size + ", or that twice");
      }
    }
    boolean isLimit = limitMs >= 1 && limitMs <= Round.LONGEST_MS;
    if (count == 0 || (last & ~1) != 0 || !isLimit || key.isEmpty() != (value == null)) {
      throw new MalformedException("a round without ranks or limit, or half of a key");
    }
    end(frame);
    Round.Presence others = value == null ? null : new Round.Presence(key, value);
    return new Round(name, size, last == 1, limitMs, others, own);
  }

  private static byte[] cut(String text) {
    String shown = Texts.printable(text);
    while (shown.getBytes(StandardCharsets.UTF_8).length > REFUSAL) {
      shown = shown.substring(0, shown.length() - 1);
    }
    return shown.getBytes(StandardCharsets.UTF_8);
  }
}
