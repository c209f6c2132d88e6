// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.reshard.check.Doubts;
import org.windlass.reshard.check.GroupNumbers;
import org.windlass.reshard.check.Purpose;
import org.windlass.reshard.check.Remedy;
import org.windlass.reshard.check.ScaleBlocks;
import org.windlass.reshard.check.Scales;
import org.windlass.reshard.check.Siblings;
import org.windlass.reshard.tensor.Assembly;
import org.windlass.reshard.tensor.Casts;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.Rules;
import org.windlass.reshard.tensor.Shared;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.SourceTensors;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.reshard.tensor.TiedNames;

/**
 * Lists the moves of a request for each tensor of a checkpoint. It checks everything that can be
 * checked before a byte moves.
 */
public final class MoveList {
  /** Key of the metadata in a header. No tensor may have this name. */
  private static final String METADATA = "__metadata__";

  private final Checkpoint in;
  private final ReshardRequest request;
  private final Map<String, Match> matches = new HashMap<>();
  private final Consumer<String> warnings;
  private final Doubts doubts = new Doubts();
  private Scales scales = new Scales(List.of());
  private final List<TargetTensor> targets = new ArrayList<>();
  private final List<TensorMove> moves = new ArrayList<>();
  private final Shared shared = new Shared();
  private final TreeSet<Integer> targetRanks = new TreeSet<>();
  private final Map<String, String> metadata;
  /** Goals of the rules' {@code to} keys, keyed by the rule's position in the file and the text. */
  private final Map<String, Goal> ruledGoals = new LinkedHashMap<>();

  /**
   * Source layout with the highest rank. If target ranks have no numbers, they are numbered after
   * this rank.
   */
  private final Layout highest;

  private final Optional<Goal> defaultTo;

  /**
   * Computes the moves.
   *
   * @param warnings receives warnings about rules without matches and about results that are seldom
   *     intended
   * @throws InvalidArgumentException with a message that names the tensor, the rank, and the
   *     expected and found values
   */
  public MoveList(Checkpoint in, ReshardRequest request, Consumer<String> warnings) {
    this.in = in;
    this.request = request;
    this.warnings = warnings;
    in.notes().forEach(warnings);
    match(request.rules.map(Rules::read).orElse(List.of()));
    TiedNames tied = TiedNames.of(in, this::ruleOf);
    DefaultLayouts defaults = new DefaultLayouts(in, request, tied, this::ruleOf, warnings);
    defaults.checkRequest();
    for (String name : tied.tensors()) {
      if (ruleOf(name).from().isPresent()) {
        tied.requireStored(name, ruleOf(name), ruleOf(tied.stored(name)));
      }
    }
    SourceTensors sources =
        new SourceTensors(in, request.from, tied.storedNames(), this::ruleOf, shared);
    if (tied.tensors().isEmpty() && !in.names().isEmpty()) {
      throw new InvalidArgumentException(
          in.path() + ": rules drop every tensor; leave one of them out");
    }
    defaults.checkCovered(sources);
    if (in.byRank()) {
      sources.checkRankFiles();
    }
    highest =
        Stream.concat(
                request.from.stream(),
                tied.storedNames().stream().map(name -> sources.declared(name).get()))
            .max(Comparator.comparingInt(layout -> layout.mesh().highestRank()))
            .orElseThrow();
    defaultTo = request.to.map(text -> Goal.of(text, highest));
    if (in.names().isEmpty()) {
      warnings.accept(in.path() + ": has no tensors, and OUT gets none");
      defaultTo.ifPresent(goal -> targetRanks.addAll(goal.files()));
    }
    List<SourceTensor> tensors =
        tied.tensors().stream().map(name -> sources.of(tied.stored(name)).tied(name)).toList();
    scales = new Scales(tensors);
    lookAtDropped();
    addAll(tensors);
    defaults.check(sources, tensors, moves);
    check();
    metadata = tied.metadata(moves, warnings);
    doubts.tell(warnings);
  }

  private void match(List<Rule> rules) {
    for (Collection<String> names : List.of(in.names(), TiedNames.aliases(in))) {
      for (String name : names) {
        Match match = Match.of(rules, name);
        if (match != Match.NONE) {
          matches.put(name, match);
        }
      }
    }
    Set<String> used = new HashSet<>();
    matches.values().forEach(match -> used.add(match.rule().where()));
    for (Rule rule : rules) {
      if (!used.contains(rule.where())) {
        warnings.accept(
            rule.where() + ": matches no tensor, or only tensors that a rule before it matches");
      }
    }
  }

