// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;

/**
 * Resolves names that a checkpoint's metadata tie to the name of a stored tensor.
 *
 * <p>The {@code save_model} function of safetensors writes such pairs: key and value are the two
 * names. A rule that matches a tied name creates a tensor of that name. The other tied names follow
 * the stored tensor to its new name. None follows a tensor that is written with other dimensions,
 * or as a part of another one.
 */
public final class TiedNames {
  private final Map<String, String> metadata;
  /** Stored names of the tensors that are written, by their own names. */
  private final Map<String, String> stored = new LinkedHashMap<>();
  /** Other tied names. */
  private final Map<String, String> following = new LinkedHashMap<>();

  private TiedNames(Map<String, String> metadata) {
    this.metadata = metadata;
  }

  /**
   * Returns the tied names of a checkpoint; {@code ruleOf} returns the rule that matches a name. Names
   * that a rule drops are left out.
   */
  public static TiedNames of(Checkpoint in, Function<String, Optional<Rule>> ruleOf) {
    TiedNames tied = new TiedNames(new LinkedHashMap<>(in.metadata()));
    in.names().stream()
        .filter(name -> ruleOf.apply(name).filter(Rule::drops).isEmpty())
        .forEach(name -> tied.stored.put(name, name));
    in.metadata()
        .forEach(
            (name, other) -> {
              if (in.names().contains(other) && !in.names().contains(name)) {
                Optional<Rule> rule = ruleOf.apply(name);
                if (rule.filter(Rule::drops).isPresent()) {
                  tied.metadata.remove(name);
                } else {
                  (rule.isPresent() ? tied.stored : tied.following).put(name, other);
                }
              }
            });
    return tied;
  }

  /** Returns every tensor that is read, the stored ones first. */
  public List<String> tensors() {
    return List.copyOf(stored.keySet());
  }

  /** Returns the names under which the files hold the tensors that are read. */
  public Set<String> storedNames() {
    return new LinkedHashSet<>(stored.values());
  }

  /** Returns the name under which the files hold a tensor. */
  public String stored(String name) {
    return Objects.requireNonNull(stored.get(name));
  }

  /**
   * Returns the stored tensor of a name whose rule gives a source layout.
   *
   * @param own the rule for the stored tensor; null if it has none
   * @throws InvalidArgumentException if {@code own} gives another layout, or none
   */
  public String requireStored(String name, Rule rule, @Nullable Rule own) {
    if (own == null || !own.from().equals(rule.from())) {
      throw new InvalidArgumentException(
          rule.where() + ".from: \"" + name + "\" is another name of tensor \"" + stored(name)
              + "\", whose rule gives its source layout");
    }
    return stored(name);
  }

  /** Returns the metadata of the written files, with the tensors' names there. */
  public Map<String, String> metadata(List<TensorMove> moves, Consumer<String> warnings) {
    Map<String, List<TensorMove>> sources = new LinkedHashMap<>();
    moves.forEach(
        move ->
            sources.computeIfAbsent(move.target().name(), key -> new ArrayList<>()).add(move));
    Map<String, String> renamed = new HashMap<>();
    sources.forEach(
        (target, of) -> {
          if (of.size() == 1 && of.get(0).axes().isIdentity() && !of.get(0).isPart()) {
            renamed.putIfAbsent(of.get(0).source().name(), target);
          }
        });
    Map<String, String> all = new LinkedHashMap<>(metadata);
    metadata.forEach(
        (name, other) -> {
          if (sources.containsKey(name) && sources.containsKey(other) && !isTensor(name)) {
            warnings.accept(
                "__metadata__ \"" + name + "\": says that it is another name of tensor \"" + other
                    + "\", and there is a tensor of that name; it is left out");
          }
        });
    all.keySet().removeIf(key -> sources.containsKey(key) || isTensor(key));
    following.forEach(
        (name, other) -> {
          String now = renamed.get(other);
          if (sources.containsKey(name)) {
            warnings.accept(
                "__metadata__ \"" + name + "\": was a name of tensor \"" + other + "\", and another tensor has it"
                    + " now");
          } else if (now != null) {
            all.put(name, now);
          } else if (all.remove(name) != null) {
            warnings.accept(
                "__metadata__ \"" + name + "\": names tensor \"" + other + "\", which is not written as"
                    + " a tensor of its own; the name is left out");
          }
        });
    return all;
  }

  private boolean isTensor(String key) {
    return stored.containsKey(key) && !stored.get(key).equals(key);
  }
}
