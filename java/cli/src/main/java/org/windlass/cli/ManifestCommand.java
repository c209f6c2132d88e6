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
    description = "Checks a comm manifest and shows what it means for each device.",
    footer = {
      "  windlass manifest comm_manifest.json",
      "  windlass manifest comm_manifest.json --devices 8 --json"
    })
final class ManifestCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "FILE", description = "The manifest, such as comm_manifest.json.")
  private Path file;

  @Option(
      names = "--devices",
      paramLabel = "N",
      description = "Devices 0 to N-1 take part (default: those in the file).")
  private @Nullable Integer devices;

  @Option(names = "--summary", description = "Print groups and the sums only.")
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
