// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.json.JsonText;

/**
 * What a comm manifest says, in version {@value #VERSION}: groups of devices that communicate, and
 * the slots of their windows.
 *
 * <pre>{@code
 * {"version": 2, "comm_groups": [{"devices": [0, 2], "slots": [
 *   {"name": "scratch", "dtype": "float32", "size": 256, "bits_per_element": 32,
 *    "load_from_host": false, "store_to_host": false},
 *   {"name": "tokens", "nbytes": 1024, "load_from_host": true}]}]}
 * }</pre>
 *
 * @param groups at least one: a program without groups has no manifest
 */
public record CommManifest(List<CommGroup> groups) {
  /** The version of the form that is read and written. */
  public static final int VERSION = 2;

  /** The name that the file has, as a rule. */
  public static final String NAME = "comm_manifest.json";

  /** The environment variable that names the file of {@link #fromEnvironment}. */
  public static final String VARIABLE = "WINDLASS_MANIFEST";

  /** Checks the component. */
  public CommManifest {
    groups = Copies.list(groups, "groups");
    if (groups.isEmpty()) {
      throw new InvalidArgumentException(
          "comm_groups is empty; a program without groups has no manifest");
    }
    List<CommGroup> all = groups;
    List<Integer> named =
        IntStream.range(0, all.size())
            .filter(i -> all.get(i).name().isPresent())
            .boxed()
            .toList();
    ManifestNames.requireDistinct(
        named.stream().map(i -> all.get(i).name().orElseThrow()).toList(),
        i -> "comm_groups[" + named.get(i) + "].name");
  }

