// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import org.windlass.InvalidArgumentException;
import org.windlass.checkpoint.FileFault;
import org.windlass.cli.out.JsonLine;
import org.windlass.manifest.Bootstrap;
import org.windlass.manifest.CommManifest;
import org.windlass.manifest.Slot;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code windlass manifest}: what a comm manifest means. */
@Command(
    name = "manifest",
    description = "Checks a comm manifest and shows the bootstrap configuration it means.",
    footer = {
      "%nA part for each group: the devices that are its ranks, in their order, and the bytes of the"
          + " window that each of them has. Then a line for each slot: where it lies in the window,"
          + " how many bytes it has, what they hold, and whether a host tensor of its name is loaded"
          + " into it before the program, or stored after it.",
      "%nThe last lines say which rank each device has, in which group."
    })
final class ManifestCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "FILE", description = "The manifest, such as comm_manifest.json.")
  private Path file;

  @Option(
      names = "--devices",
      paramLabel = "N",
      description = "Devices 0 to N-1 take part (as many as the file names; 1 where it names none).")
  private Integer devices;

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
      out.println(JsonLine.of(line -> write(bootstrap, line)));
    } else {
      lines(bootstrap).forEach(out::println);
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

  private List<String> lines(Bootstrap bootstrap) {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < bootstrap.groups().size(); i++) {
      Bootstrap.Group group = bootstrap.groups().get(i);
      boolean isOne = group.members().size() == 1;
      lines.add(
          name(bootstrap, i)
              + ": "
              + group.members().size()
              + (isOne ? " rank, device " : " ranks, devices ")
              + group.members().stream().map(String::valueOf).collect(Collectors.joining(", "))
              + "; window "
              + group.windowBytes()
              + " bytes");
      int width =
          group.slots().stream().mapToInt(place -> shown(place).length()).max().orElse(0);
      String form = "  %-" + Math.max(width, "slot".length()) + "s %12s %12s  %-18s %-5s %s";
      if (!group.slots().isEmpty()) {
        lines.add(String.format(form, "slot", "offset", "bytes", "holds", "load", "store"));
      }
      for (Bootstrap.Place place : group.slots()) {
        Slot slot = place.slot();
        lines.add(
            String.format(
                form,
                shown(place),
                place.offset(),
                slot.bytes(),
                slot.extent(),
                slot.loadFromHost() ? "yes" : "no",
                slot.storeToHost() ? "yes" : "no"));
      }
    }
    for (int device = 0; device < bootstrap.devices(); device++) {
      lines.add("device " + device + ": " + ranks(bootstrap, device));
    }
    return lines;
  }

  /** As the file has it, so that no name breaks a line. */
  private static String escaped(String name) {
    return new String(JsonStringEncoder.getInstance().quoteAsString(name));
  }

  private static String shown(Bootstrap.Place place) {
    return escaped(place.slot().name());
  }

  private static String name(Bootstrap bootstrap, int group) {
    return bootstrap
        .groups()
        .get(group)
        .name()
        .map(name -> "group " + escaped(name))
        .orElse("group " + group);
  }

  private static String ranks(Bootstrap bootstrap, int device) {
    List<String> ranks = new ArrayList<>();
    for (int i = 0; i < bootstrap.groups().size(); i++) {
      OptionalInt rank = bootstrap.groups().get(i).rankOf(device);
      if (rank.isPresent()) {
        ranks.add("rank " + rank.getAsInt() + " of " + name(bootstrap, i));
      }
    }
    return ranks.isEmpty() ? "in no group" : String.join(", ", ranks);
  }

  private static void write(Bootstrap bootstrap, JsonGenerator json) throws IOException {
    json.writeNumberField("version", CommManifest.VERSION);
    json.writeNumberField("devices", bootstrap.devices());
    json.writeArrayFieldStart("groups");
    for (Bootstrap.Group group : bootstrap.groups()) {
      json.writeStartObject();
      if (group.name().isPresent()) {
        json.writeStringField("name", group.name().get());
      }
      json.writeArrayFieldStart("devices");
      for (int device : group.members()) {
        json.writeNumber(device);
      }
      json.writeEndArray();
      json.writeNumberField("window_bytes", group.windowBytes());
      json.writeArrayFieldStart("slots");
      for (Bootstrap.Place place : group.slots()) {
        Slot slot = place.slot();
        json.writeStartObject();
        json.writeStringField("name", slot.name());
        json.writeNumberField("offset", place.offset());
        json.writeNumberField("bytes", slot.bytes());
        if (slot.extent() instanceof Slot.Elements elements) {
          json.writeStringField("dtype", elements.type().toString());
          json.writeNumberField("size", elements.size());
          json.writeNumberField("bits_per_element", elements.bitsPerElement());
        }
        json.writeBooleanField("load_from_host", slot.loadFromHost());
        json.writeBooleanField("store_to_host", slot.storeToHost());
        json.writeEndObject();
      }
      json.writeEndArray();
      json.writeEndObject();
    }
    json.writeEndArray();
  }
}
