// SPDX-License-Identifier: Apache-2.0
/** Moves tensors between ranks: communicators, tensors, layouts, plans and transfers. */
@SuppressWarnings("module") // Those that internal is exported to are compiled after this one.
module org.windlass {
  requires com.fasterxml.jackson.core;
  requires org.bytedeco.javacpp;
  requires static jdk.jfr;
  requires static org.jspecify;

  exports org.windlass;
  exports org.windlass.error;
  exports org.windlass.experts;
  exports org.windlass.gpu;
  exports org.windlass.job;
  exports org.windlass.kernel;
  exports org.windlass.launch;
  exports org.windlass.layout;
  exports org.windlass.link;
  exports org.windlass.manifest;
  exports org.windlass.plan;
  exports org.windlass.report;
  exports org.windlass.transfer;
  exports org.windlass.internal to
      org.windlass.checkpoint, org.windlass.etcd;
  exports org.windlass.internal.json to
      org.windlass.checkpoint;
  exports org.windlass.internal.memory to
      org.windlass.checkpoint;
  exports org.windlass.internal.store to
      org.windlass.etcd;

  uses org.windlass.internal.store.StoreProvider;
}
