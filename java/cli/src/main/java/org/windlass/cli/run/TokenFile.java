// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.windlass.checkpoint.FileFault;
import org.windlass.error.AbortedException;

/**
 * The file with a job's token, a line of hexadecimal digits that only the file's owner may read.
 */
public final class TokenFile implements AutoCloseable {
  /** Number of random bytes. Each is two digits in the file. */
  private static final int BYTES = 32;

  private RunFolder folder;
  private boolean isClosed;

  /** Creates the file under {@code java.io.tmpdir}. Throws if this is closed. */
  public synchronized Path create() {
    if (isClosed) {
      throw new AbortedException("the token file is closed");
    }
    byte[] token = new byte[BYTES];
    new SecureRandom().nextBytes(token);
    try {
      folder = RunFolder.create("token");
      return Files.writeString(
          folder.newFile("token"), HexFormat.of().formatHex(token) + "\n");
    } catch (IOException fault) {
      throw FileFault.writingFolder(Path.of(System.getProperty("java.io.tmpdir")), fault);
    }
  }

  @Override
  public synchronized void close() throws IOException {
    isClosed = true;
    if (folder != null) {
      folder.close();
    }
  }
}
