// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;

/** The same as {@link Resharding}, by processes that each run the block. */
public abstract class Together extends Scene implements Launched {
  @Override
  public final void play() throws Exception {
    fragment();
    for (String rank : List.of("08", "09", "10")) {
      assertThat(Path.of("serving", "rank-000" + rank + ".safetensors")).isRegularFile();
    }
  }
}
