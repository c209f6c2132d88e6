// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.nio.file.Path;
import java.util.List;
import org.windlass.bench.sample.Stamps;
import org.windlass.cli.out.WholeFile;

/** Writes raw stamps as CSV: a line for each rank and iteration, in nanoseconds on one clock. */
final class StampsFile implements AutoCloseable {
  private final WholeFile file;

  StampsFile(Path path) {
    file = WholeFile.create(path);
    file.write("op,bytes,batch,iteration,rank,ready_ns,leave_ns\n");
  }

  void write(String op, long bytes, List<Stamps> batches) {
    for (int batch = 0; batch < batches.size(); batch++) {
      Stamps stamps = batches.get(batch);
      for (int i = 0; i < stamps.iterations(); i++) {
        for (int rank = 0; rank < stamps.ranks(); rank++) {
          file.write(
              op + "," + bytes + "," + batch + "," + i + "," + rank + "," + stamps.ready(rank, i)
                  + "," + stamps.leave(rank, i) + "\n");
        }
      }
    }
  }

  /** Gives the complete file its final name. */
  void commit() {
    file.commit();
  }

  /** Removes the file unless it was committed. */
  @Override
  public void close() {
    file.close();
  }
}
