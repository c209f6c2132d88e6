// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
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
            case "parts" -> names(what, fields);
            case "split" -> json.elements(what, i -> fields.sizes.add(count(what + "[" + i + "]")));
            case "dim" -> fields.dim = dimension(what);
            case "groups" -> fields.groups = count(what);
            case "unit" -> fields.unit = OptionalLong.of(count(what));
            case "stack" -> fields.stack = json.isTrue() ? 0 : dimension(what);
            case "uneven" -> isTrue(what);
            case "pad_to" -> {
              fields.padTo = count(what);
              if (fields.padTo > Integer.MAX_VALUE) {
                throw json.bad(what + ": " + fields.padTo + " is above " + Integer.MAX_VALUE);
              }
            }
            case "shape" -> fields.shape = Optional.of(json.naturals(what));
            case "drop" -> isTrue(what);
            default -> throw json.bad(what + ": unknown key");
          }
        });
    if (fields.match == null) {
      throw json.bad(at + ".match: is missing");
    }
    Optional<Rule.Form> form = form(fields);
    Optional<String> to = fields.to.stream().findFirst();
    if (!fields.namesTo.isEmpty() && fields.namesTo.stream().allMatch(Optional::isPresent)) {
      to = fields.namesTo.get(0);
    }
    return new Rule(
        path + ": " + at,
        checkCaptures(fields),
        fields.from.stream().findFirst(),
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
    List<String> names = new ArrayList<>();
    List<Optional<String>> namesTo = new ArrayList<>();
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
    int count = fields.sizes.size();
    Map.of("from", fields.from, "to", fields.to)
        .forEach(
            (key, layouts) -> {
              if (layouts.size() > 1 && layouts.size() != count) {
                throw json.bad(
                    at + "." + key + ": has " + layouts.size() + " layouts, and split has " + count
                        + " parts; give one for all, or one for each");
              }
            });
    return forms.stream()
        .findFirst()
        .map(
            form ->
                switch (form) {
                  case "drop" -> drop(fields);
                  case "stack" -> new Rule.Form.Stack(
                      Objects.requireNonNull(fields.stack), fields.keys.contains("uneven"));
                  case "pad_to" -> new Rule.Form.Pad(fields.padTo, fields.shape);
                  default -> parts(fields);
                });
  }

  private Rule.Form drop(Fields fields) {
    for (String key : fields.keys) {
      if (!key.equals("match") && !key.equals("drop")) {
        throw json.bad(
            at + "." + key + ": stands beside drop; a rule that leaves tensors out has only match");
      }
    }
    return new Rule.Form.Drop();
  }

  private Rule.Form parts(Fields fields) {
    if (fields.dim == null) {
      throw json.bad(at + ".dim: is missing");
    }
    boolean splits = fields.keys.contains("split");
    int count = splits ? fields.sizes.size() : fields.names.size();
    boolean isApart = splits && fields.as.size() > 1;
    if (splits) {
      if (count < 2) {
        throw json.bad(at + ".split: is " + fields.sizes + "; give the sizes of two or more parts");
      }
      if (isApart && fields.as.size() != count) {
        throw json.bad(
            at + ".as: has " + fields.as.size() + " names, and split has " + count
                + " parts; give one name for the fused tensor, or one for each part");
      }
      fields.names =
          isApart ? fields.as : IntStream.range(0, count).mapToObj(Integer::toString).toList();
      fields.namesTo = spread(fields.to, count);
    }
    Optional<String> all = fields.to.stream().findFirst();
    List<Optional<String>> to =
        fields.namesTo.stream().map(own -> own.or(() -> all)).toList();
    List<Optional<String>> from = spread(fields.from, count);
    if (fields.groups > 1
        && (to.stream().distinct().count() > 1 || from.stream().distinct().count() > 1)) {
      throw json.bad(
          at + ".groups: stands beside parts with a layout of their own; groups are left whole, so"
              + " that one layout cuts between them");
    }
    Rule.Form.Parts parts =
        new Rule.Form.Parts(
            fields.dim, fields.names, fields.sizes, from, to, fields.groups, fields.unit, isApart);
    try {
      parts.extents().stream().reduce(0L, Math::addExact);
    } catch (ArithmeticException beyond) {
      throw json.bad(at + ".split: the parts together have 2^63 indices or more");
    }
    return parts;
  }

  /** Returns each part's text: its own, or the only one, or none. */
  private static List<Optional<String>> spread(List<String> texts, int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> texts.stream().skip(texts.size() == 1 ? 0 : i).findFirst())
        .toList();
  }

  /** Reads the parts that are joined: names, or objects with a name and perhaps a layout. */
  private void names(String what, Fields fields) throws IOException {
    json.elements(
        what,
        index -> {
          String part = what + "[" + index + "]";
          Map<String, String> found = new HashMap<>();
          if (json.isObject()) {
            json.members(part, key -> found.put(key, json.string(part + "." + key)));
          } else {
            found.put("name", json.string(part));
          }
          String name = found.remove("name");
          if (name == null) {
            throw json.bad(part + ".name: is missing");
          }
          fields.names.add(name);
          String to = found.remove("to");
          fields.namesTo.add(
              Optional.ofNullable(to).map(text -> checked(part + ".to", text, Rules::target)));
          for (String key : found.keySet()) {
            throw json.bad(part + "." + key + ": unknown key");
          }
        });
    distinct(what, fields.names);
  }

  /** Reads a layout, or a list of layouts. */
  private List<String> layouts(String what, Function<String, String> parser) throws IOException {
    List<String> texts = new ArrayList<>();
    if (json.isList()) {
      json.elements(what, index -> texts.add(parsed(what + "[" + index + "]", parser)));
    } else {
      texts.add(parsed(what, parser));
    }
    if (texts.isEmpty()) {
      throw json.bad(what + ": is empty");
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
  private NamePattern checkCaptures(Fields fields) {
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
    boolean joins = fields.keys.contains("parts") || fields.keys.contains("stack");
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
