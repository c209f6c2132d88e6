// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;

/**
 * Collects the source tensors of one target: a single tensor, or those that a rule joins. Joined
 * tensors differ in one capture of the rule's pattern.
 */
public final class Assembly {
  /** Maps indices of a source tensor to indices of the target. */
  public record Part(SourceTensor source, Axes axes, List<TensorMove.Segment> segments) {}

  private final List<String> names;
  private final @Nullable Rule rule;
  private final int splitOff;
  private final Map<String, SourceTensor> members = new LinkedHashMap<>();

  /** Creates an empty assembly of tensors that a rule joins. */
  public Assembly(List<String> names, Rule rule) {
    this.names = names;
    this.rule = rule;
    this.splitOff = -1;
  }

  /**
   * Creates the assembly of a single tensor.
   *
   * @param names the names under which the target is written
   * @param rule the rule for the tensor; null if there is none
   * @param splitOff the index of the part of a split tensor that the target is; otherwise -1
   */
  public Assembly(List<String> names, @Nullable Rule rule, int splitOff, SourceTensor tensor) {
    this.names = names;
    this.rule = rule;
    this.splitOff = splitOff;
    members.put("", tensor);
  }

  /** Returns the names under which the target is written. */
  public List<String> names() {
    return names;
  }

  /** Returns the rule that gives the target's layout and dtype; null if there is none. */
  public @Nullable Rule rule() {
    return rule;
  }

  private Rule given() {
    return Objects.requireNonNull(rule);
  }

  /**
   * Adds a tensor.
   *
   * @param capture the text in which joined tensors differ
   * @throws InvalidArgumentException if the assembly has a tensor with that capture
   */
  public void add(String capture, SourceTensor tensor) {
    SourceTensor other = members.putIfAbsent(capture, tensor);
    if (other != null) {
      throw new InvalidArgumentException(
          given().where() + ": tensors \"" + other.name() + "\" and \"" + tensor.name()
              + "\" are both \"" + capture + "\" of what is written as \"" + names.get(0) + "\"");
    }
  }

  private boolean joins() {
    return rule != null && rule.joins();
  }

  private Optional<Rule.Form> form() {
    return Optional.ofNullable(rule).flatMap(Rule::form);
  }

  /** Returns the parts that the rule names; empty if the rule names none. */
  public Optional<Rule.Form.Parts> fused() {
    return Optional.ofNullable(rule).flatMap(Rule::parts);
  }

  /** Returns the index of the part of a split tensor that the target is; otherwise -1. */
  public int splitOff() {
    return splitOff;
  }

  /** Returns the index of the written dimension along which parts lie one after another. */
  public int dim() {
    return form().isPresent() && form().get() instanceof Rule.Form.Stack stack
        ? stack.dim()
        : fused().map(Rule.Form.Parts::dim).orElse(0);
  }

  /** Returns the source tensors in the order in which the target holds them. */
  public List<Part> parts() {
    List<Part> parts = new ArrayList<>();
    List<SourceTensor> ordered = ordered();
    List<Long> extents = extents();
    for (int i = 0; i < ordered.size(); i++) {
      Axes axes = Axes.of(rule, ordered.get(i));
      parts.add(new Part(ordered.get(i), axes, segments(i, axes, extents)));
    }
    return parts;
  }

  private List<TensorMove.Segment> segments(int i, Axes axes, List<Long> extents) {
    if (splitOff >= 0 || joins()) {
      return fused()
          .map(parts -> parts.segments(Math.max(i, splitOff), extents))
          .orElseGet(() -> List.of(new TensorMove.Segment(0, i, 1)));
    }
    long[] shape = axes.shape(ordered().get(i).shape());
    return List.of(new TensorMove.Segment(0, 0, shape.length == 0 ? 1 : shape[dim()]));
  }

  /**
   * Returns the extent along {@link #dim} of each tensor that is joined, or of each part into which
   * the tensor is split.
   */
  public List<Long> extents() {
    List<Long> extents = new ArrayList<>();
    SourceTensor first = ordered().get(0);
    long[] shape = Axes.of(rule, first).shape(first.shape());
    for (SourceTensor tensor : ordered()) {
      long[] own = Axes.of(rule, tensor).shape(tensor.shape());
      checkFits(first, shape, tensor, own);
      extents.add(own.length == 0 ? 1 : own[dim()]);
    }
    if (rule != null && rule.splits()) {
      checkSum(first, fused().get(), extents.get(0));
      return fused().get().extents();
    }
    long whole = fused().map(p -> p.groups() > 1 ? p.groups() * p.unit().orElse(1) : 1).orElse(1L);
    for (int i = 0; i < extents.size(); i++) {
      if (extents.get(i) % whole != 0) {
        throw new InvalidArgumentException(
            given().where() + ": tensor \"" + ordered().get(i).name() + "\" has extent "
                + extents.get(i) + " along dimension " + dim() + ", which is no multiple of "
                + whole + ", the indices of one unit in each of " + fused().get().groups()
                + " groups");
      }
    }
    return extents;
  }

