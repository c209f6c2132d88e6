// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.windlass.internal.Native;

/**
 * A greeting, in which a member and a server prove to one another that they hold the same token.
 * docs/protocols.md has its frames. No frame contains the token, or can be used for another
 * connection or direction: proofs and keys are HMACs over the body of HELLO and that of CHALLENGE
 * before its proof, and these contain both nonces, the job, the rank and the size.
 *
 * <p>REFUSED, and the HELLO up to its library, are the same in every version of the protocol.
 *
 * @param challenge the body of CHALLENGE without its proof
 */
record Greeting(Token token, byte[] hello, byte[] challenge) {
  private static final String OF_SERVER = "windlass store: server";
  private static final String OF_MEMBER = "windlass store: member";
  private static final String SERVER_SEALS = "windlass store: the server's frames";
  private static final String MEMBER_SEALS = "windlass store: the member's frames";

  /** The contents of a HELLO. */
  record Hello(int protocol, String library, Member member) {}

  /** Returns the body of a HELLO. */
  static byte[] hello(Member member) {
    return Encoding.bytes(
        out -> {
          out.writeByte(Wire.HELLO);
          out.writeInt(Wire.MAGIC);
          out.writeInt(Wire.PROTOCOL);
          Wire.putText(out, member.library());
          out.write(Token.nonce());
          out.writeInt(member.rank());
          out.writeInt(member.size());
          Wire.putText(out, member.job());
        });
  }

  /** Reads a HELLO. If the protocol is another one than this, the result has no member. */
  static Hello hello(ByteBuffer body) throws MalformedException {
    if (body.get() != Wire.HELLO || body.getInt() != Wire.MAGIC) {
      throw new MalformedException("no hello");
    }
    int protocol = body.getInt();
    String library = Texts.printable(Wire.text(body, Member.LIBRARY));
    if (protocol != Wire.PROTOCOL) {
      body.position(body.limit());
      return new Hello(protocol, library, null);
    }
    Wire.bytes(body, Token.BYTES);
    int rank = body.getInt();
    int size = body.getInt();
    String job = Wire.text(body, Member.JOB);
    try {
      return new Hello(protocol, library, new Member(job, rank, size, library));
    } catch (IllegalArgumentException e) {
      throw new MalformedException(e.getMessage());
    }
  }

  /** Returns the server's side of a greeting that begins with {@code hello}. */
  static Greeting answering(byte[] hello, Token token, String library) {
    byte[] challenge =
        Encoding.bytes(
            out -> {
              out.writeByte(Wire.CHALLENGE);
              out.write(Token.nonce());
              Wire.putText(out, library);
            });
    return new Greeting(token, hello, challenge);
  }

  /**
   * Returns the member's side of a greeting.
   *
   * @param whole the body of the CHALLENGE that came
   * @return null if the server holds another token
   */
  static Greeting answered(byte[] hello, Token token, byte[] whole) throws MalformedException {
    int length = whole.length - Token.BYTES;
    if (length < 1 + Token.BYTES + Short.BYTES) {
      throw new MalformedException("a challenge of " + whole.length + " bytes");
    }
    Greeting greeting = new Greeting(token, hello, Arrays.copyOf(whole, length));
    byte[] claimed = Arrays.copyOfRange(whole, length, whole.length);
    return greeting.isHmac(claimed, OF_SERVER) ? greeting : null;
  }

  private byte[] hmac(String label) {
    return token.proof(label, hello, challenge);
  }

  private boolean isHmac(byte[] claimed, String label) {
    return token.proves(claimed, label, hello, challenge);
  }

  /** Returns the body of the CHALLENGE. */
  byte[] wholeChallenge() {
    return Encoding.bytes(
        out -> {
          out.write(challenge);
          out.write(hmac(OF_SERVER));
        });
  }

  /** Returns the body of the PROOF. */
  byte[] proof() {
    return Encoding.bytes(
        out -> {
          out.writeByte(Wire.PROOF);
          out.write(hmac(OF_MEMBER));
        });
  }

  /** Returns the body that a member sends instead of a PROOF to a server of another token. */
  static byte[] refusal() {
    return Wire.refused(Native.WL_RESOURCE, "");
  }

  /** Returns true if a member refuses the server. The rest of the body is not read. */
  static boolean isRefusal(ByteBuffer body) {
    return body.get(0) == Wire.REFUSED;
  }

  /** Returns true if {@code body} is the PROOF of this greeting. */
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
    return Encoding.bytes(
        out -> {
          out.writeByte(Wire.WELCOME);
          out.writeLong(silenceMs);
        });
  }

  /** Returns a version as messages about two versions name it. */
  static String versions(int protocol, String library) {
    return "version " + (library.isEmpty() ? "unknown" : library) + ", store protocol " + protocol;
  }
}
