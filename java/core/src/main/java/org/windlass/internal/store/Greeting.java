// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.windlass.error.MismatchException;

/**
 * Greeting by which a member and a server prove to one another that they hold the same token.
 * docs/explanation/protocols.md has its frames. No frame contains the token, or can be used for
 * another connection or direction. Proofs and keys are HMACs over the body of HELLO and the part of
 * CHALLENGE's body that precedes the proof. These bodies contain both nonces, the job, the rank and
 * the size.
 *
 * <p>The frame REFUSED and the fields of HELLO up to the library are the same in every version of
 * the protocol.
 *
 * @param token this side's token
 * @param hello the body of HELLO
 * @param challenge the body of CHALLENGE without its proof
 */
record Greeting(Token token, byte[] hello, byte[] challenge) {
  private static final String OF_SERVER = "windlass store: server";
  private static final String OF_MEMBER = "windlass store: member";
  private static final String SERVER_SEALS = "windlass store: the server's frames";
  private static final String MEMBER_SEALS = "windlass store: the member's frames";

  static byte[] hello(Member member) {
    ByteBuffer place = ByteBuffer.allocate(2 * Integer.BYTES);
    return Wire.concat(
        Wire.body(Wire.HELLO, Wire.MAGIC),
        ByteBuffer.allocate(Integer.BYTES).putInt(Wire.PROTOCOL).array(),
        Wire.text(member.library()),
        Token.nonce(),
        place.putInt(member.rank()).putInt(member.size()).array(),
        Wire.text(member.job()));
  }

  /**
   * Decodes a HELLO.
   *
   * @param own version of the server's library, for messages
   * @throws MismatchException if the member has another version of the protocol
   */
  static Member hello(ByteBuffer body, String own) throws MalformedException {
    if (body.get() != Wire.HELLO || body.getInt() != Wire.MAGIC) {
      throw new MalformedException("no hello");
    }
    int protocol = body.getInt();
    String library = Texts.printable(Wire.text(body, Member.LIBRARY));
    if (protocol != Wire.PROTOCOL) {
      throw new MismatchException(
          "the member has " + version(protocol, library) + "; the store has "
              + version(Wire.PROTOCOL, own) + "; run both with one version");
    }
    Wire.bytes(body, Token.BYTES);
    int rank = body.getInt();
    int size = body.getInt();
    String job = Wire.text(body, Member.JOB);
    try {
      return new Member(job, rank, size, library);
    } catch (IllegalArgumentException e) {
      throw new MalformedException(String.valueOf(e.getMessage()));
    }
  }

  private static String version(int protocol, String library) {
    return "version " + (library.isEmpty() ? "unknown" : library) + ", store protocol " + protocol;
  }

  /** Returns the server's side of a greeting that begins with {@code hello}. */
  static Greeting answering(byte[] hello, Token token, String library) {
    byte[] kind = {Wire.CHALLENGE};
    byte[] challenge = Wire.concat(kind, Token.nonce(), Wire.text(library));
    return new Greeting(token, hello, challenge);
  }

  /**
   * Returns the member's side of a greeting; null if the server holds another token.
   *
   * @param whole the body of the received CHALLENGE
   */
  static @Nullable Greeting answered(
      byte[] hello, Token token, byte[] whole) throws MalformedException {
    int length = whole.length - Token.BYTES;
    if (length < 1 + Token.BYTES + Short.BYTES) {
      throw new MalformedException("a challenge of " + whole.length + " bytes");
    }
    Greeting greeting = new Greeting(token, hello, Arrays.copyOf(whole, length));
    byte[] claimed = Arrays.copyOfRange(whole, length, whole.length);
    return greeting.isHmac(claimed, OF_SERVER) ? greeting : null;
  }

  private byte[] hmac(String label) {
    return token.hmac(label, hello, challenge);
  }

  private boolean isHmac(byte[] claimed, String label) {
    return MessageDigest.isEqual(claimed, hmac(label));
  }

  byte[] wholeChallenge() {
    return Wire.concat(challenge, hmac(OF_SERVER));
  }

  byte[] proof() {
    return Wire.concat(new byte[] {Wire.PROOF}, hmac(OF_MEMBER));
  }

  boolean isProof(ByteBuffer body) throws MalformedException {
    if (body.get() != Wire.PROOF || body.remaining() != Token.BYTES) {
      throw new MalformedException("no proof");
    }
    return isHmac(Wire.bytes(body, Token.BYTES), OF_MEMBER);
  }

  /** Makes the seals of the server's frames, from the WELCOME on. */
  Seal serverSeal() {
    return new Seal(hmac(SERVER_SEALS));
  }

  /** Makes the seals of the member's frames after its PROOF. */
  Seal memberSeal() {
    return new Seal(hmac(MEMBER_SEALS));
  }

  static byte[] welcome(long silenceMs) {
    return ByteBuffer.allocate(1 + Long.BYTES).put(Wire.WELCOME).putLong(silenceMs).array();
  }
}
