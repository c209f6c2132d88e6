// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.windlass.error.InvalidArgumentException;

/**
 * Collects the tensors of a target: a single one, or those that a rule joins, each with its
 * capture.
 */
public final class Assembly {
  /** Places a source tensor at its position in the target. */
  public record Part(SourceTensor source, Axes axes, long offset) {
    long[] shape() {
      return axes.shape(source.shape());
    }
  }

  private final List<String> names;
  private final Optional<Rule> rule;
  private final Map<String, SourceTensor> members = new LinkedHashMap<>();

  /** Creates the assembly of one tensor without a rule, or by {@code rule}. */
  public Assembly(List<String> names, Optional<Rule> rule) {
    this.names = names;
    this.rule = rule;
  }

  /** Returns the names under which the target is written. */
  public List<String> names() {
    return names;
  }

  /** Returns the rule whose {@code to} and {@code dtype} apply, if any. */
  public Optional<Rule> rule() {
    return rule;
  }

  private Rule given() {
    return rule.orElseThrow();
  }

  /** Adds a tensor; {@code capture} is empty if nothing is joined. */
  public void add(String capture, SourceTensor tensor) {
    SourceTensor other = members.putIfAbsent(capture, tensor);
    if (other != null) {
      throw new InvalidArgumentException(
          (capture.isEmpty()
                  ? "tensors \"" + other.name() + "\" and \"" + tensor.name() + "\" would both be"
                  : given().where() + ": tensors \"" + other.name() + "\" and \"" + tensor.name()
                      + "\" are both \"" + capture + "\" of what is")
              + " written as \"" + names.get(0) + "\"");
    }
  }

  private boolean joins() {
    return rule.flatMap(Rule::join).isPresent();
  }

  /** Returns the dimension along which parts lie one after another. */
  public int dim() {
    return joins() ? given().join().get().dim() : 0;
  }

  /** Returns the tensors in order. Each begins at the end of the previous one. */
  public List<Part> parts() {
    List<Part> parts = new ArrayList<>();
    long offset = 0;
    for (SourceTensor tensor : ordered()) {
      Part part = new Part(tensor, axes(tensor), offset);
      if (!parts.isEmpty()) {
        checkFits(parts.get(0), part);
      }
      parts.add(part);
      offset += joins() ? part.shape()[dim()] : 0;
    }
    return parts;
  }

  /** Returns the extents of the whole tensor. */
  public long[] shape(List<Part> parts) {
    long[] shape = parts.get(0).shape();
    if (joins()) {
      Part last = parts.get(parts.size() - 1);
      shape[dim()] = last.offset() + last.shape()[dim()];
    }
    return shape;
  }

  private List<SourceTensor> ordered() {
    if (!joins()) {
      return List.copyOf(members.values());
    }
    if (given().join().get() instanceof Rule.Join.Parts join) {
      for (String name : join.names()) {
        if (!members.containsKey(name)) {
          throw new InvalidArgumentException(
              given().where() + ": no tensor is part \"" + name + "\" of \"" + names.get(0)
                  + "\"; tensor \"" + members.values().iterator().next().name() + "\" is another part of it");
        }
      }
      return join.names().stream().map(members::get).toList();
    }
    return numbered();
  }

  /** Returns the members by their numbers, which must be consecutive. */
  private List<SourceTensor> numbered() {
    SortedMap<Integer, SourceTensor> byNumber = new TreeMap<>();
    members.forEach(
        (capture, tensor) -> {
          if (!capture.matches("0|[1-9][0-9]{0,8}")) {
            throw new InvalidArgumentException(
                given().where() + ": tensor \"" + tensor.name() + "\": {" + given().joined()
                    + "} is \"" + capture + "\"; tensors are stacked by number, from 0 to 999999999, with no 0"
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

  private Rule.Join.Stack stack() {
    return (Rule.Join.Stack) given().join().get();
  }

  /** Returns the name that the tensor with a number would have in this stack. */
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
      if (each.joins()
          && each.given().join().get() instanceof Rule.Join.Stack stack
          && !stack.uneven()) {
        largest.merge(
            each.given().where(), each, (a, b) -> b.members.size() > a.members.size() ? b : a);
      }
    }
    for (Assembly each : all) {
      Assembly most = each.rule.map(rule -> largest.get(rule.where())).orElse(null);
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

  private Axes axes(SourceTensor tensor) {
    int ndim = tensor.shape().length;
    List<Integer> order = new ArrayList<>();
    for (int d = 0; d < ndim; d++) {
      order.add(d);
    }
    if (rule.isEmpty()) {
      return new Axes(order);
    }
    if (given().transpose() instanceof Rule.Transpose.Order asked) {
      if (asked.order().size() != ndim) {
        throw misfit(tensor, "transpose names " + asked.order().size() + " dimensions");
      }
      order = asked.order();
    } else if (given().transpose() instanceof Rule.Transpose.LastTwo) {
      if (ndim < 2) {
        throw misfit(tensor, "transpose exchanges the last two");
      }
      Collections.swap(order, ndim - 2, ndim - 1);
    }
    Axes axes = new Axes(order);
    if (!joins()) {
      return axes;
    }
    boolean stacks = given().join().get() instanceof Rule.Join.Stack;
    if (dim() > ndim || dim() == ndim && !stacks) {
      throw misfit(tensor, stacks ? "stack makes dimension " + dim() : "dim is " + dim());
    }
    return stacks ? axes.withNew(dim()) : axes;
  }

  private InvalidArgumentException misfit(SourceTensor tensor, String what) {
    return new InvalidArgumentException(
        given().where() + ": " + what + ", and tensor \"" + tensor.name() + "\" has shape "
            + Arrays.toString(tensor.shape()));
  }

  private void checkFits(Part first, Part part) {
    long[] a = first.shape();
    long[] b = part.shape();
    boolean fits = a.length == b.length;
    for (int d = 0; d < a.length && fits; d++) {
      fits = d == dim() || a[d] == b[d];
    }
    if (!fits) {
      throw new InvalidArgumentException(
          given().where() + ": tensor \"" + part.source().name() + "\" has shape "
              + Arrays.toString(part.source().shape()) + ", which does not join with "
              + Arrays.toString(first.source().shape()) + " of \"" + first.source().name() + "\"");
    }
  }
}
