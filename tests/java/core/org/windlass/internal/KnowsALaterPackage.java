// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import org.windlass.Tensor;

/** A breach of the order of packages, which LayerRulesTest has to find. */
final class KnowsALaterPackage {
  final Tensor tensor;

  KnowsALaterPackage(Tensor tensor) {
    this.tensor = tensor;
  }
}
