// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.layout.TensorSpec;

/** Prints the list of tensors for {@code windlass plan --tensors} from the table of a model. */
public final class PlanTensors {
  private PlanTensors() {}

  /**
   * Prints a model between two parallelisms. Tensors with equal layouts are one entry with a count.
   *
   * @param from present parallelism
   * @param to target parallelism
   */
  public static void print(ModelTable model, Parallelism from, Parallelism to, PrintStream out) {
    List<TensorSpec> sources = model.specs(from);
    List<TensorSpec> targets = model.specs(to);
    Map<String, String> names = new LinkedHashMap<>();
    Map<String, Integer> counts = new LinkedHashMap<>();
    for (int i = 0; i < sources.size(); i++) {
      TensorSpec source = sources.get(i);
      // The names of tensors of other layers and experts differ only in their numbers.
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
