// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;

/**
 * Names that the metadata of a checkpoint tie to the one under which a tensor is stored, as
 * safetensors' {@code save_model} writes them: key and value are the two names. A rule that matches
 * such a name makes a tensor of it; the others follow the tensor to its new name. None follows a
 * tensor that is written with other dimensions, or as a part of another one.
 */
public final class TiedNames {
  private final Map<String, String> metadata;
  /** The tensors that are written of something: their stored names by their own. */
  private final Map<String, String> stored = new LinkedHashMap<>();
  /** The other tied names. */
  private final Map<String, String> following = new LinkedHashMap<>();

  private TiedNames(Map<String, String> metadata) {
    this.metadata = metadata;
  }

  /** Those of a checkpoint; {@code isRuled} tells of a name whether a rule matches it. */
  public static TiedNames of(Checkpoint in, Predicate<String> isRuled) {
    TiedNames tied = new TiedNames(in.metadata());
    in.names().forEach(name -> tied.stored.put(name, name));
    in.metadata()
        .forEach(
            (name, other) -> {
              if (in.names().contains(other) && !in.names().contains(name)) {
                (isRuled.test(name) ? tied.stored : tied.following).put(name, other);
              }
            });
    return tied;
  }

  /** Every tensor that is read, the stored ones first. */
  public List<String> tensors() {
    return List.copyOf(stored.keySet());
  }

  /** The name under which the files hold a tensor. */
  public String stored(String name) {
    return stored.get(name);
  }

  /**
   * The stored tensor that a rule for a name gives a source layout.
   *
   * @param own the rule for the stored tensor; null where it has none
   * @throws InvalidArgumentException if that gives another one, or none
   */
  public String requireStored(String name, Rule rule, Rule own) {
    if (own == null || !own.from().equals(rule.from())) {
      throw new InvalidArgumentException(
          rule.where() + ".from: \"" + name + "\" is another name of tensor \"" + stored(name)
              + "\", whose rule gives its source layout");
    }
    return stored(name);
  }

  /** What is said of the files that are written, with the names that tensors have there. */
  public Map<String, String> metadata(List<TensorMove> moves, Consumer<String> warnings) {
    Map<String, List<TensorMove>> sources = new LinkedHashMap<>();
    moves.forEach(
        move ->
            sources.computeIfAbsent(move.target().name(), key -> new ArrayList<>()).add(move));
    Map<String, String> renamed = new HashMap<>();
    sources.forEach(
        (target, of) -> {
          if (of.size() == 1 && of.get(0).axes().isIdentity()) {
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
