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
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;

/**
 * Secret that the members of a store share: {@link #BYTES} random bytes, written as hexadecimal
 * digits. It comes from a file that only its owner can read, or from the environment. It never
 * comes from arguments, because all users of a machine can see those.
 */
public final class Token {
  public static final int BYTES = 32;

  public static final String VARIABLE = "WINDLASS_TOKEN";

  public static final String FILE_VARIABLE = "WINDLASS_TOKEN_FILE";

  private static final int DIGITS = 2 * BYTES;
  private static final int NAME_BYTES = 16;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final byte[] secret;

  private Token(byte[] secret) {
    this.secret = secret;
  }

  public static Token random() {
    return new Token(nonce());
  }

  /** Reads the token of the environment. Empty if neither variable has a value. */
  public static Optional<Token> fromEnvironment(Map<String, String> environment) {
    String digits = environment.getOrDefault(VARIABLE, "");
    String file = environment.getOrDefault(FILE_VARIABLE, "");
    if (!digits.isEmpty() && !file.isEmpty()) {
      throw new InvalidArgumentException(
          VARIABLE + " and " + FILE_VARIABLE + " are both set; unset one of them");
    }
    if (!digits.isEmpty()) {
      return Optional.of(parse(digits, VARIABLE));
    }
    if (file.isEmpty()) {
      return Optional.empty();
    }
    // A failure to load the natives has nothing to do with the variable.
    Natives.require();
    try {
      return Optional.of(fromFile(Path.of(file)));
    } catch (WindlassException e) {
      throw Waits.during(FILE_VARIABLE, e);
    }
  }

  /**
   * Reads the token of the environment.
   *
   * @throws org.windlass.error.InvalidArgumentException with message {@code absent}, if there is
   *     none
   */
  public static Token required(Map<String, String> environment, String absent) {
    return fromEnvironment(environment).orElseThrow(() -> new InvalidArgumentException(absent));
  }

  /**
   * Reads a regular file that only its owner may access. The checks apply to the file that is read,
   * even if its name refers to another file meanwhile.
   */
  public static Token fromFile(Path file) {
    Natives.require();
    ByteBuffer text = ByteBuffer.allocateDirect(DIGITS + 2);
    try (Scratch scratch = Scratch.take()) {
      int code =
          Native.wl_file_read_private(
              NativeMemory.utf8(file.toString()),
              NativeMemory.address(text),
              text.capacity(),
              scratch.out(),
              scratch.error());
      Failures.check(code, scratch);
      text.limit((int) scratch.outValue());
    }
    String digits = StandardCharsets.UTF_8.decode(text).toString().strip();
    return parse(digits, file.toString());
  }

  public static Token parse(String digits, String where) {
    if (!digits.matches("[0-9A-Fa-f]{" + DIGITS + "}")) {
      throw new InvalidArgumentException(
          where + " has no token, which is " + DIGITS + " hexadecimal digits");
    }
    return new Token(HexFormat.of().parseHex(digits));
  }

  /** Writes the token to a new file that only its owner may access. */
  public void write(Path file) {
    byte[] line = (digits() + "\n").getBytes(StandardCharsets.US_ASCII);
    try (SeekableByteChannel channel =
        Files.newByteChannel(
            file,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
      Channels.newOutputStream(channel).write(line);
    } catch (IOException | UnsupportedOperationException e) {
      throw new ResourceException(file + ": a token can't be written: " + e, e);
    }
  }

  /**
   * Returns the hexadecimal digits, for the variable {@link #VARIABLE} of another process of the
   * same job.
   */
  public String digits() {
    return HexFormat.of().formatHex(secret);
  }

  /** Derives a name from this token and {@code text}. The name reveals neither. */
  public String name(String text) {
    byte[] proof = hmac("windlass store: name", text.getBytes(StandardCharsets.UTF_8));
    return HexFormat.of().formatHex(proof, 0, NAME_BYTES);
  }

  static byte[] nonce() {
    byte[] bytes = new byte[BYTES];
    RANDOM.nextBytes(bytes);
    return bytes;
  }

  /**
   * Returns HMAC-SHA256 over {@code purpose}, a zero byte, and the length and bytes of each part.
   * It proves knowledge of the token without revealing it.
   */
  byte[] hmac(String purpose, byte[]... parts) {
    Hmac hmac = new Hmac(secret);
    hmac.update(purpose.getBytes(StandardCharsets.US_ASCII));
    hmac.update((byte) 0);
    for (byte[] part : parts) {
      hmac.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).array());
      hmac.update(part);
    }
    return hmac.code();
  }

  @Override
  public String toString() {
    return "a token";
  }
}