  /**
   * Reads a file.
   *
   * @throws InvalidArgumentException if it holds no manifest: it names the file, the place in the
   *     JSON as {@code $.comm_groups[0].slots[1].size}, and what is wrong there
   * @throws IOException if it can't be read
   */
  public static CommManifest read(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    try {
      return parse(
          file.toString(),
          JsonText.bytesOf(
              file,
              InvalidArgumentException::new,
              (path, fault) -> new UncheckedIOException(fault)));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  /**
   * Reads the manifest of this process: the file that environment variable {@value #VARIABLE} names,
   * or else {@value #NAME} in the working directory.
   *
   * @throws InvalidArgumentException if there is none, or it holds no manifest
   * @throws ResourceException if it can't be read
   */
  public static CommManifest fromEnvironment() {
    return fromEnvironment(System.getenv(), Path.of(""));
  }

  static CommManifest fromEnvironment(Map<String, String> variables, Path folder) {
    String named = variables.getOrDefault(VARIABLE, "");
    Path file = named.isEmpty() ? folder.resolve(NAME) : Path.of(named);
    try {
      return read(file);
    } catch (NoSuchFileException e) {
      throw new InvalidArgumentException(
          "there is no comm manifest: "
              + (named.isEmpty()
                  ? VARIABLE + " is not set, and " + file.toAbsolutePath() + " is not there"
                  : VARIABLE + " is " + named + ", which is not there")
              + "; set " + VARIABLE + " to the file, or start where " + NAME + " lies",
          e);
    } catch (IOException e) {
      throw new ResourceException("comm manifest " + file + " can't be read: " + e, e);
    }
  }

  /**
   * What the bytes of a file say.
   *
   * @param where what messages call it
   */
  public static CommManifest parse(String where, byte[] json) {
    Objects.requireNonNull(where, "where");
    return new ManifestReader(where).manifest(Objects.requireNonNull(json, "json"));
  }

  /** The text of a file, that {@link #parse} makes an equal value of. */
  public byte[] toJson() {
    return ManifestWriter.json(this);
  }

  /**
   * Writes a file, which appears whole or not at all, and takes the place of one that is there.
   *
   * @throws IOException if it can't be written; what was there is as it was
   */
  public void write(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    Path folder = file.toAbsolutePath().getParent();
    if (folder == null) {
      throw new InvalidArgumentException(file + ": is no file");
    }
    Path work = folder.resolve("." + file.getFileName() + "." + UUID.randomUUID());
    try {
      try (FileChannel out =
          FileChannel.open(work, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        ByteBuffer bytes = ByteBuffer.wrap(toJson());
        while (bytes.hasRemaining()) {
          out.write(bytes);
        }
        out.force(true);
      }
      Files.move(work, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(work);
    }
  }

  /** The group of that name; empty where there is none. */
  public Optional<CommGroup> group(String name) {
    Optional<String> given = Optional.of(Objects.requireNonNull(name, "name"));
    return groups.stream().filter(group -> group.name().equals(given)).findFirst();
  }

  /**
   * What it means where devices 0 to {@code devices - 1} take part.
   *
   * @param devices 1 to {@value Bootstrap#MAX_DEVICES}
   * @throws InvalidArgumentException if a group names another device, or a window is too large; it
   *     gives the place in the JSON
   */
  public Bootstrap bootstrap(int devices) {
    return Bootstrap.of(this, devices);
  }

  /** {@link #open(Communicator, HostTensors, Duration)} of a manifest that asks for no host tensor. */
  public CommContexts open(Communicator communicator) {
    return open(communicator, HostTensors.none());
  }

  /** {@link #open(Communicator, HostTensors, Duration)} within the communicator's deadline. */
  public CommContexts open(Communicator communicator, HostTensors hosts) {
    Objects.requireNonNull(communicator, "communicator");
    return open(communicator, hosts, communicator.deadline());
  }

  /**
   * Collective: makes a communicator and a window for each group, in which the slots lie. Device
   * {@code d} is rank {@code d} of {@code communicator}. When it returns, the host tensors of all
   * ranks are in their slots, and what no tensor is loaded into is zero.
   *
   * <p>What one rank refuses all ranks get as the same exception, before any window is made, and the
   * communicator lives.
   *
   * @param hosts this rank's: one for each slot of its groups that has {@code load_from_host} or
   *     {@code store_to_host}
   * @param deadline for all of it
   * @throws InvalidArgumentException if the manifest has a device that is no rank, or a host tensor is
   *     missing, unasked for or of another dtype or size than its slot
   * @throws ResourceException if the windows take more than there is: it names the slot
   * @throws MismatchException if ranks open different manifests; it says where they differ
   */
  public CommContexts open(Communicator communicator, HostTensors hosts, Duration deadline) {
    return open(SlotMemory.HOSTS, communicator, hosts, deadline);
  }

  /**
   * {@link #openOnDevices(Communicator, HostTensors, Duration)} of a manifest that asks for no host
   * tensor.
   */
  public CommContexts openOnDevices(Communicator communicator) {
    return openOnDevices(communicator, HostTensors.none());
  }

  /** {@link #openOnDevices(Communicator, HostTensors, Duration)} within the communicator's deadline. */
  public CommContexts openOnDevices(Communicator communicator, HostTensors hosts) {
    Objects.requireNonNull(communicator, "communicator");
    return openOnDevices(communicator, hosts, communicator.deadline());
  }

  /**
   * {@link #open(Communicator, HostTensors, Duration)} with slots in the memory of each rank's
   * device: each group's window is a {@link Communicator#deviceWindow}, and its slots are tensors
   * there, {@link org.windlass.Tensor#isOnDevice}. Devices copy host tensors to and from them.
   *
   * @throws ResourceException if a device has too little memory: it says how much is free there
   * @throws UnsupportedException if the communicator's target is not {@code cuda}, or devices don't
   *     reach one another's memory
   */
  public CommContexts openOnDevices(
      Communicator communicator, HostTensors hosts, Duration deadline) {
    return open(SlotMemory.DEVICES, communicator, hosts, deadline);
  }

  private CommContexts open(
      SlotMemory memory, Communicator communicator, HostTensors hosts, Duration deadline) {
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(hosts, "hosts");
    Deadline until = Deadline.of(deadline);
    return new Opening(this, communicator, memory, hosts, until).open();
  }
}
