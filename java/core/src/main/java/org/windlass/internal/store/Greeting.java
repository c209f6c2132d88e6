// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.windlass.internal.Native;

/**
 * The frames by which a member and a server prove to one another that they hold the same token, in
 * this order. No frame contains the token, or can be used for another connection or direction.
 *
 * <pre>
 * HELLO      member  magic, protocol, library text; nonce, rank, size, job text
 * CHALLENGE  server  nonce, library text; the server's proof
 * PROOF      member  the member's proof; or REFUSED if the server's proof is wrong
 * WELCOME    server  milliseconds of silence that the server bears
 * REFUSED    either  code, text; then it closes the connection
 * </pre>
 *
 * <p>Each frame after the PROOF has a {@link Seal}, a refusal too. The keys of both directions are
 * HMACs like the proofs. A relay without the token can therefore neither write nor change a frame.
 *
 * <p>A proof is an HMAC over a label, the HELLO, and the CHALLENGE before its proof. These contain
 * both nonces, the job, the rank and the size. REFUSED, and the HELLO up to its library, are the
 * same in every version of the protocol.
 */
final class Greeting {
  private static final String OF_SERVER = "windlass store: server";
  private static final String SERVER_SEALS = "windlass store: the server's frames";
  private static final String MEMBER_SEALS = "windlass store: the member's frames";
  private static final String OF_MEMBER = "windlass store: member";

  private Greeting() {}

  /** The contents of a HELLO. */
  record Hello(int protocol, String library, Member member) {}

  /** Makes the body of a HELLO. */
  static byte[] hello(Member member) {
    byte[] library = member.library().getBytes(StandardCharsets.UTF_8);
    byte[] job = member.job().getBytes(StandardCharsets.UTF_8);
    ByteBuffer body =
        ByteBuffer.allocate(
            1 + 4 * Integer.BYTES + Wire.textBytes(library) + Token.BYTES + Wire.textBytes(job));
    body.put(Wire.HELLO).putInt(Wire.MAGIC).putInt(Wire.PROTOCOL);
    Wire.putText(body, library);
    body.put(Token.nonce()).putInt(member.rank()).putInt(member.size());
    Wire.putText(body, job);
    return body.array();
  }

  /** Reads a HELLO. If the protocol is another one than this, the result has no member. */
  static Hello hello(ByteBuffer body) throws MalformedException {
    if (body.get() != Wire.HELLO || body.getInt() != Wire.MAGIC) {
      throw new MalformedException("no hello");
    }
    int protocol = body.getInt();
    String library = Texts.printable(Wire.text(body, Member.LIBRARY));
    if (protocol != Wire.PROTOCOL) {
      return new Hello(protocol, library, null);
    }
    Wire.bytes(body, Token.BYTES);
    int rank = body.getInt();
    int size = body.getInt();
    String job = Wire.text(body, Member.JOB);
    Wire.end(body);
    try {
      return new Hello(protocol, library, new Member(job, rank, size, library));
    } catch (IllegalArgumentException e) {
      throw new MalformedException(e.getMessage());
    }
  }

  /** Makes the body of a CHALLENGE before its proof. */
  static byte[] challenge(String library) {
    byte[] utf8 = library.getBytes(StandardCharsets.UTF_8);
    ByteBuffer body = ByteBuffer.allocate(1 + Token.BYTES + Wire.textBytes(utf8));
    body.put(Wire.CHALLENGE).put(Token.nonce());
    Wire.putText(body, utf8);
    return body.array();
  }

  /** Makes the whole CHALLENGE. */
  static ByteBuffer challenge(Token token, byte[] hello, byte[] challenge) {
    byte[] proof = token.proof(OF_SERVER, hello, challenge);
    return Wire.frame(challenge.length + proof.length).put(challenge).put(proof).flip();
  }

  /**
   * Returns a CHALLENGE without its proof.
   *
   * @return null if the server holds another token
   */
  static byte[] proven(Token token, byte[] hello, byte[] whole) throws MalformedException {
    int length = whole.length - Token.BYTES;
    if (length < 1 + Token.BYTES + Short.BYTES) {
      throw new MalformedException("a challenge of " + whole.length + " bytes");
    }
    byte[] challenge = Arrays.copyOf(whole, length);
    byte[] claimed = Arrays.copyOfRange(whole, length, whole.length);
    return token.proves(claimed, OF_SERVER, hello, challenge) ? challenge : null;
  }

  /** Makes the PROOF that answers a CHALLENGE. */
  static ByteBuffer answer(Token token, byte[] hello, byte[] challenge) {
    byte[] proof = token.proof(OF_MEMBER, hello, challenge);
    return Wire.frame(1 + proof.length).put(Wire.PROOF).put(proof).flip();
  }

  /** Makes what a member sends instead of a PROOF if {@link #proven} returns null. */
  static ByteBuffer refusal() {
    return Wire.refused(Native.WL_RESOURCE, "");
  }

  /** Returns true if a member refuses the server. The rest of the body is not read. */
  static boolean isRefusal(ByteBuffer body) {
    return body.get(0) == Wire.REFUSED;
  }

  /** Returns true if {@code body} is a PROOF made with {@code token}. */
  static boolean proves(ByteBuffer body, Token token, byte[] hello, byte[] challenge)
      throws MalformedException {
    if (body.get() != Wire.PROOF || body.remaining() != Token.BYTES) {
      throw new MalformedException("no proof");
    }
    return token.proves(Wire.bytes(body, Token.BYTES), OF_MEMBER, hello, challenge);
  }

  /** Makes the seals of the server's frames, from the WELCOME on. */
  static Seal ofServer(Token token, byte[] hello, byte[] challenge) {
    return new Seal(token.proof(SERVER_SEALS, hello, challenge));
  }

  /** Makes the seals of the member's frames after its PROOF. */
  static Seal ofMember(Token token, byte[] hello, byte[] challenge) {
    return new Seal(token.proof(MEMBER_SEALS, hello, challenge));
  }

  static ByteBuffer welcome(long silenceMs) {
    return Wire.frame(1 + Long.BYTES).put(Wire.WELCOME).putLong(silenceMs).flip();
  }

  /** Returns a version as messages about two versions name it. */
  static String versions(int protocol, String library) {
    return "version " + (library.isEmpty() ? "unknown" : library) + ", store protocol " + protocol;
  }
}
