// SPDX-License-Identifier: Apache-2.0
module org.windlass.consumer {
  requires org.windlass;
  requires org.windlass.checkpoint;
}
