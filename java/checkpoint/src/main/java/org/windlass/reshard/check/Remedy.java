// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntFunction;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.NamePattern;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds rules that would avoid an error. The error's message suggests them. Their patterns match
 * names of IN.
 *
 * @param moves the moves of the request
 * @param plainFiles returns, for a number of ranks, the numbers of the files that a layout of these
 *     ranks writes if a rule gives it without {@code @}
 */
public record Remedy(Moves moves, IntFunction<Set<Integer>> plainFiles) {
  /** Returns a rule that keeps {@code scale} whole in all files of {@code weight}. */
  String whole(TargetTensor scale, TargetTensor weight) {
    String to = "\"to\": \"" + replicas(new TreeSet<>(weight.to().mesh().ranks())) + "\"";
    TensorMove first = moves.into(scale).get(0);
    String source = first.source().name();
    Rule rule = moves.ruleOf(first);
    if (!rule.isGiven()) {
      return "the rule {\"match\": " + JsonText.quoted(source) + ", " + to + "}";
    }
    boolean isOfScales =
        moves.all().stream()
            .filter(move -> Purpose.of(move.source().name()) != Purpose.SCALE)
            .noneMatch(move -> moves.ruleOf(move) == rule);
    return isOfScales
        ? to + " in " + rule.where()
        : "the rule {" + copy(rule, source) + ", " + to + "} before " + rule.where();
  }

  private String replicas(Set<Integer> files) {
    int ranks = files.size();
    if (plainFiles.apply(ranks).equals(files)) {
      return ranks + ":R";
    }
    int[] listed = files.stream().mapToInt(Integer::intValue).toArray();
    return DeviceMesh.of(ranks).ranks(listed).layout(Placement.replicate()).qualified();
  }

  /**
   * Returns the keys of a rule that is like {@code rule}, but applies only to the assembly of
   * {@code source}.
   */
  private String copy(Rule rule, String source) {
    String match =
        rule.joins()
            ? rule.match().with(source, rule.joined(), "{" + rule.joined() + "}")
            : source;
    List<String> keys = new ArrayList<>();
    keys.add("\"match\": " + JsonText.quoted(match));
    rule.from().ifPresent(from -> keys.add("\"from\": \"" + from + "\""));
    if (!rule.as().isEmpty()) {
      Map<String, String> captured = rule.captures(source).get();
      List<String> names =
          rule.as().stream().map(as -> NamePattern.fill(as, captured)).toList();
      keys.add("\"as\": " + list(names));
    }
    if (rule.transpose() instanceof Rule.Transpose.LastTwo) {
      keys.add("\"transpose\": true");
    } else if (rule.transpose() instanceof Rule.Transpose.Order order) {
      keys.add("\"transpose\": " + order.order());
    }
    rule.form().ifPresent(form -> keys.addAll(texts(form)));
    return String.join(", ", keys);
  }

  private static List<String> texts(Rule.Form form) {
    if (form instanceof Rule.Form.Stack stack) {
      return List.of("\"stack\": " + stack.dim() + (stack.uneven() ? ", \"uneven\": true" : ""));
    }
    if (!(form instanceof Rule.Form.Parts parts)) {
      return List.of();
    }
    // If names are joined, the unit applies only to the weight.
    String unit = parts.splits() && parts.unit().isPresent() ? ", \"unit\": " + parts.unit().getAsLong() : "";
    return List.of(
        (parts.splits() ? "\"split\": " + parts.sizes() : "\"parts\": " + list(parts.names()))
            + ", \"dim\": " + parts.dim() + unit
            + (parts.groups() > 1 ? ", \"groups\": " + parts.groups() : ""));
  }

  private static String list(List<String> texts) {
    return "[" + String.join(", ", texts.stream().map(JsonText::quoted).toList()) + "]";
  }
}
