// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.windlass.internal.Native;

/**
 * The frames by which a member and a server show one another that they hold the same token, in this
 * order. None tells the token, and none is good for a second meeting or the other direction.
 *
 * <pre>
 * HELLO      member  magic, protocol, library text; nonce, rank, size, job text
 * CHALLENGE  server  nonce, library text; the server's proof
 * PROOF      member  the member's proof; or REFUSED, where the server's is not by its token
 * WELCOME    server  milliseconds of silence that the server bears
 * REFUSED    either  code, text; then it closes the connection
 * </pre>
 *
 * <p>Each frame after the PROOF is sealed ({@link Seal}), a refusal too. The keys of the two
 * directions are HMACs like the proofs, so that whoever passes the greeting on without the token
 * can neither write nor change a frame.
 *
 * A proof is an HMAC over the HELLO and what the CHALLENGE has before its proof, and so over both
 * nonces, the job, rank and size; whose proof it is stands first. What the HELLO has up to its
 * library, and REFUSED, are the same in every version of the protocol.
 */
final class Greeting {
  private static final String OF_SERVER = "windlass store: server";
  private static final String SERVER_SEALS = "windlass store: the server's frames";
  private static final String MEMBER_SEALS = "windlass store: the member's frames";
  private static final String OF_MEMBER = "windlass store: member";

  private Greeting() {}

  /** What a HELLO says. */
  record Hello(int protocol, String library, Member member) {}

  /** The body of a HELLO. */
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

  /** The body of a CHALLENGE before its proof. */
  static byte[] challenge(String library) {
    byte[] utf8 = library.getBytes(StandardCharsets.UTF_8);
    ByteBuffer body = ByteBuffer.allocate(1 + Token.BYTES + Wire.textBytes(utf8));
    body.put(Wire.CHALLENGE).put(Token.nonce());
    Wire.putText(body, utf8);
    return body.array();
  }

  /** The whole CHALLENGE. */
  static ByteBuffer challenge(Token token, byte[] hello, byte[] challenge) {
    byte[] proof = token.proof(OF_SERVER, hello, challenge);
    return Wire.frame(challenge.length + proof.length).put(challenge).put(proof).flip();
  }

  /**
   * Returns a CHALLENGE without its proof.
   *
   * @return null where the server holds another token
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

  /** What a member sends instead of a PROOF where {@link #proven} gives null. */
  static ByteBuffer refusal() {
    return Wire.refused(Native.WL_RESOURCE, "");
  }

  /** Whether it says so in {@code body}, which shows nothing: what more there is goes unread. */
  static boolean isRefusal(ByteBuffer body) {
    return body.get(0) == Wire.REFUSED;
  }

  /** Whether {@code body} is a PROOF by who holds {@code token}. */
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

  /** How two versions are told to those who mix them. */
  static String versions(int protocol, String library) {
    return "version " + (library.isEmpty() ? "unknown" : library) + ", store protocol " + protocol;
  }
}
