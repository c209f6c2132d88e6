// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import org.apache.spark.SparkConf;

/** Executors of one host, which share memory. */
class ExecutorsTest extends ExecutorCases {
  @Override
  boolean isEachAHost() {
    return false;
  }

  @Override
  void tell(SparkConf conf) {}
}
