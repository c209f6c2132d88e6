// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code windlass manifest}. */
class ManifestCommandTest {
  private static final String MANIFEST =
      """
      {"version": 2, "comm_groups": [
        {"name": "tp", "devices": [2, 0], "slots": [
          {"name": "scratch", "dtype": "float32", "size": 257, "load_from_host": true},
          {"name": "to\\"kens", "nbytes": 10, "load_from_host": true, "store_to_host": true},
          {"name": "codes", "dtype": "uint8", "size": 5, "bits_per_element": 4}]},
        {"devices": [], "slots": []},
        {"name": "last", "devices": [5], "slots": [
          {"name": "a", "nbytes": 1, "store_to_host": true}]}]}
      """;

  @TempDir private Path folder;

  private Path file(String text) throws IOException {
    return Files.writeString(folder.resolve("comm_manifest.json"), text);
  }

  @Test
  void showsWhoIsWhereAndWhatLiesWhere() throws IOException {
    Cli done = Cli.run("manifest", file(MANIFEST));
    assertThat(done.err()).isEmpty();
    assertThat(done.status()).isZero();
    assertThat(done.out())
        .isEqualTo(
            """
            %s: 3 groups, 6 devices
            group 0, tp: devices 2,0 are ranks 0,1; window 1,216 bytes each
              slot      offset  bytes  holds                host
              scratch        0  1,028  257 x float32        load
              to\\"kens   1,088     10  bytes                load, store
              codes      1,152      3  5 x uint8 of 4 bits  -
            group 1: devices 0-5 are ranks 0-5; window 0 bytes each
            group 2, last: device 5 is rank 0; window 64 bytes
              slot  offset  bytes  holds  host
              a          0      1  bytes  store
            device 0: rank 1 of tp, rank 0 of group 1
            device 1: rank 1 of group 1
            device 2: rank 0 of tp, rank 2 of group 1
            devices 3,4: ranks 3,4 of group 1
            device 5: rank 5 of group 1, rank 0 of last
              2,496 bytes of windows on 6 devices, at most 1,216 on one (device 0); 2 slots loaded, 2 stored
            """
                .formatted(folder.resolve("comm_manifest.json")));
  }

  @Test
  void aSummaryHasGroupsAndTotalsAlone() throws IOException {
    Cli done = Cli.run("manifest", "--summary", "--devices", 1000, file(MANIFEST));
    assertThat(done.out())
        .isEqualTo(
            """
            %s: 3 groups, 1,000 devices
            group 0, tp: devices 2,0 are ranks 0,1; window 1,216 bytes each
            group 1: devices 0-999 are ranks 0-999; window 0 bytes each
            group 2, last: device 5 is rank 0; window 64 bytes
              2,496 bytes of windows on 1,000 devices, at most 1,216 on one (device 0); 2 slots loaded, 2 stored
            """
                .formatted(folder.resolve("comm_manifest.json")));
    assertThat(Cli.run("manifest", "--summary", "--json", file(MANIFEST)).out())
        .contains("\"window_bytes\":1216")
        .doesNotContain("slots");
  }

  @Test
  void printsTheSameAsJson() throws IOException {
    Cli done = Cli.run("manifest", "--json", "--devices", 6, file(MANIFEST));
    assertThat(done.out())
        .isEqualTo(
            "{\"version\":2,\"devices\":6,\"groups\":[{\"name\":\"tp\",\"devices\":[2,0],"
                + "\"window_bytes\":1216,\"slots\":[{\"name\":\"scratch\",\"offset\":0,"
                + "\"bytes\":1028,\"dtype\":\"float32\",\"size\":257,\"bits_per_element\":32,"
                + "\"load_from_host\":true,\"store_to_host\":false},"
                + "{\"name\":\"to\\\"kens\",\"offset\":1088,\"bytes\":10,"
                + "\"load_from_host\":true,\"store_to_host\":true},"
                + "{\"name\":\"codes\",\"offset\":1152,\"bytes\":3,\"dtype\":\"uint8\",\"size\":5,"
                + "\"bits_per_element\":4,\"load_from_host\":false,\"store_to_host\":false}]},"
                + "{\"devices\":[0,1,2,3,4,5],\"window_bytes\":0,\"slots\":[]},"
                + "{\"name\":\"last\",\"devices\":[5],\"window_bytes\":64,\"slots\":["
                + "{\"name\":\"a\",\"offset\":0,\"bytes\":1,\"load_from_host\":false,"
                + "\"store_to_host\":true}]}]}\n");
  }

  @Test
  void refusesWhatIsWrongWithItsPlace() throws IOException {
    Path file = file(MANIFEST);
    refused(2, file + ": $.comm_groups[0].devices[0] is 2; there are devices 0 to 1", "--devices", 2, file);
    refused(2, "devices is 1048577; it must be 1 or more and at most", "--devices", 1048577, file);
    refused(2, "--devices 0 is not 1 or more", "--devices", 0, file);
    refused(2, file + ": $.comm_groups is empty", file("{\"version\":2,\"comm_groups\":[]}"));
    refused(2, "no such file", folder.resolve("none.json"));
    refused(2, "is a folder, not a file", folder);
  }

  private static void refused(int status, String what, Object... arguments) {
    Object[] all = new Object[arguments.length + 1];
    all[0] = "manifest";
    System.arraycopy(arguments, 0, all, 1, arguments.length);
    Cli done = Cli.run(all);
    assertThat(done.status()).as(done.err()).isEqualTo(status);
    assertThat(done.out()).isEmpty();
    assertThat(done.err()).contains(what).contains("\nhint: ");
  }
}