  /** Returns the tensors to write, in the order of their sources. */
  public List<TargetTensor> targets() {
    return targets;
  }

  /** Returns the moves, in the order of their sources. */
  public List<TensorMove> moves() {
    return moves;
  }

  /** Returns the metadata of the written files. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /** Returns the numbers of the files for the ranks of the target layouts, ascending. */
  public List<Integer> targetRanks() {
    return List.copyOf(targetRanks);
  }

  private Rule ruleOf(String name) {
    return matches.getOrDefault(name, Match.NONE).rule();
  }

  private void check() {
    Moves all = new Moves(moves, this::ruleOf);
    Siblings.check(all);
    if (!request.ignoreScales) {
      Remedy remedy = new Remedy(all, ranks -> Goal.plainFiles(ranks, defaultTo));
      ScaleBlocks.check(scales, all, in.byRank(), remedy);
      GroupNumbers.check(in, scales, all, doubts);
    }
  }

  private void addAll(List<SourceTensor> tensors) {
    Map<List<Object>, Assembly> joined = new LinkedHashMap<>();
    tensors.forEach(tensor -> join(tensor, joined));
    Assembly.checkStacks(joined.values());
    Map<String, String> written = new HashMap<>();
    for (SourceTensor tensor : tensors) {
      for (Assembly assembly : assemblies(tensor, joined)) {
        Assembly.Whole whole = assembly.whole();
        String first = whole.first().name();
        for (String name : assembly.names()) {
          if (name.isEmpty() || name.equals(METADATA)) {
            throw new InvalidArgumentException(
                "tensor \"" + first + "\" would be written as \"" + name
                    + "\", which is not a valid name of a tensor; correct \"as\" in its rule");
          }
          String other = written.putIfAbsent(name, first);
          if (other != null) {
            throw new InvalidArgumentException(
                "tensors \"" + other + "\" and \"" + first + "\" would both be written as \"" + name
                    + "\"; give \"as\" more captures, or drop one of them");
          }
          add(name, assembly, whole);
        }
      }
    }
  }

  /** Adds a tensor to the assembly of the tensors with which a rule joins it. */
  private void join(SourceTensor tensor, Map<List<Object>, Assembly> joined) {
    Match match = matches.getOrDefault(tensor.name(), Match.NONE);
    if (match.rule().joins()) {
      String capture = Objects.requireNonNull(match.captured().get(match.rule().joined()));
      joined
          .computeIfAbsent(
              match.key(), key -> new Assembly(match.names(tensor.name()), match.rule()))
          .add(capture, tensor);
    }
  }

  /**
   * Returns the assemblies that are written for a tensor. If a rule joins tensors, they become one
   * assembly. It is in {@code joined}, and the call for the first of the tensors removes and
   * returns it.
   */
  private List<Assembly> assemblies(SourceTensor tensor, Map<List<Object>, Assembly> joined) {
    Match match = matches.getOrDefault(tensor.name(), Match.NONE);
    if (match.rule().joins()) {
      return Optional.ofNullable(joined.remove(match.key())).stream().toList();
    }
    List<String> names = match.names(tensor.name());
    Map<String, SourceTensor> only = Map.of("", tensor);
    return match.rule().parts().filter(Rule.Form.Parts::isApart).isEmpty()
        ? List.of(new Assembly(names, match.rule(), -1, only))
        : IntStream.range(0, names.size())
            .mapToObj(i -> new Assembly(List.of(names.get(i)), match.rule(), i, only))
            .toList();
  }

