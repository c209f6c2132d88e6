// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Failure.assertFails;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;

/** Where a token comes from, and what it proves. */
class TokenTest {
  @TempDir private Path folder;

  @Test
  void itIsTheSameFromItsFileAndFromTheEnvironment() throws Exception {
    Token token = Token.random();
    Path file = folder.resolve("token");
    token.write(file);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
    for (Map<String, String> environment :
        List.of(
            Map.of(Token.VARIABLE, token.digits(), Token.FILE_VARIABLE, ""),
            Map.of(Token.FILE_VARIABLE, file.toString()))) {
      Token read = Token.fromEnvironment(environment).orElseThrow();
      assertThat(read.digits()).isEqualTo(token.digits());
    }
    for (Map<String, String> environment :
        List.of(
            Map.<String, String>of(), Map.of(Token.VARIABLE, "", Token.FILE_VARIABLE, ""))) {
      assertThat(Token.fromEnvironment(environment)).isEmpty();
    }
    assertThat(token.toString()).doesNotContain(token.digits());
    assertFails(Native.WL_RESOURCE, () -> token.write(file)).contains("token");
  }

  @Test
  void aFileThatOthersMayReadIsRefused() throws Exception {
    Path file = folder.resolve("token");
    Token.random().write(file);
    for (String open : List.of("rw-r-----", "rw----r--", "rw--w----", "rw------x")) {
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(open));
      assertFails(Native.WL_RESOURCE, () -> Token.fromFile(file))
          .contains(file.toString(), "chmod 600");
    }
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("r--------"));
    assertThat(Token.fromFile(file)).isNotNull();
    Path inside = Files.createDirectory(folder.resolve("inside"));
    for (String mode : List.of("rwxr-xr-x", "rwx------")) {
      Files.setPosixFilePermissions(inside, PosixFilePermissions.fromString(mode));
      assertFails(Native.WL_INVALID_ARGUMENT, () -> Token.fromFile(inside))
          .contains(inside + " is no regular file");
    }
    for (Path none : List.of(folder.resolve("none"), file.resolve("none"))) {
      Map<String, String> named = Map.of(Token.FILE_VARIABLE, none.toString());
      assertFails(Native.WL_INVALID_ARGUMENT, () -> Token.fromEnvironment(named))
          .contains("WINDLASS_TOKEN_FILE: " + none + ": cannot be read");
    }
  }

  /** What is read is what was checked, whatever the name leads to before and after. */
  @Test
  void aFileThatOthersMayReadIsNeverTakenThroughAChangingName() throws Exception {
    Path good = folder.resolve("good");
    Path bad = folder.resolve("bad");
    Path name = folder.resolve("token");
    Token own = Token.random();
    own.write(good);
    Token.random().write(bad);
    Files.setPosixFilePermissions(bad, PosixFilePermissions.fromString("rw-r--r--"));
    Files.createSymbolicLink(name, good);
    AtomicBoolean over = new AtomicBoolean();
    FutureTask<Integer> flips =
        new FutureTask<>(
            () -> {
              int count = 0;
              for (; !over.get(); count++) {
                Path next = folder.resolve("next");
                Files.createSymbolicLink(next, count % 2 == 0 ? bad : good);
                Files.move(next, name, StandardCopyOption.ATOMIC_MOVE);
              }
              return count;
            });
    new Thread(flips, "flips").start();
    int taken = 0;
    int refused = 0;
    long startNs = System.nanoTime();
    while (System.nanoTime() - startNs < 1_000_000_000 || taken == 0 || refused == 0) {
      try {
        assertThat(Token.fromFile(name).digits()).isEqualTo(own.digits());
        taken++;
      } catch (WindlassException e) {
        assertThat(e).hasMessageContaining("is open to others than its owner");
        refused++;
      }
    }
    over.set(true);
    assertThat(flips.get()).isPositive();
  }

  @Test
  void whatIsNoTokenIsRefusedAndNotShown() throws Exception {
    String digits = Token.random().digits();
    for (String wrong :
        List.of(
            "\n", digits.substring(1), digits + "0", digits + "00", "x" + digits.substring(1))) {
      assertFails(
              Native.WL_INVALID_ARGUMENT,
              () -> Token.fromEnvironment(Map.of(Token.VARIABLE, wrong)))
          .contains(Token.VARIABLE, "64")
          .doesNotContain(digits.substring(2, 60));
      Path file = Files.createTempFile(folder, "token", "");
      Files.writeString(file, wrong);
      assertFails(Native.WL_INVALID_ARGUMENT, () -> Token.fromFile(file))
          .contains(file.toString());
    }
    assertFails(
            Native.WL_INVALID_ARGUMENT,
            () ->
                Token.fromEnvironment(Map.of(Token.VARIABLE, digits, Token.FILE_VARIABLE, "token")))
        .contains("both");
  }

  @Test
  void aProofIsOfItsPurposeAndPartsAlone() {
    Token token = Token.random();
    byte[] a = {1, 2};
    byte[] b = {3};
    byte[] hmac = token.hmac("one", a, b);
    assertThat(token.hmac("one", a, b)).isEqualTo(hmac);
    assertThat(token.hmac("two", a, b)).isNotEqualTo(hmac);
    assertThat(token.hmac("one", b, a)).isNotEqualTo(hmac);
    assertThat(token.hmac("one", new byte[] {1}, new byte[] {2, 3})).isNotEqualTo(hmac);
    assertThat(Token.random().hmac("one", a, b)).isNotEqualTo(hmac);
  }
}
