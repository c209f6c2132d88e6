// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.InvalidArgumentException;

class LinkSpeedsTest {
  private static final String TABLE =
      """
      {"within": {"GBps": 10}, "between": {"GBps": 2, "us": 50},
       "pairs": [{"src": 0, "dst": 1, "GBps": 0.5, "us": 200}, {"src": 2, "dst": 0, "GBps": 1e-1}]}
      """;

  private static void predicts(
      double seconds, String bound, List<HostTraffic.Within> within, Traffic.Link... between) {
    LinkSpeeds.Prediction found =
        LinkSpeeds.parse(TABLE).predict(new HostTraffic(List.of(between), within));
    assertThat(found.seconds()).isEqualTo(seconds, within(1e-12));
    assertThat(found.bound()).isEqualTo(bound);
  }

  private static Traffic.Link link(int source, int target, long bytes) {
    return new Traffic.Link(source, target, bytes);
  }

  @Test
  void theSlowestBounds() {
    predicts(0, "nothing", List.of());
    predicts(0.2, "what ranks of host 3 get", List.of(new HostTraffic.Within(3, 2_000_000_000)));
    predicts(50e-6 + 1e-3, "what host 1 sends", List.of(), link(1, 0, 2_000_000));
    // A host's port is shared by all that it sends to, and by all that it gets from.
    predicts(50e-6 + 3e-3, "what host 1 sends", List.of(), link(1, 0, 2_000_000), link(1, 2, 4_000_000));
    predicts(
        50e-6 + 3e-3, "what host 3 gets of others", List.of(), link(1, 3, 2_000_000), link(2, 3, 4_000_000));
    // What has a link of its own takes nothing of the ports.
    predicts(200e-6 + 2e-3, "the link of hosts 0 -> 1", List.of(), link(0, 1, 1_000_000), link(0, 2, 2_000_000));
    predicts(50e-6 + 1e-2, "the link of hosts 2 -> 0", List.of(), link(2, 0, 1_000_000));
    predicts(50e-6 + 5e-4, "what host 1 sends", List.of(), link(1, 0, 1_000_000));
  }

  @Test
  void whatIsNoTableIsRefusedWithItsPlace(@TempDir Path folder) throws IOException {
    refused("[]", "links: the whole is a list, not an object");
    refused("{}", "links: within is missing; a table is such as {\"within\"");
    refused("{\"within\": {\"GBps\": 1}}", "links: between is missing");
    refused("{\"within\": 3}", "within is 3, not an object");
    refused("{\"within\": {}}", "within.GBps is missing, in 10^9 bytes a second");
    refused("{\"within\": {\"GBps\": 1, \"us\": 1}}", "within: the key \"us\" is unknown; known are GBps");
    refused("{\"between\": {\"GBps\": 0}}", "between.GBps is 0.0; it must be at least 1e-9, which is one byte a"
        + " second");
    refused("{\"between\": {\"GBps\": 1e-320}}", "between.GBps is 1.0E-320; it must be at least 1e-9");
    refused("{\"between\": {\"GBps\": -1}}", "between.GBps is -1, which is negative");
    refused("{\"between\": {\"GBps\": 1e400}}", "between.GBps is 1e400, which is too large");
    refused("{\"between\": {\"GBps\": \"1\"}}", "between.GBps is the string \"1\", not a number");
    refused("{\"between\": {\"GBps\": 1, \"us\": null}}", "between.us is null, not a number");
    refused("{\"speed\": 1}", "links: the key \"speed\" is unknown; known are within, between, pairs");
    refused("{\"pairs\": {}}", "pairs is an object, not a list");
    refused("{\"pairs\": [1]}", "pairs[0] is 1, not an object");
    refused("{\"pairs\": [{\"src\": 0, \"GBps\": 1}]}", "pairs[0].dst is missing: the number of a host");
    refused("{\"pairs\": [{\"src\": 0, \"dst\": 1}]}", "pairs[0].GBps is missing");
    refused("{\"pairs\": [{\"src\": 1, \"dst\": 1, \"GBps\": 1}]}", "pairs[0] goes from host 1 to itself");
    refused("{\"pairs\": [{\"src\": -1}]}", "pairs[0].src is -1, which is negative");
    refused("{\"pairs\": [{\"src\": 9999999999}]}", "pairs[0].src is 9999999999, more than 2147483647");
    String pair = "{\"src\": 0, \"dst\": 1, \"GBps\": 1}";
    refused(
        "{\"pairs\": [" + pair + ", " + pair + "]}", "pairs[1] is the second from host 0 to host 1");
    Path file = Files.writeString(folder.resolve("links.json"), "{\"within\": {}}");
    assertThatThrownBy(() -> LinkSpeeds.read(file))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("links.json: within.GBps is missing");
    assertThatThrownBy(() -> LinkSpeeds.read(folder.resolve("gone")))
        .isInstanceOf(NoSuchFileException.class);
    assertThat(LinkSpeeds.read(Files.writeString(file, TABLE)))
        .hasToString("10.0 GB/s within hosts, 2.0 GB/s between, 2 links of their own");
  }

  private static void refused(String json, String message) {
    assertThatThrownBy(() -> LinkSpeeds.parse(json))
        .as(json)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(message);
  }
}
