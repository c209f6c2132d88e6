// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.checkpoint.FileFault;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.Layout;

/**
 * Reads the file of {@code --rules}, a JSON list of {@link Rule}s. Error messages name the file,
 * the position in the JSON, and the problem.
 */
public final class Rules {
  /**
   * Keys that require one of several other keys, which are the values. Keys that make a form come
   * first.
   */
  private static final Map<String, List<String>> BELONGS =
      new TreeMap<>(
          Map.of(
              "dim", List.of("parts", "split"),
              "groups", List.of("parts", "split"),
              "shape", List.of("pad_to"),
              "uneven", List.of("stack"),
              "unit", List.of("parts", "split")));

  /** Represents a part that is joined, and its layout if the part has one of its own. */
  private record Named(String name, Optional<String> to) {}

  private final JsonText json;
  private final String at;
  private final JsonFields fields;
  private final JsonFields.Field<NamePattern> match;
  private final JsonFields.Field<List<String>> from;
  private final JsonFields.Field<List<String>> to;
  private final JsonFields.Field<DType> dtype;
  private final JsonFields.Field<List<String>> as;
  private final JsonFields.Field<Rule.Transpose> transpose;
  private final JsonFields.Field<List<Named>> parts;
  private final JsonFields.Field<List<Long>> split;
  private final JsonFields.Field<Integer> dim;
  private final JsonFields.Field<Long> groups;
  private final JsonFields.Field<Long> unit;
  private final JsonFields.Field<Integer> stack;
  private final JsonFields.Field<Long> padTo;
  private final JsonFields.Field<List<Long>> shape;

  private Rules(JsonText json, String at) {
    this.json = json;
    this.at = at;
    fields = new JsonFields(json, at);
    match = fields.add("match", what -> json.parsed(what, NamePattern::parse));
    from = fields.add("from", what -> some(what, Rules::source));
    to = fields.add("to", what -> some(what, Rules::target));
    dtype = fields.add("dtype", what -> json.parsed(what, Rules::castable));
    as = fields.add("as", what -> distinct(what, some(what, text -> text)));
    transpose = fields.add("transpose", this::transpose);
    parts = fields.add("parts", this::parts);
    split = fields.add("split", what -> json.list(what, this::count));
    dim = fields.add("dim", this::dimension);
    groups = fields.add("groups", this::count);
    unit = fields.add("unit", this::count);
    stack = fields.add("stack", what -> json.isTrue() ? 0 : dimension(what));
    fields.add("uneven", this::isTrue);
    padTo = fields.add("pad_to", this::padTo);
    shape = fields.add("shape", json::naturals);
    fields.add("drop", this::isTrue);
  }

  /** Reads and checks a file of rules. */
  public static List<Rule> read(Path path) {
    List<Rule> rules = new ArrayList<>();
    return JsonText.parse(
        path.toString(),
        JsonText.bytesOf(path, FileFault::reading),
        json -> {
          json.elements(
              "the whole", index -> rules.add(new Rules(json, "[" + index + "]").rule(path)));
          return rules;
        });
  }

  private Rule rule(Path path) throws IOException {
    fields.read(at);
    match.get();
    Optional<Rule.Form> form = form();
    Optional<String> whole =
        form.isPresent() && form.get() instanceof Rule.Form.Parts each
            ? each.to().stream().allMatch(Optional::isPresent) ? each.to().get(0) : Optional.empty()
            : to.find().map(layouts -> layouts.get(0));
    return new Rule(
        path + ": " + at,
        checkCaptures(),
        from.find().map(layouts -> layouts.get(0)),
        whole,
        dtype.find(),
        as.find().orElse(List.of()),
        transpose.find().orElse(new Rule.Transpose.None()),
        form);
  }

