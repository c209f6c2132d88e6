// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.layout.TensorSpec;

/** The list of tensors that {@code windlass plan --tensors} takes, for a model of a table. */
public final class PlanTensors {
  private PlanTensors() {}

  /**
   * Prints a model between two parallelisms, tensors that lie alike as one entry with a count.
   *
   * @param from how it lies now
   * @param to how it shall lie
   */
  public static void print(ModelTable model, Parallelism from, Parallelism to, PrintStream out) {
    List<TensorSpec> sources = model.specs(from);
    List<TensorSpec> targets = model.specs(to);
    Map<String, String> names = new LinkedHashMap<>();
    Map<String, Integer> counts = new LinkedHashMap<>();
    for (int i = 0; i < sources.size(); i++) {
      TensorSpec source = sources.get(i);
      // Tensors of other layers and experts that lie alike differ in the numbers of their names.
      String kind = source.name().replaceAll("[0-9]+", "*");
      String rest =
          String.format(
              "\"shape\": %s, \"dtype\": \"%s\", \"from\": \"%s\", \"to\": \"%s\"",
              source.shape(),
              source.dtype().safetensorsName(),
              source.layout().qualified(),
              targets.get(i).layout().qualified());
      names.putIfAbsent(kind + rest, "{\"name\": \"" + source.name() + "\", " + rest);
      counts.merge(kind + rest, 1, Integer::sum);
    }
    String separator = "[";
    for (Map.Entry<String, String> entry : names.entrySet()) {
      out.print(separator + entry.getValue() + ", \"count\": " + counts.get(entry.getKey()) + "}");
      separator = ",\n ";
    }
    out.println("]");
  }
}
