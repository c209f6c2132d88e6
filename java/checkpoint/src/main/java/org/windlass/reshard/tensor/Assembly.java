// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.windlass.error.InvalidArgumentException;

/**
 * Collects the source tensors of one target: a single tensor, or the tensors that a rule joins.
 * Joined tensors differ in one capture of the rule's pattern.
 *
 * @param names the names under which the target is written
 * @param rule the rule that gives the target's layout and dtype
 * @param splitOff if the target is a part of a split tensor, the index of that part; otherwise -1
 * @param members the tensors, keyed by the text in which joined tensors differ
 */
public record Assembly(
    List<String> names, Rule rule, int splitOff, Map<String, SourceTensor> members) {
  /** Maps indices of a source tensor to indices of the target. */
  public record Part(SourceTensor source, Axes axes, List<TensorMove.Segment> segments) {}

  /**
   * Describes the written tensor.
   *
   * @param parts the source tensors in the order in which the target holds them
   * @param extents the extent along {@link #dim} of each tensor that is joined, or of each part
   *     into which the tensor is split
   * @param shape the extents of the target
   */
  public record Whole(List<Part> parts, List<Long> extents, long[] shape) {
    /** Returns the first source tensor. */
    public SourceTensor first() {
      return parts.get(0).source();
    }
  }

  /** Creates an empty assembly of tensors that a rule joins. */
  public Assembly(List<String> names, Rule rule) {
    this(names, rule, -1, new LinkedHashMap<>());
  }

  /**
   * Adds a tensor.
   *
   * @param capture the text in which joined tensors differ
   * @throws InvalidArgumentException if the assembly already has a tensor with that capture
   */
  public void add(String capture, SourceTensor tensor) {
    SourceTensor other = members.putIfAbsent(capture, tensor);
    if (other != null) {
      throw new InvalidArgumentException(
          rule.where() + ": tensors \"" + other.name() + "\" and \"" + tensor.name()
              + "\" are both \"" + capture + "\" of what is written as \"" + names.get(0)
              + "\"; give \"as\" more captures, or add a rule before this one for one of them");
    }
  }

  /** Returns the index of the written dimension along which parts lie one after another. */
  public int dim() {
    return rule.stack()
        .map(Rule.Form.Stack::dim)
        .or(() -> rule.parts().map(Rule.Form.Parts::dim))
        .orElse(0);
  }

  /**
   * Returns the joined tensors. Throws InvalidArgumentException if a tensor is missing or does not
   * fit.
   */
  public Whole whole() {
    List<SourceTensor> sources = ordered();
    List<Axes> axes = sources.stream().map(source -> Axes.of(rule, source)).toList();
    SourceTensor first = sources.get(0);
    long[] shape = axes.get(0).shape(first.shape());
    List<Long> extents = new ArrayList<>();
    for (int i = 0; i < sources.size(); i++) {
      SourceTensor source = sources.get(i);
      long[] own = axes.get(i).shape(source.shape());
      checkFits(first, shape, source, own);
      long extent = own.length == 0 ? 1 : own[dim()];
      rule.parts().ifPresent(parts -> checkExtent(source, parts, extent));
      extents.add(extent);
    }
    if (rule.splits()) {
      extents.clear();
      extents.addAll(rule.parts().get().extents());
    }
    List<Part> parts = new ArrayList<>();
    for (int i = 0; i < sources.size(); i++) {
      int part = Math.max(i, splitOff);
      List<TensorMove.Segment> segments =
          splitOff >= 0 || rule.joins()
              ? rule.parts()
                  .map(form -> form.segments(part, extents))
                  .orElseGet(() -> List.of(new TensorMove.Segment(0, part, 1)))
              : List.of(new TensorMove.Segment(0, 0, shape.length == 0 ? 1 : shape[dim()]));
      parts.add(new Part(sources.get(i), axes.get(i), segments));
    }
    if (rule.joins()) {
      shape[dim()] = extents.stream().mapToLong(Long::longValue).sum();
    } else if (splitOff >= 0) {
      shape[dim()] = extents.get(splitOff);
    }
    return new Whole(parts, extents, shape);
  }

  /** Throws unless a tensor that is joined or split consists of whole groups of parts. */
  private void checkExtent(SourceTensor tensor, Rule.Form.Parts parts, long extent) {
    String has =
        rule.where() + ": tensor \"" + tensor.name() + "\" has extent " + extent
            + " along dimension " + dim() + ", ";
    long all = parts.extents().stream().mapToLong(Long::longValue).sum();
    if (parts.splits() && all != extent) {
      throw new InvalidArgumentException(
          has + "and split makes " + all + ": " + parts.groups()
              + (parts.groups() == 1 ? " group of " : " groups of ") + parts.sizes()
              + (parts.unit().isPresent()
                  ? " units of " + parts.unit().getAsLong() + "; split counts units"
                  : "; split has the sizes of one group"));
    }
    long whole = parts.groups() > 1 ? parts.groups() * parts.unit().orElse(1) : 1;
    if (!parts.splits() && extent % whole != 0) {
      throw new InvalidArgumentException(
          has + "which is not a multiple of " + whole + ", the indices of one unit in each of "
              + parts.groups() + " groups; correct \"groups\" or \"unit\"");
    }
  }

  private List<SourceTensor> ordered() {
    if (rule.stack().isPresent()) {
      return numbered();
    }
    if (!rule.joins()) {
      return List.copyOf(members.values());
    }
    for (String name : rule.parts().get().names()) {
      if (!members.containsKey(name)) {
        throw new InvalidArgumentException(
            rule.where() + ": no tensor is part \"" + name + "\" of \"" + names.get(0) + "\"; tensor \""
                + members.values().iterator().next().name()
                + "\" is another part of it, so complete IN, or leave the name out of \"parts\"");
      }
    }
    return rule.parts().get().names().stream().map(members::get).toList();
  }

  /** Returns a stack's tensors, sorted by number. Throws unless the numbers are consecutive. */
  private List<SourceTensor> numbered() {
    SortedMap<Integer, SourceTensor> byNumber = new TreeMap<>();
    members.forEach(
        (capture, tensor) -> {
          if (!capture.matches("0|[1-9][0-9]{0,8}")) {
            throw new InvalidArgumentException(
                rule.where() + ": tensor \"" + tensor.name() + "\": {" + rule.joined() + "} is \""
                    + capture + "\"; tensors are stacked by number, from 0 to 999999999, without"
                    + " leading zeros; add a rule for the tensor before this one");
          }
          byNumber.put(Integer.parseInt(capture), tensor);
        });
    int next = rule.stack().get().uneven() ? byNumber.firstKey() : 0;
    for (int number : byNumber.keySet()) {
      if (number != next) {
        throw new InvalidArgumentException(
            rule.where() + ": \"" + names.get(0) + "\" has tensors " + byNumber.firstKey()
                + " to " + byNumber.lastKey() + " to stack, but \"" + nameOf(next) + "\" is missing"
                + (next == 0
                    ? "; to stack only those that exist, set \"uneven\": true"
                    : "; complete IN, or add a rule for the tensors after it before this one"));
      }
      next++;
    }
    return List.copyOf(byNumber.values());
  }

  private String nameOf(int number) {
    String other = members.values().iterator().next().name();
    return rule.match().with(other, rule.joined(), Integer.toString(number));
  }

  /**
   * Checks that stacks of one rule hold the same number of tensors each.
   *
   * @throws InvalidArgumentException with a message that names a missing tensor
   */
  public static void checkStacks(Collection<Assembly> all) {
    Map<String, Assembly> largest = new LinkedHashMap<>();
    List<Assembly> stacks =
        all.stream()
            .filter(each -> each.rule.stack().filter(stack -> !stack.uneven()).isPresent())
            .toList();
    for (Assembly each : stacks) {
      largest.merge(
          each.rule.where(), each, (a, b) -> b.members.size() > a.members.size() ? b : a);
    }
    for (Assembly each : stacks) {
      Assembly most = largest.getOrDefault(each.rule.where(), each);
      if (each.members.size() < most.members.size()) {
        // The call checks first that the numbers are consecutive.
        each.numbered();
        throw new InvalidArgumentException(
            each.rule.where() + ": \"" + each.names.get(0) + "\" has "
                + each.members.size() + " tensors to stack, but \"" + most.names.get(0) + "\" has "
                + most.members.size() + ": \"" + each.nameOf(each.members.size())
                + "\" is missing; to stack only those that exist, set \"uneven\": true");
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
          rule.where() + ": tensor \"" + part.name() + "\" has shape "
              + Arrays.toString(part.shape()) + ", which can't be joined with "
              + Arrays.toString(first.shape()) + " of \"" + first.name() + "\"; correct \"dim\""
              + " or \"match\", or add a rule for it before this one");
    }
  }
}
