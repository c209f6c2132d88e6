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
          {"name": "to\\"kens", "nbytes": 10, "store_to_host": true},
          {"name": "codes", "dtype": "uint8", "size": 5, "bits_per_element": 4}]},
        {"devices": [], "slots": []}]}
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
            group tp: 2 ranks, devices 2, 0; window 1216 bytes
              slot           offset        bytes  holds              load  store
              scratch             0         1028  257 x float32      yes   no
              to\\"kens         1088           10  bytes              no    yes
              codes            1152            3  5 x uint8:4        no    no
            group 1: 3 ranks, devices 0, 1, 2; window 0 bytes
            device 0: rank 1 of group tp, rank 0 of group 1
            device 1: rank 1 of group 1
            device 2: rank 0 of group tp, rank 2 of group 1
            """);
  }

  @Test
  void printsTheSameAsJson() throws IOException {
    Cli done = Cli.run("manifest", "--json", "--devices", 3, file(MANIFEST));
    assertThat(done.out())
        .isEqualTo(
            "{\"version\":2,\"devices\":3,\"groups\":[{\"name\":\"tp\",\"devices\":[2,0],"
                + "\"window_bytes\":1216,\"slots\":[{\"name\":\"scratch\",\"offset\":0,"
                + "\"bytes\":1028,\"dtype\":\"float32\",\"size\":257,\"bits_per_element\":32,"
                + "\"load_from_host\":true,\"store_to_host\":false},"
                + "{\"name\":\"to\\\"kens\",\"offset\":1088,\"bytes\":10,"
                + "\"load_from_host\":false,\"store_to_host\":true},"
                + "{\"name\":\"codes\",\"offset\":1152,\"bytes\":3,\"dtype\":\"uint8\",\"size\":5,"
                + "\"bits_per_element\":4,\"load_from_host\":false,\"store_to_host\":false}]},"
                + "{\"devices\":[0,1,2],\"window_bytes\":0,\"slots\":[]}]}\n");
  }

  @Test
  void refusesWhatIsWrongWithItsPlace() throws IOException {
    Path file = file(MANIFEST);
    refused(2, file + ": $.comm_groups[0].devices[0] is 2; there are devices 0 to 1", "--devices", 2, file);
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
