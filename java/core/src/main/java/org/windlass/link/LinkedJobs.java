// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import org.jspecify.annotations.Nullable;
import org.windlass.layout.Layout;

/**
 * Describes two linked jobs. Both jobs have the same description. For packages of Windlass.
 *
 * @param whose text after the link's name in messages, which names the ranks of each job
 * @param senders number of ranks of the sending job, which are the first ones of the link
 * @param hasPythonSenders true if the senders are Python ranks
 * @param from layout of the senders' tensors that are added without one; may be null
 * @param to layout of the receivers' tensors that are added without one; may be null
 * @hidden
 */
public record LinkedJobs(
    String whose, int senders, boolean hasPythonSenders, @Nullable Layout from,
    @Nullable Layout to) {
  /**
   * Returns a text by which ranks compare their links. It is the same on all ranks of both jobs,
   * also on Python ranks.
   *
   * @param name name of the link
   */
  String text(String name) {
    return "connects as '" + name + "' from layout " + qualified(from) + " to layout "
        + qualified(to) + whose;
  }

  private static String qualified(@Nullable Layout layout) {
    return layout == null ? "none" : layout.qualified();
  }
}
