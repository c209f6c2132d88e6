// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.windlass.WindlassException;
import org.windlass.bench.Stamps;
import org.windlass.checkpoint.FileFault;

/** The raw stamps as CSV: one line a rank and iteration, nanoseconds on one clock. */
final class StampsFile implements AutoCloseable {
  private final Path path;
  private final BufferedWriter file;

  StampsFile(Path path) {
    this.path = path;
    try {
      file = Files.newBufferedWriter(path);
      file.write("op,bytes,batch,iteration,rank,ready_ns,leave_ns\n");
    } catch (IOException e) {
      throw failure(e);
    }
  }

  void write(String op, long bytes, List<Stamps> batches) {
    try {
      for (int batch = 0; batch < batches.size(); batch++) {
        Stamps stamps = batches.get(batch);
        for (int i = 0; i < stamps.iterations(); i++) {
          for (int rank = 0; rank < stamps.ranks(); rank++) {
            file.write(
                op
                    + ","
                    + bytes
                    + ","
                    + batch
                    + ","
                    + i
                    + ","
                    + rank
                    + ","
                    + stamps.ready(rank, i)
                    + ","
                    + stamps.leave(rank, i)
                    + "\n");
          }
        }
      }
    } catch (IOException e) {
      throw failure(e);
    }
  }

  @Override
  public void close() {
    try {
      file.close();
    } catch (IOException e) {
      throw failure(e);
    }
  }

  private WindlassException failure(IOException e) {
    return FileFault.writing(path, e);
  }
}