  private void checkSum(SourceTensor tensor, Rule.Form.Parts parts, long extent) {
    long all = parts.extents().stream().mapToLong(Long::longValue).sum();
    if (all != extent) {
      throw new InvalidArgumentException(
          given().where() + ": tensor \"" + tensor.name() + "\" has extent " + extent
              + " along dimension " + dim() + ", and split makes " + all + ": " + parts.groups()
              + (parts.groups() == 1 ? " group of " : " groups of ") + parts.sizes()
              + (parts.unit().isPresent()
                  ? " units of " + parts.unit().getAsLong() + "; split counts units"
                  : "; split has the sizes of one group"));
    }
  }

  /** Returns the extents of the target, before a split. */
  public long[] shape() {
    SourceTensor first = ordered().get(0);
    long[] shape = Axes.of(rule, first).shape(first.shape());
    if (joins()) {
      shape[dim()] = extents().stream().mapToLong(Long::longValue).sum();
    } else if (splitOff >= 0) {
      shape[dim()] = extents().get(splitOff);
    }
    return shape;
  }

  private List<SourceTensor> ordered() {
    if (!joins()) {
      return List.copyOf(members.values());
    }
    if (given().form().get() instanceof Rule.Form.Parts join) {
      for (String name : join.names()) {
        if (!members.containsKey(name)) {
          throw new InvalidArgumentException(
              given().where() + ": no tensor is part \"" + name + "\" of \"" + names.get(0) + "\"; tensor \""
                  + members.values().iterator().next().name() + "\" is another part of it");
        }
      }
      return join.names().stream().map(members::get).toList();
    }
    return numbered();
  }

  /** Returns a stack's tensors, sorted by number. Throws unless numbers are consecutive. */
  private List<SourceTensor> numbered() {
    SortedMap<Integer, SourceTensor> byNumber = new TreeMap<>();
    members.forEach(
        (capture, tensor) -> {
          if (!capture.matches("0|[1-9][0-9]{0,8}")) {
            throw new InvalidArgumentException(
                given().where() + ": tensor \"" + tensor.name() + "\": {" + given().joined() + "} is \""
                    + capture + "\"; tensors are stacked by number, from 0 to 999999999, with no 0"
                    + " before it");
          }
          byNumber.put(Integer.parseInt(capture), tensor);
        });
    int next = stack().uneven() ? byNumber.firstKey() : 0;
    for (int number : byNumber.keySet()) {
      if (number != next) {
        throw new InvalidArgumentException(
            given().where() + ": \"" + names.get(0) + "\" would be stacked of " + byNumber.firstKey()
                + " to " + byNumber.lastKey() + ", and there is no \"" + nameOf(next) + "\""
                + (next == 0 ? "; \"uneven\": true stacks what there is" : ""));
      }
      next++;
    }
    return List.copyOf(byNumber.values());
  }

  private Rule.Form.Stack stack() {
    return (Rule.Form.Stack) given().form().get();
  }

  private String nameOf(int number) {
    String other = members.values().iterator().next().name();
    return given().match().with(other, given().joined(), Integer.toString(number));
  }

  /**
   * Checks that stacks of one rule hold the same number of tensors each.
   *
   * @throws InvalidArgumentException naming a tensor that is missing
   */
  public static void checkStacks(Collection<Assembly> all) {
    Map<String, Assembly> largest = new LinkedHashMap<>();
    for (Assembly each : all) {
      if (each.form().isPresent() && each.form().get() instanceof Rule.Form.Stack stack && !stack.uneven()) {
        largest.merge(
            each.given().where(), each, (a, b) -> b.members.size() > a.members.size() ? b : a);
      }
    }
    for (Assembly each : all) {
      Assembly most = each.rule == null ? null : largest.get(each.rule.where());
      if (most != null && each.members.size() < most.members.size()) {
        // The call checks first that the numbers are consecutive.
        each.numbered();
        throw new InvalidArgumentException(
            each.given().where() + ": \"" + each.names.get(0) + "\" would be stacked of "
                + each.members.size() + " tensors, and \"" + most.names.get(0) + "\" of "
                + most.members.size() + ": there is no \"" + each.nameOf(each.members.size())
                + "\"; \"uneven\": true stacks what there is");
      }
    }
  }

  private void checkFits(SourceTensor first, long[] a, SourceTensor part, long[] b) {
    boolean fits = a.length == b.length;
    for (int d = 0; d < a.length && fits; d++) {
      fits = d == dim() || a[d] == b[d];
    }
    if (!fits) {
      throw new InvalidArgumentException(
          given().where() + ": tensor \"" + part.name() + "\" has shape "
              + Arrays.toString(part.shape()) + ", which does not join with "
              + Arrays.toString(first.shape()) + " of \"" + first.name() + "\"");
    }
  }
}
