// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;

/**
 * The secret of those who belong to a store: {@link #BYTES} random bytes, written as hexadecimal
 * digits. It comes from a file that its owner alone may read or from the environment, never from
 * arguments, which all users of a machine see.
 */
public final class Token {
  public static final int BYTES = 32;

  /** The environment variable that has the digits. */
  public static final String VARIABLE = "WINDLASS_TOKEN";

  /** The environment variable that names the file. */
  public static final String FILE_VARIABLE = "WINDLASS_TOKEN_FILE";

  private static final int DIGITS = 2 * BYTES;

  /** Bytes of a name. */
  private static final int NAME = 16;

  private static final SecureRandom RANDOM = new SecureRandom();
  private final byte[] secret;

  private Token(byte[] secret) {
    this.secret = secret;
  }

  /** A new one. */
  public static Token random() {
    return new Token(nonce());
  }

  /**
   * What {@link #VARIABLE} or {@link #FILE_VARIABLE} give; empty where neither is set. One that is
   * set to nothing is not set.
   */
  public static Optional<Token> fromEnvironment(
      Map<String, String> environment, FailureMaker failures) {
    String digits = environment.getOrDefault(VARIABLE, "");
    String file = environment.getOrDefault(FILE_VARIABLE, "");
    if (!digits.isEmpty() && !file.isEmpty()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          VARIABLE + " and " + FILE_VARIABLE + " are both set; unset one of them");
    }
    if (!digits.isEmpty()) {
      return Optional.of(parse(digits, VARIABLE, failures));
    }
    FailureMaker named =
        (code, message, cause, operation, culprits) ->
            failures.make(code, FILE_VARIABLE + ": " + message, cause, operation, culprits);
    return file.isEmpty() ? Optional.empty() : Optional.of(fromFile(Path.of(file), named));
  }

  /**
   * What a regular file has, which nobody but its owner may read or write: that which is read is
   * the one that is checked, whatever its name leads to meanwhile.
   */
  public static Token fromFile(Path file, FailureMaker failures) {
    Natives.require(failures);
    ByteBuffer text = ByteBuffer.allocateDirect(DIGITS + 2);
    try (Scratch scratch = Scratch.take()) {
      Failures.check(
          Native.wl_file_read_private(
              NativeMemory.utf8(file.toString()),
              NativeMemory.address(text),
              text.capacity(),
              scratch.out(),
              scratch.error()),
          scratch,
          failures);
      text.limit((int) scratch.outValue());
    }
    String digits = StandardCharsets.UTF_8.decode(text).toString().strip();
    return parse(digits, file.toString(), failures);
  }

  /**
   * What {@code digits} are.
   *
   * @param where they stand
   */
  public static Token parse(String digits, String where, FailureMaker failures) {
    try {
      byte[] secret = HexFormat.of().parseHex(digits);
      if (secret.length == BYTES) {
        return new Token(secret);
      }
    } catch (IllegalArgumentException e) {
      // Said below, without the digits.
    }
    throw failures.make(
        Native.WL_INVALID_ARGUMENT,
        where + " has no token, which is " + DIGITS + " hexadecimal digits");
  }

  /** Writes it to a new file that nobody but its owner may read or write. */
  public void write(Path file, FailureMaker failures) {
    byte[] line = (digits() + "\n").getBytes(StandardCharsets.US_ASCII);
    try (SeekableByteChannel channel =
        Files.newByteChannel(
            file,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
      Channels.newOutputStream(channel).write(line);
    } catch (IOException | UnsupportedOperationException e) {
      throw failures.make(
          Native.WL_RESOURCE, file + ": a token can't be written: " + e, e, "", List.of());
    }
  }

  /** What {@link #VARIABLE} may be set to for a process that belongs. */
  public String digits() {
    return HexFormat.of().formatHex(secret);
  }

  /** A name for {@code text} that no other token leads to; it shows nothing of either. */
  public String name(String text) {
    byte[] proof = proof("windlass store: name", text.getBytes(StandardCharsets.UTF_8));
    return HexFormat.of().formatHex(proof, 0, NAME);
  }

  /** As many bytes as a token has, which nobody had before. */
  static byte[] nonce() {
    byte[] bytes = new byte[BYTES];
    RANDOM.nextBytes(bytes);
    return bytes;
  }

  /**
   * What shows, without showing the token, that who has said or heard {@code parts} holds it:
   * HMAC-SHA256 over {@code purpose}, a zero and each part after its length.
   */
  byte[] proof(String purpose, byte[]... parts) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret, "HmacSHA256"));
      mac.update(purpose.getBytes(StandardCharsets.US_ASCII));
      mac.update((byte) 0);
      for (byte[] part : parts) {
        mac.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).array());
        mac.update(part);
      }
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JDK has HmacSHA256", e);
    }
  }

  /** Whether {@code claimed} is that proof, in a time that doesn't depend on where they differ. */
  boolean proves(byte[] claimed, String purpose, byte[]... parts) {
    return MessageDigest.isEqual(claimed, proof(purpose, parts));
  }

  /** Without the secret. */
  @Override
  public String toString() {
    return "a token";
  }
}
