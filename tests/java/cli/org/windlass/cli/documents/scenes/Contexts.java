// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.manifest.CommGroup;
import org.windlass.manifest.CommManifest;
import org.windlass.manifest.ElementType;
import org.windlass.manifest.Slot;

/** Three ranks that open the manifest of the page, of which two are members of its group. */
public abstract class Contexts extends Scene {
  protected final CommManifest manifest =
      new CommManifest(
          List.of(
              new CommGroup(
                  List.of(0, 2),
                  List.of(
                      new Slot(
                          "scratch", new Slot.Elements(ElementType.FLOAT32, 257), true, false),
                      new Slot("codes", new Slot.Bytes(10), false, true)))));

  protected final Tensor scratch = Tensor.allocate(DType.F32, 257);
  protected final Tensor codes = Tensor.allocate(DType.U8, 10).fill(9);
  protected Communicator comm;

  @Override
  public final void play() throws Exception {
    onRanks(
        3,
        Contexts.class,
        (own, comm) -> {
          own.comm = comm;
          own.fragment();
          // A rank that is no member leaves its host tensor alone.
          assertThat(own.codes.getLong(9)).isEqualTo(List.of(0, 9, 1).get(comm.rank()).longValue());
        });
  }
}
