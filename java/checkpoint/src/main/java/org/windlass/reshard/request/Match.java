// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.List;
import java.util.Map;
import org.windlass.reshard.tensor.NamePattern;
import org.windlass.reshard.tensor.Rule;

/**
 * Represents the rule of a tensor.
 *
 * @param captured the captured texts of the tensor's name, keyed by capture
 */
record Match(Rule rule, Map<String, String> captured) {
  /** The match of a tensor to which no rule applies. */
  static final Match NONE = new Match(Rule.NONE, Map.of());

  /** Returns the first rule that matches a name. */
  static Match of(List<Rule> rules, String name) {
    return rules.stream()
        .flatMap(rule -> rule.captures(name).map(captured -> new Match(rule, captured)).stream())
        .findFirst()
        .orElse(NONE);
  }

  /**
   * Returns the names under which the result for this tensor is written. A result may contain other
   * tensors too.
   */
  List<String> names(String tensor) {
    return rule.as().isEmpty()
        ? List.of(tensor)
        : rule.as().stream().map(as -> NamePattern.fill(as, captured)).toList();
  }

  /** Returns a key that is equal for all tensors that the rule joins to one tensor. */
  List<Object> key() {
    return List.of(rule.where(), names(""));
  }
}
