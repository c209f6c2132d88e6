// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;

/** What a job takes for the announcement of another one. */
class AnnouncementTest {
  private static Announcement announcement(
      String versions, String job, String instance, int ranks, long deadlineNs) {
    Start.Config options = new Start.Config(1, 0, 0, deadlineNs, false);
    return new Announcement(versions, job, instance, 17, ranks, "2:R", options, true);
  }

  @Test
  void whatAJobWritesIsRead() {
    Announcement job = announcement("1", "trainer", "first", 2, 5);
    assertThat(Announcement.of(job.toBytes(), "1")).isEqualTo(job);
    assertThat(Announcement.peek(job.toBytes())).isEqualTo(job);
    byte[] ofLaterVersion = Arrays.copyOf(job.toBytes(), job.toBytes().length + 1);
    assertThat(Announcement.peek(ofLaterVersion)).isEqualTo(job);
  }

  @ParameterizedTest
  @CsvSource({
    "1000, 1, 1, 2, 5, it has a text of 1000 characters where 512 are allowed",
    "1, 200, 1, 2, 5, it has a text of 200 characters where 128 are allowed",
    "1, 1, 200, 2, 5, it has a text of 200 characters where 128 are allowed",
    "1, 1, 1, 0, 5, it has 0 ranks",
    "1, 1, 1, 5000, 5, it has 5000 ranks",
    "1, 1, 1, 2, 0, its deadline is 0 ns"
  })
  void whatIsOutOfBoundsIsRefused(
      int versions, int job, int instance, int ranks, long deadlineNs, String why) {
    String version = "v".repeat(versions);
    byte[] bytes =
        announcement(version, "j".repeat(job), "i".repeat(instance), ranks, deadlineNs).toBytes();
    requireRefused(bytes, version, why);
  }

  private static void requireRefused(byte[] bytes, String version, String why) {
    Failure.assertFails(
            Native.WL_MISMATCH, () -> Announcement.of(bytes, version))
        .isEqualTo("the other job's description of itself can't be read: " + why);
  }

  @Test
  void anotherLengthIsRefused() {
    byte[] bytes = announcement("1", "trainer", "first", 2, 5).toBytes();
    requireRefused(Arrays.copyOf(bytes, bytes.length + 1), "1", "it has 1 bytes too many");
    for (int length = 0; length < bytes.length; length++) {
      byte[] shorter = Arrays.copyOf(bytes, length);
      requireRefused(shorter, "1", "it ends early");
      assertThat(Announcement.peek(shorter)).isNull();
    }
  }
}