  /** Returns how the rule changes tensors. Throws if its keys do not go together. */
  private Optional<Rule.Form> form() {
    List<String> forms = new ArrayList<>(List.of("drop", "parts", "split", "stack", "pad_to"));
    forms.retainAll(fields.keys());
    if (forms.size() > 1) {
      throw json.bad(
          at + "." + forms.get(1) + ": stands beside " + forms.get(0)
              + "; a rule does only one of: join, split, pad, drop");
    }
    BELONGS.forEach(
        (key, owners) -> {
          if (fields.has(key) && Collections.disjoint(owners, fields.keys())) {
            throw json.bad(
                at + "." + key + ": has no " + String.join(" or ", owners) + " that it is of");
          }
        });
    int count = split.find().map(List::size).orElse(0);
    Map.of("from", from, "to", to)
        .forEach(
            (key, field) -> {
              int layouts = field.find().map(List::size).orElse(1);
              if (layouts > 1 && layouts != count) {
                throw json.bad(
                    at + "." + key + ": has " + layouts + " layouts, and split has " + count
                        + " parts; give one for all, or one for each");
              }
            });
    return forms.stream()
        .findFirst()
        .map(
            form ->
                switch (form) {
                  case "drop" -> drop();
                  case "stack" -> new Rule.Form.Stack(stack.get(), fields.has("uneven"));
                  case "pad_to" -> new Rule.Form.Pad(padTo.get(), shape.find());
                  default -> parts();
                });
  }

  private Rule.Form drop() {
    for (String key : fields.keys()) {
      if (!key.equals("match") && !key.equals("drop")) {
        throw json.bad(
            at + "." + key + ": is in a rule with drop; a rule that leaves tensors out has only"
                + " match");
      }
    }
    return new Rule.Form.Drop();
  }

  private Rule.Form parts() {
    int along = dim.get();
    List<Long> sizes = split.find().orElse(List.of());
    List<Named> joined = parts.find().orElse(List.of());
    List<String> written = as.find().orElse(List.of());
    boolean splits = parts.find().isEmpty();
    int count = splits ? sizes.size() : joined.size();
    boolean isApart = splits && written.size() > 1;
    if (splits && count < 2) {
      throw json.bad(at + ".split: is " + sizes + "; give the sizes of two or more parts");
    }
    if (isApart && written.size() != count) {
      throw json.bad(
          at + ".as: has " + written.size() + " names, and split has " + count
              + " parts; give one name for the fused tensor, or one for each part");
    }
    List<String> names =
        isApart
            ? written
            : splits
                ? IntStream.range(0, count).mapToObj(Integer::toString).toList()
                : joined.stream().map(Named::name).toList();
    List<Optional<String>> all = spread(to, count);
    List<Optional<String>> each =
        IntStream.range(0, count)
            .mapToObj(i -> splits ? all.get(i) : joined.get(i).to().or(() -> all.get(i)))
            .toList();
    List<Optional<String>> read = spread(from, count);
    long times = groups.find().orElse(1L);
    if (times > 1
        && (each.stream().distinct().count() > 1 || read.stream().distinct().count() > 1)) {
      throw json.bad(
          at + ".groups: stands beside parts with a layout of their own; groups are left whole, so"
              + " that one layout cuts between them");
    }
    OptionalLong whole = unit.find().stream().mapToLong(Long::longValue).findFirst();
    Rule.Form.Parts form =
        new Rule.Form.Parts(along, names, sizes, read, each, times, whole, isApart);
    try {
      form.extents().stream().reduce(0L, Math::addExact);
    } catch (ArithmeticException beyond) {
      throw json.bad(at + ".split: the parts together have 2^63 indices or more");
    }
    return form;
  }

  /**
   * Returns a text for each of {@code count} parts. The field may have a text for each part, one
   * text for all, or none.
   */
  private static List<Optional<String>> spread(JsonFields.Field<List<String>> field, int count) {
    List<String> texts = field.find().orElse(List.of());
    return IntStream.range(0, count)
        .mapToObj(i -> texts.stream().skip(texts.size() == 1 ? 0 : i).findFirst())
        .toList();
  }

