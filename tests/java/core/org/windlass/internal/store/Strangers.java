// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Connections to a store's server that mean harm. Closing this closes those that stay open. */
public final class Strangers implements AutoCloseable {
  private final InetSocketAddress address;
  private final Token token;
  private final String library;
  private final List<RawConnection> open = new ArrayList<>();

  /** To the server at {@code address}, which lets members of {@code library} in by the token. */
  public Strangers(InetSocketAddress address, Token token, String library) {
    this.address = address;
    this.token = token;
    this.library = library;
  }

  /**
   * Opens {@code count} connections that say a part of something and no more: every other one part
   * of a request, once it has shown the token, the others part of a greeting.
   */
  public void sendHalves(int count) throws IOException {
    Member observer = Member.observer("halves", library);
    for (int i = 0; i < count; i++) {
      boolean belongs = i % 2 == 0;
      byte[] whole = belongs ? request(new Random(i)) : greeting(1);
      RawConnection connection =
          belongs ? RawConnection.member(address, token, observer) : new RawConnection(address);
      open.add(connection);
      connection.send(Arrays.copyOf(whole, i % whole.length));
    }
  }

  /** Comes {@code count} times, one after the other, with what makes no sense. */
  public void sendGarbage(int count) throws IOException {
    Random random = new Random(1);
    for (int i = 0; i < count; i++) {
      RawConnection connection = new RawConnection(address);
      try (connection) {
        connection.send(nonsense(random));
      } catch (IOException e) {
        // Turned away in the middle of a word.
      }
    }
  }

  private byte[] nonsense(Random random) {
    switch (random.nextInt(5)) {
      case 0:
        return "GET / HTTP/1.1\r\nHost: store\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
      case 1:
        return new byte[] {0, 0, 0, 0};
      case 2:
        return ByteBuffer.allocate(8).putInt(Integer.MAX_VALUE).array();
      case 3:
        return greeting(0);
      default:
        byte[] bytes = new byte[random.nextInt(2000)];
        random.nextBytes(bytes);
        return bytes;
    }
  }

  /** What a rank says first. */
  private byte[] greeting(int rank) {
    return RawConnection.framed(Greeting.hello(new Member("greetings", rank, 8, library)));
  }

  private static final byte[] KINDS = {
    Wire.SET, Wire.GET, Wire.AWAIT, Wire.CAS, Wire.HOLD, Wire.KEYS, Wire.CANCEL, Wire.PING
  };

  /** A whole request of any kind. */
  static byte[] request(Random random) {
    byte kind = KINDS[random.nextInt(KINDS.length)];
    String key = "mutated/" + random.nextInt(5);
    byte[] value = new byte[random.nextInt(20)];
    return request(kind, random.nextInt(3), key, null, value);
  }

  /** A whole request with as many of these fields as its kind has. */
  static byte[] request(byte kind, int id, String key, byte[] expected, byte[] value) {
    byte[] fields =
        Encoding.bytes(
            out -> {
              if (kind == Wire.AWAIT) {
                out.writeInt(1);
              }
              if (kind != Wire.CANCEL && kind != Wire.PING) {
                out.write(Wire.text(key));
              }
              if (kind == Wire.CAS) {
                Encoding.putArray(out, expected);
              }
              if (List.of(Wire.SET, Wire.HOLD, Wire.AWAIT, Wire.CAS).contains(kind)) {
                Encoding.putArray(out, value);
              }
            });
    return RawConnection.framed(Wire.body(kind, id, fields));
  }

  @Override
  public void close() {
    open.forEach(RawConnection::close);
  }
}
