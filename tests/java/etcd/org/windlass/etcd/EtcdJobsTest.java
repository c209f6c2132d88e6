// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.PeerLostException;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;

/** Jobs that connect through etcd, and connect again when the one whose store it was has gone. */
@Timeout(240)
class EtcdJobsTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Layout ALONE = DeviceMesh.of(1).layout(Placement.replicate());

  private static Job job(String name) {
    Etcd.load(System.getenv("WINDLASS_LINK_RENDEZVOUS"));
    return Job.fromEnvironment(name, CommunicatorOptions.defaults(), LONG);
  }

  /** Sends a version, and ends once it has been told to. */
  static final class Trainer {
    public static void main(String[] arguments) throws Exception {
      try (Job job = job("trainer")) {
        System.out.println("is there");
        try (Link link = job.connect("policy", Role.SOURCE, LONG);
            Tensor own = Tensor.allocate(DType.I64, 2).copyFrom(new long[] {4, 2});
            LinkTransfer transfer =
                link.transferBuilder().add("w", new long[] {2}, own, ALONE).register(LONG)) {
          transfer.send(System.currentTimeMillis(), LONG);
          System.out.println("sent");
          System.in.read();
        }
      }
    }
  }

  /** Receives a version of each of two trainers, however often it has to connect. */
  static final class Inference {
    public static void main(String[] arguments) {
      try (Job job = job("inference")) {
        for (int i = 1; i <= 2; ) {
          try (Link link = job.connect("policy", Role.TARGET, LONG);
              Tensor own = Tensor.allocate(DType.I64, 2);
              LinkTransfer transfer =
                  link.transferBuilder().into("w", new long[] {2}, own, ALONE).register(LONG)) {
            transfer.receive(LONG);
            System.out.println("has " + i + ": " + transfer.tensor("w").getLong(0));
            i++;
            transfer.receive(LONG);
          } catch (AbortedException | PeerLostException e) {
            System.out.println("lost: " + e.getMessage());
          }
        }
      }
    }
  }

  private static Map<String, String> variables(String job) {
    return Map.of(
        "WINDLASS_RANK", "0",
        "WINDLASS_WORLD_SIZE", "1",
        "WINDLASS_JOB", job,
        "WINDLASS_LINK_RENDEZVOUS", Etcd.shared().address() + "-jobs");
  }

  @Test
  void jobsConnectAndConnectAgain() throws Exception {
    try (Child first = new Child(Trainer.class, variables("first"))) {
      first.line("is there"); // so that the store is its
      try (Child inference = new Child(Inference.class, variables("inference"))) {
        assertThat(inference.line("has")).isEqualTo("has 1: 4");
        first.line("sent");
        first.kill();
        inference.line("lost");
        try (Child second = new Child(Trainer.class, variables("second"))) {
          assertThat(inference.line("has")).isEqualTo("has 2: 4");
          second.line("sent");
        }
        inference.line("lost");
        inference.awaitEnd();
      }
    }
  }
}