  /** Reads the parts that are joined: names, or objects with a name and perhaps a layout. */
  private List<Named> parts(String what) throws IOException {
    List<Named> named = json.list(what, this::part);
    distinct(what, named.stream().map(Named::name).toList());
    return named;
  }

  private Named part(String what) throws IOException {
    if (!json.isObject()) {
      return new Named(json.string(what), Optional.empty());
    }
    JsonFields own = new JsonFields(json, what);
    var name = own.add("name", json::string);
    var layout = own.add("to", key -> json.parsed(key, Rules::target));
    own.read(what);
    return new Named(name.get(), layout.find());
  }

  /** Reads a text, or a list of texts. */
  private List<String> some(String what, Function<String, String> parser) throws IOException {
    List<String> texts =
        json.isList()
            ? json.list(what, each -> json.parsed(each, parser))
            : List.of(json.parsed(what, parser));
    if (texts.isEmpty()) {
      throw json.bad(what + ": is empty");
    }
    return texts;
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
      throw json.bad(what + ": " + dim + " is not a dimension: tensors have at most "
          + SourceTensors.MAX_DIMS);
    }
    return (int) dim;
  }

  private long count(String what) throws IOException {
    long count = json.natural(what);
    if (count == 0) {
      throw json.bad(what + ": 0 is not a valid number of indices or groups");
    }
    return count;
  }

  private long padTo(String what) throws IOException {
    long multiple = count(what);
    if (multiple > Integer.MAX_VALUE) {
      throw json.bad(what + ": " + multiple + " is above " + Integer.MAX_VALUE);
    }
    return multiple;
  }

  private boolean isTrue(String what) {
    if (!json.isTrue()) {
      throw json.bad(what + ": is true where it is given");
    }
    return true;
  }

  private Rule.Transpose transpose(String what) throws IOException {
    if (json.isTrue()) {
      return new Rule.Transpose.LastTwo();
    }
    List<Integer> order = json.list(what, this::dimension);
    for (int d = 0; d < order.size(); d++) {
      if (!order.contains(d)) {
        throw json.bad(what + ": " + order + " does not name dimension " + d);
      }
    }
    return new Rule.Transpose.Order(order);
  }

  /**
   * Throws unless the new names contain every capture, except the capture in which joined tensors
   * differ.
   *
   * @return the pattern; in a rule with {@code split}, its only {@code *} becomes the capture that
   *     only the new names have
   */
  private NamePattern checkCaptures() {
    NamePattern pattern = match.get();
    List<String> names = as.find().orElse(List.of());
    Set<String> missing = new HashSet<>(pattern.captures());
    for (int i = 0; i < names.size(); i++) {
      String what = at + ".as" + (names.size() == 1 ? "" : "[" + i + "]");
      String name = names.get(i);
      for (String capture : json.checked(what, () -> NamePattern.capturesIn(name))) {
        boolean isNew = !pattern.captures().contains(capture);
        if (isNew && pattern == match.get() && fields.has("split")) {
          pattern = pattern.named(capture);
        }
        if (!pattern.captures().contains(capture)) {
          throw json.bad(what + ": match does not capture {" + capture + "}");
        }
        missing.remove(capture);
      }
    }
    boolean joins = fields.has("parts") || fields.has("stack");
    if (joins && (names.isEmpty() || missing.size() != 1)) {
      List<String> left = missing.stream().sorted().map(capture -> "{" + capture + "}").toList();
      String leaves =
          left.isEmpty() ? "holds every capture" : "leaves out " + String.join(" and ", left);
      throw json.bad(
          at + ".as: " + (names.isEmpty() ? "is missing" : leaves)
              + "; give the name of the joined tensor, with every capture of match but the one"
              + " that tells its parts apart. A list gives it several names, and does not name its"
              + " parts");
    }
    return pattern;
  }
}
