// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.checkpoint.FileFault;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.Layout;

/**
 * Reads the file of {@code --rules}, a JSON list of {@link Rule}s. Complaints name the file, the
 * place in the JSON, and the fault.
 */
public final class Rules {
  private final JsonText json;
  private final String at;

  private Rules(JsonText json, String at) {
    this.json = json;
    this.at = at;
  }

  /** Reads and checks a file of rules. */
  public static List<Rule> read(Path path) {
    List<Rule> rules = new ArrayList<>();
    JsonText.list(
        path.toString(),
        JsonText.bytesOf(path, InvalidArgumentException::new, FileFault::reading),
        InvalidArgumentException::new,
        (json, index) -> rules.add(new Rules(json, "[" + index + "]").rule(path)));
    return rules;
  }

  private Rule rule(Path path) throws IOException {
    var fields =
        new Object() {
          @Nullable NamePattern match;
          Optional<String> from = Optional.empty();
          Optional<String> to = Optional.empty();
          Optional<DType> dtype = Optional.empty();
          List<String> as = List.of();
          Rule.Transpose transpose = new Rule.Transpose.None();
          @Nullable List<String> parts;
          @Nullable Integer dim;
          OptionalLong unit = OptionalLong.empty();
          @Nullable Integer stack;
          boolean uneven;
        };
    json.members(
        at,
        key -> {
          String what = at + "." + key;
          switch (key) {
            case "match" -> fields.match = parsed(what, NamePattern::parse);
            case "from" -> fields.from = Optional.of(parsed(what, Rules::source));
            case "to" -> fields.to = Optional.of(parsed(what, Rules::target));
            case "dtype" -> fields.dtype = Optional.of(parsed(what, Rules::castable));
            case "as" -> fields.as = names(what);
            case "transpose" -> fields.transpose = transpose(what);
            case "parts" -> fields.parts = distinct(what, json.strings(what));
            case "dim" -> fields.dim = dimension(what);
            case "unit" -> fields.unit = OptionalLong.of(unit(what));
            case "stack" -> fields.stack = json.isTrue() ? 0 : dimension(what);
            case "uneven" -> fields.uneven = isTrue(what);
            default -> throw json.bad(what + ": unknown key");
          }
        });
    if (fields.match == null) {
      throw json.bad(at + ".match: is missing");
    }
    if (fields.parts != null && fields.stack != null) {
      throw json.bad(at + ".stack: stands beside parts; a rule joins in one way");
    }
    if ((fields.parts == null) != (fields.dim == null)) {
      throw json.bad(
          at + (fields.dim == null ? ".dim: is missing" : ".dim: has no parts to join along it"));
    }
    if (fields.unit.isPresent() && fields.parts == null) {
      throw json.bad(at + ".unit: has no parts that it is of");
    }
    if (fields.uneven && fields.stack == null) {
      throw json.bad(at + ".uneven: has no stack that it is of");
    }
    Optional<Rule.Join> join = Optional.empty();
    if (fields.parts != null && fields.dim != null) {
      join = Optional.of(new Rule.Join.Parts(fields.parts, fields.dim, fields.unit));
    } else if (fields.stack != null) {
      join = Optional.of(new Rule.Join.Stack(fields.stack, fields.uneven));
    }
    checkCaptures(fields.match, fields.as, join);
    return new Rule(
        path + ": " + at,
        fields.match,
        fields.from,
        fields.to,
        fields.dtype,
        fields.as,
        fields.transpose,
        join);
  }

  /** Reads the string at the current position and converts it with {@code parser}. */
  private <T> T parsed(String what, Function<String, T> parser) throws IOException {
    return checked(what, json.string(what), parser);
  }

  private <T> T checked(String what, String text, Function<String, T> parser) {
    try {
      return parser.apply(text);
    } catch (InvalidArgumentException malformed) {
      throw json.bad(what + ": " + malformed.getMessage());
    }
  }

  private static String source(String text) {
    Layout.parse(text);
    return text;
  }

  private static String target(String text) {
    TargetTensor.refusePartial(Layout.parse(text));
    return text;
  }

  private static DType castable(String text) {
    return Casts.require(DType.parse(text));
  }

  private List<String> names(String what) throws IOException {
    return distinct(what, json.isList() ? json.strings(what) : List.of(json.string(what)));
  }

  private List<String> distinct(String what, List<String> names) {
    if (names.isEmpty()) {
      throw json.bad(what + ": is empty");
    }
    Set<String> seen = new HashSet<>();
    for (String name : names) {
      if (name.isEmpty() || !seen.add(name)) {
        throw json.bad(
            what + ": " + JsonText.quoted(name) + (name.isEmpty() ? " is no name" : " stands twice"));
      }
    }
    return names;
  }

  private int dimension(String what) throws IOException {
    long dim = json.natural(what);
    if (dim >= SourceTensors.MAX_DIMS) {
      throw json.bad(what + ": " + dim + " is no dimension of tensors that have at most "
          + SourceTensors.MAX_DIMS);
    }
    return (int) dim;
  }

  private long unit(String what) throws IOException {
    long unit = json.natural(what);
    if (unit == 0) {
      throw json.bad(what + ": 0 is no number of indices that belong together");
    }
    return unit;
  }

  private boolean isTrue(String what) throws IOException {
    if (!json.isTrue()) {
      throw json.bad(what + ": is true where it is given");
    }
    return true;
  }

  private Rule.Transpose transpose(String what) throws IOException {
    if (json.isTrue()) {
      return new Rule.Transpose.LastTwo();
    }
    List<Integer> order = new ArrayList<>();
    json.elements(what, index -> order.add(dimension(what + "[" + index + "]")));
    for (int d = 0; d < order.size(); d++) {
      if (!order.contains(d)) {
        throw json.bad(what + ": " + order + " does not name dimension " + d);
      }
    }
    return new Rule.Transpose.Order(order);
  }

  /** Checks that new names hold every capture except the one in which joined tensors differ. */
  private void checkCaptures(
      NamePattern match, List<String> as, Optional<Rule.Join> join) {
    Set<String> missing = new HashSet<>(match.captures());
    for (int i = 0; i < as.size(); i++) {
      String what = at + ".as" + (as.size() == 1 ? "" : "[" + i + "]");
      for (String capture : checked(what, as.get(i), NamePattern::capturesIn)) {
        if (!match.captures().contains(capture)) {
          throw json.bad(what + ": match does not capture {" + capture + "}");
        }
        missing.remove(capture);
      }
    }
    if (join.isEmpty()) {
      return;
    }
    if (as.isEmpty() || missing.size() != 1) {
      List<String> left = missing.stream().sorted().map(capture -> "{" + capture + "}").toList();
      String leaves =
          left.isEmpty() ? "holds every capture" : "leaves out " + String.join(" and ", left);
      throw json.bad(
          at + ".as: " + (as.isEmpty() ? "is missing" : leaves)
              + "; give the name of the joined tensor, with every capture of match but the one"
              + " that tells its parts apart. A list gives it several names, and does not name its"
              + " parts");
    }
  }
}
