// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.FileFault;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonObject;
import org.windlass.manifest.Bootstrap;
import org.windlass.manifest.CommManifest;
import org.windlass.manifest.Slot;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass manifest}: explains a comm manifest. */
@Command(
    name = "manifest",
    description = "Checks a comm manifest and shows the bootstrap configuration it means.",
    footer = {
      "%nA part for each group: its devices in the order of their ranks, and the bytes of the window"
          + " that each of them has. Then a line for each slot: where it lies in the window, how many"
          + " bytes it has on each device, what they hold, and whether a host tensor is loaded into"
          + " it before the program, or it is stored to one after it.",
      "%nA line for each device, or for several in a row, says which rank it has in which group.",
      "%nThe last line sums up: the bytes of the windows of all devices, and of the device that has"
          + " most; how many slots are loaded and stored.",
      "%nWith --summary there are the groups and the last line alone."
    })
final class ManifestCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "FILE", description = "The manifest, such as comm_manifest.json.")
  private Path file;

  @Option(
      names = "--devices",
      paramLabel = "N",
      description = "Devices 0 to N-1 take part (as many as the file names; 1 where it names none).")
  private @Nullable Integer devices;

  @Option(names = "--summary", description = "Leave slots and devices out.")
  private boolean summary;

  @Mixin private JsonOption json;

  @Override
  public void run() {
    if (devices != null && devices < 1) {
      throw new InvalidArgumentException("--devices " + devices + " is not 1 or more");
    }
    CommManifest manifest = read();
    Bootstrap bootstrap;
    try {
      bootstrap = manifest.bootstrap(devices == null ? named(manifest) : devices);
    } catch (InvalidArgumentException e) {
      throw new InvalidArgumentException(file + ": " + e.getMessage(), e);
    }
    PrintWriter out = spec.commandLine().getOut();
    if (json.isGiven()) {
      out.println(JsonObject.line(json(bootstrap, summary)));
    } else {
      new ManifestReport(bootstrap, summary).lines(file.toString()).forEach(out::println);
    }
  }

  private CommManifest read() {
    try {
      return CommManifest.read(file);
    } catch (IOException e) {
      throw FileFault.reading(file, e);
    }
  }

  private static int named(CommManifest manifest) {
    int highest =
        manifest.groups().stream()
            .flatMap(group -> group.devices().stream())
            .mapToInt(Integer::intValue)
            .max()
            .orElse(0);
    return Math.addExact(Math.min(highest, Integer.MAX_VALUE - 1), 1);
  }

  private static Map<String, Object> json(Bootstrap bootstrap, boolean summary) {
    return JsonObject.of(
        "version", CommManifest.VERSION,
        "devices", bootstrap.devices(),
        "groups", bootstrap.groups().stream().map(group -> json(group, summary)));
  }

  private static Map<String, Object> json(Bootstrap.Group group, boolean summary) {
    Map<String, Object> json =
        JsonObject.of(
            "name", group.name(),
            "devices", group.members(),
            "window_bytes", group.windowBytes());
    if (!summary) {
      json.put("slots", group.slots().stream().map(ManifestCommand::json));
    }
    return json;
  }

  private static Map<String, Object> json(Bootstrap.Place place) {
    Slot slot = place.slot();
    Map<String, Object> json =
        JsonObject.of("name", slot.name(), "offset", place.offset(), "bytes", slot.bytes());
    if (slot.extent() instanceof Slot.Elements elements) {
      json.put("dtype", elements.type());
      json.put("size", elements.size());
      json.put("bits_per_element", elements.bitsPerElement());
    }
    json.put("load_from_host", slot.loadFromHost());
    json.put("store_to_host", slot.storeToHost());
    return json;
  }
}