  private void add(String name, Assembly assembly, Assembly.Whole whole) {
    long[] shape = whole.shape();
    Rule rule = assembly.rule();
    SourceTensor first = whole.first();
    List<Goal> goals = goals(assembly);
    Goal goal = goals.get(0);
    List<Layout> layouts = new ArrayList<>();
    for (Goal each : goals) {
      if (rule.to().isPresent()) {
        rule.requireFit("to", each.to(), first.name(), shape.length);
      }
      layouts.add(each.to().defaultedFor(shape.length));
    }
    boolean defaulted =
        !layouts.get(0).equals(goal.to())
            || whole.parts().stream().anyMatch(part -> part.source().defaulted());
    DType dtype = dtype(first, rule);
    for (Assembly.Part part : whole.parts()) {
      SourceTensor source = part.source();
      if (dtype(source, rule) != dtype) {
        throw new InvalidArgumentException(
            rule.where() + ": tensor \"" + source.name() + "\" is " + dtype(source, rule)
                + ", and \"" + first.name() + "\", with which it joins, is " + dtype
                + "; \"dtype\" in the rule casts both");
      }
    }
    int firstRank = goal.firstRank();
    Division division = division(assembly, goals, layouts, whole);
    division.check(name);
    if (request.writesWhole()) {
      firstRank += goal.to().mesh().lowestRank();
      division = Division.plain(Layout.parse("1:R"), shape);
    }
    TargetTensor target =
        new TargetTensor(
            name,
            shared.one(shape),
            dtype,
            shared.one(division),
            firstRank,
            defaulted);
    targets.add(target);
    targetRanks.addAll(goal.files());
    if (!request.writesWhole() && rule.to().isPresent()) {
      lookAtFiles(first, rule, goal);
    }
    for (Assembly.Part part : whole.parts()) {
      SourceTensor source = part.source();
      Optional<DType> wire = isCast(source) ? request.wire : Optional.empty();
      TensorMove move =
          new TensorMove(
              source,
              shared.one(part.axes()),
              target,
              assembly.dim(),
              shared.one(part.segments()),
              wire);
      checkScales(move);
      checkWhole(move);
      doubts.look(move, rule, in.byRank());
      if (scales.keep(source)) {
        doubts.lookAtKept(source, rule);
      }
      moves.add(move);
    }
  }

  /**
   * Returns the goals of the parts of a fused tensor, or the single goal of another tensor. If the
   * rule gives no layout, the goal is the default one.
   */
  private List<Goal> goals(Assembly assembly) {
    Rule rule = assembly.rule();
    List<Optional<String>> texts =
        rule.parts().map(Rule.Form.Parts::to).orElse(List.of(rule.to()));
    if (assembly.splitOff() >= 0) {
      texts = List.of(texts.get(assembly.splitOff()));
    }
    List<Goal> goals =
        texts.stream()
            .map(text -> text.map(own -> goal(rule, own)).or(() -> defaultTo).get())
            .toList();
    Goal first = goals.get(0);
    for (Goal goal : goals) {
      if (!goal.files().equals(first.files())) {
        throw new InvalidArgumentException(
            rule.where() + ": parts of one tensor are on the same ranks; " + first.text()
                + " is for " + first.listed() + ", and " + goal.text() + " for " + goal.listed()
                + "; give all parts the same number of ranks, with R for ranks that share a piece");
      }
    }
    return goals;
  }

  private Division division(
      Assembly assembly, List<Goal> goals, List<Layout> layouts, Assembly.Whole whole) {
    Layout to = layouts.get(0);
    Division plain = Division.plain(to, whole.shape());
    if (request.writesWhole()) {
      return plain;
    }
    Rule rule = assembly.rule();
    if (rule.parts().isPresent()) {
      Rule.Form.Parts parts = rule.parts().get();
      String texts = String.join(", ", goals.stream().map(Goal::text).distinct().toList());
      String where = rule.where() + ": " + texts;
      if (assembly.splitOff() < 0) {
        return Division.of(where, parts, parts.dim(), whole.extents(), layouts, whole.shape());
      }
      String which = "\"" + assembly.names().get(0) + "\"";
      Division.checkUnit(where, which, to, parts.dim(), whole.shape(), parts.unit().orElse(1));
      if (parts.groups() > 1) {
        Division.checkGroups(where, which, to, parts.dim(), whole.shape(), parts.groups());
      }
    }
    return rule.pad()
        .map(pad -> Division.plain(to, pad.padded(to, plain.padded())))
        .orElse(plain);
  }

  /**
   * Checks that rules leave out a weight and its scales together.
   *
   * @throws InvalidArgumentException with a message that names a weight whose scales are left out
   */
  private void lookAtDropped() {
    if (matches.values().stream().anyMatch(match -> match.rule().drops())) {
      new Scales(in.names().stream().map(this::stored).toList())
          .lookAtDropped(name -> !ruleOf(name).drops(), request.ignoreScales, doubts);
    }
  }

