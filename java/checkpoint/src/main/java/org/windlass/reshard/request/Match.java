// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.reshard.tensor.NamePattern;
import org.windlass.reshard.tensor.Rule;

/**
 * Represents the rule of a tensor.
 *
 * @param captured the captured texts of the tensor's name, keyed by capture
 */
record Match(Rule rule, Map<String, String> captured) {
  /** Returns the first rule that matches a name. */
  static Optional<Match> of(List<Rule> rules, String name) {
    for (Rule rule : rules) {
      Optional<Map<String, String>> captured = rule.captures(name);
      if (captured.isPresent()) {
        return Optional.of(new Match(rule, captured.get()));
      }
    }
    return Optional.empty();
  }

  /** Returns the names of what is written of a tensor of this name, perhaps with others. */
  List<String> names(String tensor) {
    return rule.as().isEmpty()
        ? List.of(tensor)
        : rule.as().stream().map(as -> NamePattern.fill(as, captured)).toList();
  }

  /** Returns a key that is equal for all tensors that the rule joins to one. */
  List<Object> key() {
    return List.of(rule.where(), names(""));
  }
}
