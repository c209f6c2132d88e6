// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * Sends and receives frames over a connection. Its memory grows with the bytes that have arrived,
 * not with the length that a frame announces. After the proof of the token, a {@link Seal} follows
 * each frame. One thread at a time may read, and one may write.
 */
final class FrameChannel {
  static final int CHUNK = 64 << 10; // the most bytes of one read or write
  private static final int SMALL = Integer.BYTES + Wire.HANDSHAKE_FRAME;
  private static final byte[] NO_SEAL = {};

  private final ReadableByteChannel from;
  private final WritableByteChannel to;

  /**
   * Received bytes, up to its position. The bytes before {@code taken} were already returned to the
   * caller.
   */
  private ByteBuffer in = ByteBuffer.allocate(SMALL);

  private int taken;
  private int longest = Wire.HANDSHAKE_FRAME;

  private @Nullable Seal sent;

  private @Nullable Seal received;

  private final Deque<ByteBuffer> out = new ArrayDeque<>();
  private long queued;

  FrameChannel(ReadableByteChannel from, WritableByteChannel to) {
    this.from = from;
    this.to = to;
  }

  /** Switches both directions to sealed frames of up to {@link Wire#FRAME} bytes. */
  void sealed(Seal sent, Seal received) {
    longest = Wire.FRAME;
    this.sent = sent;
    this.received = received;
  }

  /** Reads available bytes from the connection. Returns false at the end of the stream. */
  boolean fill() throws IOException {
    int left = in.position() - taken;
    if (left == 0 && in.capacity() > CHUNK) {
      in = ByteBuffer.allocate(SMALL);
    } else {
      byte[] bytes = in.array();
      if (left == bytes.length) {
        int most = Integer.BYTES + longest + Seal.BYTES;
        bytes = Arrays.copyOf(bytes, (int) Math.min(2L * left, most));
      } else {
        System.arraycopy(bytes, taken, bytes, 0, left);
      }
      in = ByteBuffer.wrap(bytes).position(left);
    }
    taken = 0;
    in.limit(Math.min(in.capacity(), in.position() + CHUNK));
    int read = from.read(in);
    in.limit(in.capacity());
    return read >= 0;
  }

  /**
   * Returns the body of the next frame, or null if no frame is complete. The body is valid until
   * the next call.
   */
  @Nullable ByteBuffer next() throws MalformedException {
    int left = in.position() - taken;
    if (left < Integer.BYTES) {
      return null;
    }
    int length = in.getInt(taken);
    if (length < 1 || length > longest) {
      throw new MalformedException("a frame of " + length + " bytes, but the limit is " + longest);
    }
    int end = Integer.BYTES + length;
    int whole = end + (received == null ? 0 : Seal.BYTES);
    if (left < whole) {
      return null;
    }
    if (received != null) {
      received.require(in.slice(taken, end), in.slice(taken + end, Seal.BYTES));
    }
    ByteBuffer body = in.slice(taken + Integer.BYTES, length);
    taken += whole;
    return body;
  }

  /** Queues a frame with the body {@code head + tail}. A large {@code tail} is not copied. */
  void send(byte[] head, byte... tail) {
    ByteBuffer rest = ByteBuffer.wrap(tail);
    int length = head.length + tail.length;
    ByteBuffer first =
        ByteBuffer.allocate(Integer.BYTES + head.length).putInt(length).put(head).flip();
    byte[] seal = sent == null ? NO_SEAL : sent.next(first, rest);
    int bytes = Integer.BYTES + length + seal.length;
    if (bytes <= SMALL) {
      out.add(ByteBuffer.allocate(bytes).put(first).put(rest).put(seal).flip());
    } else {
      out.add(first);
      out.add(rest);
      out.add(ByteBuffer.wrap(seal));
    }
    queued += bytes;
  }

  long queued() {
    return queued;
  }

  /** Writes as many bytes as the connection accepts at once. Returns true if the queue is empty. */
  boolean flush() throws IOException {
    for (ByteBuffer head = out.peek(); head != null; head = out.peek()) {
      int end = head.limit();
      head.limit(Math.min(end, head.position() + CHUNK));
      int part = head.remaining();
      int written = to.write(head);
      head.limit(end);
      queued -= written;
      if (written < part) {
        return false;
      }
      if (!head.hasRemaining()) {
        out.remove();
      }
    }
    return true;
  }
}