  /** Returns a tensor of IN with the shape that it has in the first file that holds it. */
  private SourceTensor stored(String name) {
    SafetensorsEntry entry =
        in.files().stream()
            .flatMap(file -> file.header().find(name).stream())
            .findFirst()
            .orElseThrow();
    Division none = Division.plain(Layout.parse("1:R"), entry.dims());
    return new SourceTensor(name, name, entry.dims(), entry.dtype(), none, false);
  }

  private Goal goal(Rule rule, String text) {
    return ruledGoals.computeIfAbsent(
        rule.where() + " " + text,
        key ->
            defaultTo
                .map(base -> base.of(rule, text))
                .orElseGet(() -> Goal.of(text, highest)));
  }

  /** Warns if a rule writes a tensor to a file that has no tensor of the default layout. */
  private void lookAtFiles(SourceTensor source, Rule rule, Goal goal) {
    Goal base = defaultTo.orElseGet(() -> ruledGoals.values().iterator().next());
    if (!base.files().containsAll(goal.files())) {
      String whose = defaultTo.isPresent() ? "to() " : "another rule's ";
      doubts.add(
          source.name(),
          rule.where() + ".to: " + goal.text() + " is for " + goal.listed() + ", and " + whose
              + base.text() + " for " + base.listed()
              + "; a layout without @ uses the ranks of to()");
    }
  }

  private boolean isCast(SourceTensor source) {
    return Casts.touch(source.dtype()) && !scales.keep(source);
  }

  private DType dtype(SourceTensor source, Rule rule) {
    Optional<DType> asked = rule.dtype().or(() -> request.dtype);
    if (asked.isPresent() && Casts.lack(source.dtype())) {
      throw new UnsupportedException(
          "tensor \"" + source.name() + "\": " + source.dtype() + " is not cast, to " + asked.get()
              + " or any other dtype; set the dtype in rules for the tensors that can be cast");
    }
    return isCast(source) ? asked.orElse(source.dtype()) : source.dtype();
  }

  private void checkScales(TensorMove move) {
    DType source = move.source().dtype();
    DType target = move.target().dtype();
    DType wire = move.wire().orElse(source);
    // Wider dtypes hold every f8 value.
    boolean cast = target != source || wire != source && isF8(wire);
    if (!isF8(source) || !cast || request.ignoreScales) {
      return;
    }
    String name = move.source().name();
    scales
        .of(move.source())
        .ifPresent(
            scale -> {
              throw new InvalidArgumentException(
                  "tensor \"" + name + "\": casting " + source + " to "
                      + (target == source ? wire : target) + " leaves out its scales in \"" + scale
                      + "\"; ignoreScales() casts it nevertheless");
            });
  }

  /**
   * Throws if a tensor is cut, joined or transposed although its name shows that it must stay
   * whole.
   */
  private void checkWhole(TensorMove move) {
    SourceTensor source = move.source();
    TargetTensor target = move.target();
    if (Purpose.of(source.name()) != Purpose.WHOLE
        || Casts.touch(source.dtype())
        || request.ignoreScales) {
      return;
    }
    Layout from = source.from();
    boolean isRead = in.byRank() && source.isCut();
    boolean isWritten = move.isCut();
    boolean isSame = isRead && isWritten && move.isCutAlike();
    boolean isCut = (isRead || isWritten) && !isSame;
    if (isCut || move.isPart() || !move.axes().keepOrder()) {
      String own = source.name().substring(source.name().lastIndexOf('.') + 1);
      String rule =
          isWritten
              ? "\"to\": \"" + target.to().mesh().size() + ":R\""
              : "\"from\": \"" + from.mesh().size() + ":R\"";
      String what =
          isCut
              ? (isWritten ? target.division() : from) + " cuts them; the rule {\"match\": \"*" + own
                  + "\", " + rule + "} keeps them whole"
              : "a rule joins or transposes them; leave them as they are";
      throw new InvalidArgumentException(
          "tensor \"" + source.name() + "\": its name says that its integers pack distant rows,"
              + " or are another library's record, and " + what
              + ". ignoreScales() treats them like other tensors");
    }
  }

  private static boolean isF8(DType dtype) {
    return dtype == DType.F8E4M3 || dtype == DType.F8E5M2;
  }
}
