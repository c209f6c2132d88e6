// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import org.jspecify.annotations.Nullable;
import org.windlass.layout.Layout;

/**
 * Describes two linked jobs, identically in both. For packages of Windlass.
 *
 * @param whose text after the link's name in messages; says which ranks are of which job
 * @param senders number of ranks of the source, which are the first ones of the link
 * @param hasPythonSenders true if the senders are Python ranks
 * @param from layout of tensors for which the source names none; may be null
 * @param to layout of tensors for which the target names none; may be null
 * @hidden
 */
public record LinkedJobs(
    String whose, int senders, boolean hasPythonSenders, @Nullable Layout from,
    @Nullable Layout to) {
  /** Returns a text that is the same on all ranks of both jobs, Python ranks too. */
  String text(String name) {
    return "connects as '" + name + "' from layout " + qualified(from) + " to layout "
        + qualified(to) + whose;
  }

  private static String qualified(@Nullable Layout layout) {
    return layout == null ? "none" : layout.qualified();
  }
}
