// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;

/**
 * Reads model tables. A table is a text with lines {@code layers N} and {@code experts N}, then a
 * line for each tensor. {@code #} begins a comment.
 *
 * <p>The line of a tensor has its name, which may contain {@code {layer}} and {@code {expert}},
 * dtype, and shape. The placement among tensor parallel ranks follows, as in layout strings.
 * Tensors outside the layers also have {@code first} or {@code last} for their pipeline stage.
 */
final class ModelTableReader {
  private ModelTableReader() {}

  /**
   * Parses the text of a table.
   *
   * @throws InvalidArgumentException if a line is malformed; the message has the table and the line
   */
  static ModelTable read(String name, List<String> text) {
    Map<String, Integer> counts = new LinkedHashMap<>(Map.of("layers", 0, "experts", 0));
    List<ModelTable.Line> lines = new ArrayList<>();
    for (int i = 0; i < text.size(); i++) {
      String[] words = text.get(i).replaceFirst("#.*", "").strip().split("\\s+");
      try {
        if (words.length == 2 && counts.containsKey(words[0])) {
          counts.put(words[0], Integer.parseInt(words[1]));
        } else if (words.length > 1) {
          lines.add(line(words));
        } else if (!words[0].isEmpty()) {
          throw new InvalidArgumentException("expected a tensor's name, dtype, shape, placement");
        }
      } catch (InvalidArgumentException | NumberFormatException e) {
        throw new InvalidArgumentException(
            name + ".tensors, line " + (i + 1) + ": " + e.getMessage(), e);
      }
    }
    return new ModelTable(name, counts.get("layers"), counts.get("experts"), lines);
  }

  private static ModelTable.Line line(String[] words) {
    boolean ofLayers = words[0].contains("{layer}");
    List<String> stages = ofLayers ? List.of() : List.of("first", "last");
    if (words.length != (ofLayers ? 4 : 5) || !ofLayers && !stages.contains(words[4])) {
      throw new InvalidArgumentException(
          "expected name, dtype, shape, placement" + (ofLayers ? "" : " and first or last"));
    }
    return new ModelTable.Line(
        words[0],
        DType.parse(words[1]),
        Arrays.stream(words[2].split("x")).mapToLong(Long::parseLong).toArray(),
        Layout.parse("1:" + words[3]).placements().get(0),
        words[words.length - 1].equals("last"));
  }
}
