// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;
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
    Fields fields = new Fields();
    json.members(
        at,
        key -> {
          String what = at + "." + key;
          fields.keys.add(key);
          switch (key) {
            case "match" -> fields.match = parsed(what, NamePattern::parse);
            case "from" -> fields.from = layouts(what, Rules::source);
            case "to" -> fields.to = layouts(what, Rules::target);
            case "dtype" -> fields.dtype = Optional.of(parsed(what, Rules::castable));
            case "as" -> fields.as = names(what);
            case "transpose" -> fields.transpose = transpose(what);
            case "parts" -> parts(what, fields);
            case "split" -> json.elements(what, i -> fields.sizes.add(count(what + "[" + i + "]")));
            case "dim" -> fields.dim = dimension(what);
            case "groups" -> fields.groups = count(what);
            case "unit" -> fields.unit = OptionalLong.of(count(what));
            case "stack" -> fields.stack = json.isTrue() ? 0 : dimension(what);
            case "uneven" -> isTrue(what);
            case "pad_to" -> fields.padTo = Math.min(count(what), Integer.MAX_VALUE);
            case "shape" -> fields.shape = Optional.of(json.naturals(what));
            case "drop" -> isTrue(what);
            default -> throw json.bad(what + ": unknown key");
          }
        });
    if (fields.match == null) {
      throw json.bad(at + ".match: is missing");
    }
    Optional<Rule.Form> form = form(fields);
    if (form.isEmpty() || !(form.get() instanceof Rule.Form.Split)) {
      for (String key : List.of("from", "to")) {
        if ((key.equals("to") ? fields.to : fields.from).size() > 1) {
          throw json.bad(at + "." + key + ": is a list, which only a rule with split takes");
        }
      }
    }
    boolean joins = fields.keys.contains("parts") || fields.keys.contains("stack");
    NamePattern match = checkCaptures(fields, joins);
    Optional<String> to = first(fields.to);
    if (form.isPresent()
        && form.get() instanceof Rule.Form.Parts parts
        && parts.to().stream().allMatch(Optional::isPresent)) {
      to = parts.to().get(0);
    }
    return new Rule(
        path + ": " + at,
        match,
        first(fields.from),
        to,
        fields.dtype,
        fields.as,
        fields.transpose,
        form);
  }

  /** Holds the values of a rule's keys. */
  private static final class Fields {
    final Set<String> keys = new LinkedHashSet<>();
    @Nullable NamePattern match;
    List<String> from = List.of();
    List<String> to = List.of();
    Optional<DType> dtype = Optional.empty();
    List<String> as = List.of();
    Rule.Transpose transpose = new Rule.Transpose.None();
    final List<String> names = new ArrayList<>();
    final List<Optional<String>> namesTo = new ArrayList<>();
    final List<Long> sizes = new ArrayList<>();
    @Nullable Integer dim;
    long groups = 1;
    OptionalLong unit = OptionalLong.empty();
    @Nullable Integer stack;
    long padTo;
    Optional<List<Long>> shape = Optional.empty();
  }

  /** Keys that belong to others, by their name; the forms come first. */
  private static final Map<String, List<String>> BELONGS =
      new TreeMap<>(
          Map.of(
              "dim", List.of("parts", "split"),
              "groups", List.of("parts", "split"),
              "shape", List.of("pad_to"),
              "uneven", List.of("stack"),
              "unit", List.of("parts", "split")));

  /** Returns what a rule makes of its tensors, after checking that its keys go together. */
  private Optional<Rule.Form> form(Fields fields) {
    List<String> forms = new ArrayList<>(List.of("drop", "parts", "split", "stack", "pad_to"));
    forms.retainAll(fields.keys);
    if (forms.size() > 1) {
      throw json.bad(
          at + "." + forms.get(1) + ": stands beside " + forms.get(0)
              + "; a rule joins, splits, pads or drops, in one way");
    }
    BELONGS.forEach(
        (key, owners) -> {
          if (fields.keys.contains(key) && Collections.disjoint(owners, fields.keys)) {
            throw json.bad(
                at + "." + key + ": has no " + String.join(" or ", owners) + " that it is of");
          }
        });
    if (forms.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(
        switch (forms.get(0)) {
          case "drop" -> drop(fields);
          case "parts" -> parts(fields, fields.names, fields.namesTo);
          case "split" -> split(fields);
          case "stack" -> new Rule.Form.Stack(
              Objects.requireNonNull(fields.stack), fields.keys.contains("uneven"));
          default -> new Rule.Form.Pad(fields.padTo, fields.shape);
        });
  }

  private Rule.Form.Drop drop(Fields fields) {
    for (String key : fields.keys) {
      if (!key.equals("match") && !key.equals("drop")) {
        throw json.bad(
            at + "." + key + ": stands beside drop; a rule that leaves tensors out has only match");
      }
    }
    return new Rule.Form.Drop();
  }

  private Rule.Form.Parts parts(Fields fields, List<String> names, List<Optional<String>> to) {
    if (fields.dim == null) {
      throw json.bad(at + ".dim: is missing");
    }
    if (fields.groups > 1 && to.stream().anyMatch(Optional::isPresent)) {
      throw json.bad(
          at + ".groups: stands beside parts with a layout of their own; groups are left whole, so"
              + " that one layout cuts between them");
    }
    List<Optional<String>> all = to.stream().map(own -> own.or(() -> first(fields.to))).toList();
    return new Rule.Form.Parts(names, all, fields.dim, fields.groups, fields.unit);
  }

  private Rule.Form.Split split(Fields fields) {
    int count = fields.sizes.size();
    if (count < 2) {
      throw json.bad(at + ".split: is " + fields.sizes + "; give the sizes of two or more parts");
    }
    boolean isApart = fields.as.size() > 1;
    if (isApart && fields.as.size() != count) {
      throw json.bad(
          at + ".as: has " + fields.as.size() + " names, and split has " + count
              + " parts; give one name for the fused tensor, or one for each part");
    }
    for (List<String> layouts : List.of(fields.from, fields.to)) {
      if (layouts.size() > 1 && layouts.size() != count) {
        throw json.bad(
            at + (layouts == fields.to ? ".to" : ".from") + ": has " + layouts.size()
                + " layouts, and split has " + count + " parts; give one for all, or one for each");
      }
    }
    List<String> names =
        isApart ? fields.as : IntStream.range(0, count).mapToObj(Integer::toString).toList();
    Rule.Form.Parts parts =
        parts(fields, names, fields.to.size() > 1 ? fields.to.stream().map(Optional::of).toList() : Collections.nCopies(count, Optional.empty()));
    if (fields.from.size() == 1) {
      fields.from = Collections.nCopies(count, fields.from.get(0));
    }
    Rule.Form.Split split = new Rule.Form.Split(parts, fields.sizes, fields.from, isApart);
    try {
      split.extents().stream().reduce(0L, Math::addExact);
    } catch (ArithmeticException beyond) {
      throw json.bad(at + ".split: the parts together have 2^63 indices or more");
    }
    return split;
  }

  private static Optional<String> first(List<String> texts) {
    return texts.stream().findFirst();
  }

  /** Reads the parts that are joined: names, or objects with a name and perhaps a layout. */
  private void parts(String what, Fields fields) throws IOException {
    json.elements(
        what,
        index -> {
          String part = what + "[" + index + "]";
          if (!json.isObject()) {
            fields.names.add(json.string(part));
            fields.namesTo.add(Optional.empty());
            return;
          }
          String[] found = new String[2];
          json.members(
              part,
              key -> {
                switch (key) {
                  case "name" -> found[0] = json.string(part + ".name");
                  case "to" -> found[1] = parsed(part + ".to", Rules::target);
                  default -> throw json.bad(part + "." + key + ": unknown key");
                }
              });
          if (found[0] == null) {
            throw json.bad(part + ".name: is missing");
          }
          fields.names.add(found[0]);
          fields.namesTo.add(Optional.ofNullable(found[1]));
        });
    distinct(what, fields.names);
  }

  /** Reads a layout, or a list of layouts. */
  private List<String> layouts(String what, Function<String, String> parser) throws IOException {
    List<String> texts = new ArrayList<>();
    if (json.isList()) {
      json.elements(what, index -> texts.add(parsed(what + "[" + index + "]", parser)));
      if (texts.size() < 2) {
        throw json.bad(what + ": is a list of " + texts.size() + "; give one for each part of split");
      }
    } else {
      texts.add(parsed(what, parser));
    }
    return texts;
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

  private long count(String what) throws IOException {
    long count = json.natural(what);
    if (count == 0) {
      throw json.bad(what + ": 0 is no number of indices or groups");
    }
    return count;
  }

  private void isTrue(String what) {
    if (!json.isTrue()) {
      throw json.bad(what + ": is true where it is given");
    }
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

  /**
   * Checks that new names hold every capture except the one in which joined tensors differ.
   *
   * @return the pattern; in a rule with {@code split}, a capture that only the new names have is
   *     what the only {@code *} matches
   */
  private NamePattern checkCaptures(Fields fields, boolean joins) {
    NamePattern match = Objects.requireNonNull(fields.match);
    Set<String> missing = new HashSet<>(match.captures());
    for (int i = 0; i < fields.as.size(); i++) {
      String what = at + ".as" + (fields.as.size() == 1 ? "" : "[" + i + "]");
      for (String capture : checked(what, fields.as.get(i), NamePattern::capturesIn)) {
        boolean isNew = !match.captures().contains(capture);
        if (isNew && match == fields.match && fields.keys.contains("split")) {
          match = match.named(capture);
        }
        if (!match.captures().contains(capture)) {
          throw json.bad(what + ": match does not capture {" + capture + "}");
        }
        missing.remove(capture);
      }
    }
    if (joins && (fields.as.isEmpty() || missing.size() != 1)) {
      List<String> left = missing.stream().sorted().map(capture -> "{" + capture + "}").toList();
      String leaves =
          left.isEmpty() ? "holds every capture" : "leaves out " + String.join(" and ", left);
      throw json.bad(
          at + ".as: " + (fields.as.isEmpty() ? "is missing" : leaves)
              + "; give the name of the joined tensor, with every capture of match but the one"
              + " that tells its parts apart. A list gives it several names, and does not name its"
              + " parts");
    }
    return match;
  }
}
