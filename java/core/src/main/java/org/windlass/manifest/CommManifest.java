// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.windlass.Communicator;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.json.JsonText;

/**
 * A comm manifest of version {@value #VERSION}: groups of devices that communicate, and the slots
 * of their windows.
 *
 * <pre>{@code
 * {"version": 2, "comm_groups": [{"devices": [0, 2], "slots": [
 *   {"name": "scratch", "dtype": "float32", "size": 256, "bits_per_element": 32,
 *    "load_from_host": false, "store_to_host": false},
 *   {"name": "tokens", "nbytes": 1024, "load_from_host": true}]}]}
 * }</pre>
 *
 * @param groups at least one group; a program without groups has no manifest
 */
public record CommManifest(List<CommGroup> groups) {
  /** Version of the format that this class reads and writes. */
  public static final int VERSION = 2;

  /** Usual name of the file. */
  public static final String NAME = "comm_manifest.json";

  /** Environment variable that names the file of {@link #fromEnvironment}. */
  public static final String VARIABLE = "WINDLASS_MANIFEST";

  /**
   * Creates a manifest.
   *
   * @throws InvalidArgumentException if there is no group, or two groups have the same name
   */
  public CommManifest {
    groups = Copies.list(groups, "groups");
    if (groups.isEmpty()) {
      throw new InvalidArgumentException(
          "comm_groups is empty; a program without groups has no manifest");
    }
    ManifestNames.requireDistinct(
        groups.stream().map(CommGroup::name).toList(), i -> "comm_groups[" + i + "].name");
  }

  /**
   * Reads a manifest from a file.
   *
   * @param file the file
   * @throws InvalidArgumentException if the file holds no valid manifest. The message names the
   *     file, the JSON position such as {@code $.comm_groups[0].slots[1].size}, and the problem.
   * @throws IOException if the file can't be read
   */
  public static CommManifest read(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    return parse(file.toString(), JsonText.bytesOf(file));
  }

  /**
   * Reads the manifest of this process. The environment variable {@value #VARIABLE} names the file.
   * Without it, the file is {@value #NAME} in the working directory.
   *
   * @throws InvalidArgumentException if there is no such file, or it holds no valid manifest
   * @throws ResourceException if the file can't be read
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
   * Parses the JSON of a manifest.
   *
   * @param where name of the text for messages, such as a file's name
   * @param json the text in UTF-8
   * @throws InvalidArgumentException if the text is not a valid manifest, see {@link #read}
   */
  public static CommManifest parse(String where, byte[] json) {
    Objects.requireNonNull(where, "where");
    return ManifestJson.read(where, Objects.requireNonNull(json, "json"));
  }

  /** Returns the manifest as JSON. {@link #parse} makes an equal value from it. */
  public byte[] toJson() {
    return ManifestJson.write(this);
  }

  /**
   * Writes the manifest to a file, and replaces an existing file. The file appears either complete
   * or not at all.
   *
   * @throws IOException if the file can't be written; an existing file is then unchanged
   */
  public void write(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    Path folder = file.toAbsolutePath().getParent();
    if (folder == null) {
      throw new InvalidArgumentException(file + ": is no file");
    }
    Path work = folder.resolve("." + file.getFileName() + "." + UUID.randomUUID());
    try {
      Files.write(
          work,
          toJson(),
          StandardOpenOption.CREATE_NEW,
          StandardOpenOption.WRITE,
          StandardOpenOption.SYNC);
      Files.move(work, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(work);
    }
  }

  /**
   * Resolves the manifest for devices 0 to {@code devices - 1}.
   *
   * @param devices number of devices, 1 to {@value Bootstrap#MAX_DEVICES}
   * @throws InvalidArgumentException if a group names a device beyond these, or a window is too
   *     large; the message names the JSON position
   */
  public Bootstrap bootstrap(int devices) {
    return Bootstrap.of(this, devices);
  }

  /** Calls {@link #open(Communicator, HostTensors, Duration)} without host tensors. */
  public CommContexts open(Communicator communicator) {
    return open(communicator, HostTensors.none());
  }

  /** Calls {@link #open(Communicator, HostTensors, Duration)} with the communicator's deadline. */
  public CommContexts open(Communicator communicator, HostTensors hosts) {
    Objects.requireNonNull(communicator, "communicator");
    return open(communicator, hosts, communicator.deadline());
  }

  /**
   * Makes a communicator and a window with the slots for each group. The call is collective. Device
   * {@code d} is rank {@code d} of {@code communicator}. When the call returns, the host tensors of
   * all ranks are in their slots. Slots without a host tensor are zero.
   *
   * <p>If the arguments of one rank are wrong, all ranks throw the same exception before any window
   * is made. The communicator stays usable.
   *
   * @param communicator the ranks that open the manifest
   * @param hosts host tensors of this rank: one for each slot of its groups with {@code
   *     load_from_host} or {@code store_to_host}
   * @param deadline limit for the whole call
   * @throws InvalidArgumentException if the manifest names a device without a rank, or a host
   *     tensor is missing, matches no slot, or does not fit its slot
   * @throws ResourceException if there is too little memory for the windows; the message names the
   *     slot
   * @throws MismatchException if ranks open different manifests; the message says where they differ
   */
  public CommContexts open(Communicator communicator, HostTensors hosts, Duration deadline) {
    return open(SlotMemory.HOSTS, communicator, hosts, deadline);
  }

  /**
   * Calls {@link #openOnDevices(Communicator, HostTensors, Duration)} with the communicator's
   * deadline.
   */
  public CommContexts openOnDevices(Communicator communicator, HostTensors hosts) {
    Objects.requireNonNull(communicator, "communicator");
    return openOnDevices(communicator, hosts, communicator.deadline());
  }

  /**
   * Opens the manifest with slots in the memory of each rank's device. Otherwise it works like
   * {@link #open(Communicator, HostTensors, Duration)}. Each group's window is a {@link
   * Communicator#deviceWindow}, and its slots are tensors with {@link
   * org.windlass.Tensor#isOnDevice}. Devices copy host tensors to and from the slots.
   *
   * @throws ResourceException if a device has too little memory; the message says how much is free
   * @throws UnsupportedException if the communicator's target is not {@code cuda}, or devices can't
   *     access one another's memory
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
