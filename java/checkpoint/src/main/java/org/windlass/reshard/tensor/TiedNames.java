// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;

/**
 * Resolves aliases: names that a checkpoint's metadata ties to the name of a stored tensor.
 *
 * <p>The {@code save_model} function of safetensors writes such pairs: key and value are the two
 * names. If a rule matches an alias, a tensor of that name is written. Other aliases stay aliases
 * of the stored tensor, under its new name. An alias is dropped if the tensor is written with other
 * dimensions, or as a part of another tensor.
 */
public final class TiedNames {
  private final Map<String, String> metadata;
  /** Names that are read: stored names first, then aliases with a rule. */
  private final List<String> tensors = new ArrayList<>();
  /** Stored names of the aliases with a rule, keyed by alias. */
  private final Map<String, String> aliased = new LinkedHashMap<>();
  /** Aliases that no rule matches. */
  private final Map<String, String> following = new LinkedHashMap<>();

  private TiedNames(Map<String, String> metadata) {
    this.metadata = metadata;
  }

  /**
   * Reads the aliases of a checkpoint.
   *
   * @param ruleOf returns the rule that matches a name. Names that a rule drops are left out
   */
  public static TiedNames of(Checkpoint in, Function<String, Rule> ruleOf) {
    TiedNames tied = new TiedNames(new LinkedHashMap<>(in.metadata()));
    in.names().stream()
        .filter(name -> !ruleOf.apply(name).drops())
        .forEach(tied.tensors::add);
    for (String name : aliases(in)) {
      Rule rule = ruleOf.apply(name);
      if (rule.drops()) {
        tied.metadata.remove(name);
      } else {
        String other = Objects.requireNonNull(in.metadata().get(name));
        (rule.isGiven() ? tied.aliased : tied.following).put(name, other);
      }
    }
    tied.tensors.addAll(tied.aliased.keySet());
    return tied;
  }

  /** Returns all aliases of a checkpoint, also those that rules drop. */
  public static List<String> aliases(Checkpoint in) {
    return in.metadata().entrySet().stream()
        .filter(tie -> in.names().contains(tie.getValue()) && !in.names().contains(tie.getKey()))
        .map(Map.Entry::getKey)
        .toList();
  }

  /** Returns the names that are read: stored names first, then aliases with a rule. */
  public List<String> tensors() {
    return Collections.unmodifiableList(tensors);
  }

  /**
   * Returns the names under which the files hold {@link #tensors}, in the same order. A name may
   * occur twice.
   */
  public List<String> storedNames() {
    return tensors.stream().map(this::stored).toList();
  }

  /** Returns the name under which the files hold a tensor. */
  public String stored(String name) {
    return aliased.getOrDefault(name, name);
  }

  /**
   * Checks an alias whose rule gives a source layout.
   *
   * @param own the rule for the stored name
   * @throws InvalidArgumentException if {@code own} gives a different source layout, or no source
   *     layout
   */
  public void requireStored(String name, Rule rule, Rule own) {
    if (!own.from().equals(rule.from())) {
      throw new InvalidArgumentException(
          rule.where() + ".from: \"" + name + "\" is another name of tensor \"" + stored(name)
              + "\", whose rule gives its source layout; leave \"from\" out here");
    }
  }

  /**
   * Returns the metadata of the written files. If a stored tensor gets a new name, its aliases
   * refer to the new name. {@code warnings} receives a warning for each alias that is left out.
   */
  public Map<String, String> metadata(List<TensorMove> moves, Consumer<String> warnings) {
    Set<String> asked = new HashSet<>(metadata.keySet());
    asked.addAll(metadata.values());
    Set<String> targets = new HashSet<>();
    Map<String, String> renamed = new HashMap<>();
    for (TensorMove move : moves) {
      if (asked.contains(move.target().name())) {
        targets.add(move.target().name());
      }
      if (asked.contains(move.source().name()) && move.axes().isIdentity() && !move.isPart()) {
        renamed.putIfAbsent(move.source().name(), move.target().name());
      }
    }
    Map<String, String> all = new LinkedHashMap<>(metadata);
    metadata.forEach(
        (name, other) -> {
          if (targets.contains(name) && targets.contains(other) && !aliased.containsKey(name)) {
            warnings.accept(
                "__metadata__ \"" + name + "\": says that it is another name of tensor \"" + other
                    + "\", but a tensor has that name; the entry is left out");
          }
        });
    all.keySet().removeIf(key -> targets.contains(key) || aliased.containsKey(key));
    following.forEach(
        (name, other) -> {
          String now = renamed.get(other);
          if (targets.contains(name)) {
            warnings.accept(
                "__metadata__ \"" + name + "\": was a name of tensor \"" + other + "\", but"
                    + " another tensor has this name now");
          } else if (now != null) {
            all.put(name, now);
          } else if (all.remove(name) != null) {
            warnings.accept(
                "__metadata__ \"" + name + "\": names tensor \"" + other + "\", which is not"
                    + " written as a separate tensor; the name is left out");
          }
        });
    return all;
  }
}
