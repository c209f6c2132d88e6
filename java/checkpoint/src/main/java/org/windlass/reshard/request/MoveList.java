// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.ArrayList;
import java.util.Arrays;
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
  /** Key of a header's metadata. No tensor may have this name. */
  private static final String METADATA = "__metadata__";

  private final Checkpoint in;
  private final ReshardRequest request;
  private final Optional<Layout> defaultFrom;
  private final Map<String, Match> matches;
  private final TiedNames tied;
  private final Consumer<String> warnings;
  private final Doubts doubts = new Doubts();
  private Scales scales = new Scales(List.of());
  private final List<TargetTensor> targets = new ArrayList<>();
  private final List<TensorMove> moves = new ArrayList<>();
  private final Shared shared = new Shared();
  private final TreeSet<Integer> targetRanks = new TreeSet<>();
  private Map<String, String> metadata = Map.of();

  /** Goals of the rules' {@code to} keys, keyed by the rule's position in the file and the text. */
  private final Map<String, Goal> ruledGoals = new LinkedHashMap<>();

  private MoveList(
      Checkpoint in,
      ReshardRequest request,
      Map<String, Match> matches,
      TiedNames tied,
      Consumer<String> warnings) {
    this.in = in;
    this.request = request;
    this.defaultFrom = request.from();
    this.matches = matches;
    this.tied = tied;
    this.warnings = warnings;
  }

  /**
   * Computes the moves.
   *
   * @param warnings receives warnings about rules without matches and about results that are seldom
   *     intended
   * @throws InvalidArgumentException naming the tensor, the rank, and the expected and found values
   */
  public static MoveList of(Checkpoint in, ReshardRequest request, Consumer<String> warnings) {
    in.notes().forEach(warnings);
    List<Rule> rules = request.rules().map(Rules::read).orElse(List.of());
    Map<String, Match> matches = new HashMap<>();
    TiedNames tied = TiedNames.of(in, name -> Match.of(rules, name).map(Match::rule));
    for (Collection<String> names : List.of(in.names(), TiedNames.aliases(in))) {
      for (String name : names) {
        Match.of(rules, name).ifPresent(match -> matches.put(name, match));
      }
    }
    Set<String> used = new HashSet<>();
    matches.values().forEach(match -> used.add(match.rule().where()));
    for (Rule rule : rules) {
      if (!used.contains(rule.where())) {
        warnings.accept(rule.where() + ": matches no tensor that no rule before it matches");
      }
    }
    MoveList list = new MoveList(in, request, matches, tied, warnings);
    list.build();
    return list;
  }

  /** Returns the tensors to write, in the order of their sources. */
  public List<TargetTensor> targets() {
    return targets;
  }

  /** Returns the moves, in the same order. */
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

  private Optional<Rule> ruleOf(String name) {
    return Optional.ofNullable(matches.get(name)).map(Match::rule);
  }

  private void build() {
    DefaultLayouts defaults = new DefaultLayouts(in, request, tied, this::ruleOf, warnings);
    defaults.checkRequest();
    for (String name : tied.tensors()) {
      ruleOf(name)
          .filter(rule -> rule.from().isPresent())
          .ifPresent(
              rule -> tied.requireStored(name, rule, ruleOf(tied.stored(name)).orElse(null)));
    }
    SourceTensors sources =
        new SourceTensors(in, defaultFrom, tied.storedNames(), this::ruleOf, shared);
    if (tied.tensors().isEmpty() && !in.names().isEmpty()) {
      throw new InvalidArgumentException(in.path() + ": rules drop every tensor");
    }
    defaults.checkCovered(sources);
    if (in.byRank()) {
      sources.checkRankFiles();
    }
    Layout highest = highest(sources);
    Optional<Goal> to = request.to().map(text -> Goal.of(text, highest));
    if (in.names().isEmpty()) {
      warnings.accept(in.path() + ": has no tensors, and OUT gets none");
      to.ifPresent(goal -> targetRanks.addAll(goal.files()));
    }
    List<SourceTensor> tensors =
        tied.tensors().stream().map(name -> sources.of(tied.stored(name)).tied(name)).toList();
    scales = new Scales(tensors);
    lookAtDropped();
    Map<List<Object>, Assembly> joined = new LinkedHashMap<>();
    tensors.forEach(tensor -> join(tensor, joined));
    Assembly.checkStacks(joined.values());
    Map<String, String> written = new HashMap<>();
    for (SourceTensor tensor : tensors) {
      for (Assembly assembly : assemblies(tensor, joined)) {
        List<Assembly.Part> parts = assembly.parts();
        String first = parts.get(0).source().name();
        for (String name : assembly.names()) {
          if (name.isEmpty() || name.equals(METADATA)) {
            throw new InvalidArgumentException(
                "tensor \"" + first + "\" would be written as \"" + name
                    + "\", a name that no tensor can have");
          }
          String other = written.putIfAbsent(name, first);
          if (other != null) {
            throw new InvalidArgumentException(
                "tensors \"" + other + "\" and \"" + first + "\" would both be written as \"" + name
                    + "\"");
          }
          add(name, assembly, parts, to, highest);
        }
      }
    }
    defaults.check(sources, tensors, moves);
    Siblings.check(moves, this::ruleOf, request.writesWhole());
    if (!request.ignoreScales()) {
      Remedy remedy = new Remedy(this::ruleOf, n -> Goal.plainFiles(n, to), moves);
      ScaleBlocks.check(scales, moves, in.byRank(), request.writesWhole(), remedy);
      GroupNumbers.check(in, scales, moves, request.writesWhole(), warnings);
    }
    metadata = tied.metadata(moves, warnings);
    doubts.tell(warnings);
  }

  /** Returns the source layout with the highest rank. Target ranks without numbers follow it. */
  private Layout highest(SourceTensors sources) {
    List<Layout> layouts = new ArrayList<>();
    defaultFrom.ifPresent(layouts::add);
    tied.storedNames().forEach(name -> layouts.add(sources.declared(name).get()));
    return layouts.stream()
        .max(Comparator.comparingInt(layout -> layout.mesh().highestRank()))
        .orElseThrow();
  }

  /** Adds a tensor that a rule joins with others to their assembly. */
  private void join(SourceTensor tensor, Map<List<Object>, Assembly> joined) {
    Match match = matches.get(tensor.name());
    if (match != null && match.rule().joins()) {
      Rule rule = match.rule();
      String capture = Objects.requireNonNull(match.captured().get(rule.joined()));
      joined
          .computeIfAbsent(match.key(), key -> new Assembly(match.names(tensor.name()), rule))
          .add(capture, tensor);
    }
  }

  /**
   * Returns what a tensor becomes. Tensors that a rule joins become one assembly, which the first
   * of them takes from {@code joined}.
   */
  private List<Assembly> assemblies(SourceTensor tensor, Map<List<Object>, Assembly> joined) {
    Match match = matches.get(tensor.name());
    if (match == null) {
      return List.of(new Assembly(List.of(tensor.name()), null, -1, tensor));
    }
    if (match.rule().joins()) {
      return Optional.ofNullable(joined.remove(match.key())).stream().toList();
    }
    List<String> names = match.names(tensor.name());
    return match.rule().parts().filter(Rule.Form.Parts::isApart).isEmpty()
        ? List.of(new Assembly(names, match.rule(), -1, tensor))
        : IntStream.range(0, names.size())
            .mapToObj(i -> new Assembly(List.of(names.get(i)), match.rule(), i, tensor))
            .toList();
  }

  private void add(
      String name,
      Assembly assembly,
      List<Assembly.Part> parts,
      Optional<Goal> defaultTo,
      Layout highest) {
    long[] shape = assembly.shape();
    Optional<Rule> rule = Optional.ofNullable(assembly.rule());
    List<Goal> goals = goals(assembly, defaultTo, highest);
    Goal goal = goals.get(0);
    List<Layout> layouts = new ArrayList<>();
    for (Goal each : goals) {
      if (rule.flatMap(Rule::to).isPresent()) {
        rule.get().requireFit("to", each.to(), parts.get(0).source().name(), shape.length);
      }
      layouts.add(each.to().defaultedFor(shape.length));
    }
    boolean defaulted = !layouts.get(0).equals(goal.to());
    for (Assembly.Part part : parts) {
      defaulted |= part.source().defaulted();
    }
    DType dtype = dtype(parts.get(0).source(), rule);
    for (Assembly.Part part : parts) {
      SourceTensor source = part.source();
      if (dtype(source, rule) != dtype) {
        throw new InvalidArgumentException(
            rule.get().where() + ": tensor \"" + source.name() + "\" is " + dtype(source, rule)
                + ", and \"" + parts.get(0).source().name() + "\", with which it joins, is " + dtype);
      }
    }
    Division division = division(assembly, goals, layouts, shape);
    TargetTensor target =
        new TargetTensor(
            name,
            shared.one(shape),
            dtype,
            shared.one(division),
            goal.firstFile(),
            defaulted);
    target.division().check(name);
    targets.add(target);
    targetRanks.addAll(goal.files());
    if (!request.writesWhole() && rule.flatMap(Rule::to).isPresent()) {
      lookAtFiles(parts.get(0).source(), rule.get(), goal, defaultTo);
    }
    for (Assembly.Part part : parts) {
      SourceTensor source = part.source();
      Optional<DType> wire =
          Casts.touch(source.dtype()) && !scales.keep(source) ? request.wire() : Optional.empty();
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
      doubts.look(move, rule, in.byRank(), !request.writesWhole());
      if (scales.keep(source)) {
        rule.ifPresent(own -> doubts.lookAtKept(source, own));
      }
      moves.add(move);
    }
  }

  /**
   * Returns the goals of the parts of a fused tensor, or the only one of another tensor. Without a
   * layout of the rule, it is {@code defaultTo}. Ranks of a rule's layout without a default are
   * numbered after those of {@code highest}.
   */
  private List<Goal> goals(Assembly assembly, Optional<Goal> defaultTo, Layout highest) {
    Optional<Rule> rule = Optional.ofNullable(assembly.rule());
    List<Optional<String>> texts =
        assembly
            .fused()
            .map(Rule.Form.Parts::to)
            .orElseGet(() -> List.of(rule.flatMap(Rule::to)));
    if (assembly.splitOff() >= 0) {
      texts = List.of(texts.get(assembly.splitOff()));
    }
    List<Goal> goals =
        texts.stream()
            .map(text -> text.map(own -> goal(rule.get(), own, defaultTo, highest)))
            .map(goal -> goal.or(() -> defaultTo).get())
            .toList();
    for (Goal goal : goals) {
      if (!goal.files().equals(goals.get(0).files())) {
        throw new InvalidArgumentException(
            rule.get().where() + ": parts of one tensor are on the same ranks; " + goals.get(0).text()
                + " is for " + goals.get(0).listed() + ", and " + goal.text() + " for " + goal.listed());
      }
    }
    return goals;
  }

  private Division division(
      Assembly assembly, List<Goal> goals, List<Layout> layouts, long[] shape) {
    Layout to = layouts.get(0);
    if (assembly.rule() == null || request.writesWhole()) {
      return Division.plain(to, shape);
    }
    Optional<Rule.Form.Parts> fused = assembly.fused();
    String texts = String.join(", ", goals.stream().map(Goal::text).distinct().toList());
    String where = assembly.rule().where() + ": " + texts;
    if (fused.isPresent() && assembly.splitOff() < 0) {
      return Division.of(where, fused.get(), assembly.dim(), assembly.extents(), layouts, shape);
    }
    fused.flatMap(parts -> parts.unit().stream().boxed().findFirst())
        .ifPresent(
            unit ->
                Division.checkUnit(
                    where, "\"" + assembly.names().get(0) + "\"", to, assembly.dim(), shape, unit));
    fused
        .filter(parts -> parts.groups() > 1)
        .ifPresent(
            parts ->
                Division.checkGroups(
                    where,
                    "\"" + assembly.names().get(0) + "\"",
                    to,
                    assembly.dim(),
                    shape,
                    parts.groups()));
    Division plain = Division.plain(to, shape);
    return assembly
        .rule()
        .pad()
        .map(pad -> new Division(pad.padded(to, plain.padded()), 0, List.of(), List.of(to)))
        .orElse(plain);
  }

  /**
   * Checks that rules leave out a weight and its scales together.
   *
   * @throws InvalidArgumentException naming a weight whose scales are left out
   */
  private void lookAtDropped() {
    if (matches.values().stream().anyMatch(match -> match.rule().drops())) {
      new Scales(in.names().stream().map(this::stored).toList())
          .lookAtDropped(
              name -> ruleOf(name).filter(Rule::drops).isEmpty(), request.ignoreScales(), doubts);
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

  private Goal goal(Rule rule, String text, Optional<Goal> defaultTo, Layout highest) {
    return ruledGoals.computeIfAbsent(
        rule.where() + " " + text,
        key ->
            defaultTo
                .map(base -> base.of(rule, text))
                .orElseGet(() -> Goal.of(text, highest)));
  }

  /** Warns if a rule writes a tensor to files that hold no tensor of the default layout. */
  private void lookAtFiles(SourceTensor source, Rule rule, Goal goal, Optional<Goal> defaultTo) {
    Goal base = defaultTo.orElseGet(() -> ruledGoals.values().iterator().next());
    if (!base.files().containsAll(goal.files())) {
      String whose = defaultTo.isPresent() ? "to() " : "another rule's ";
      doubts.add(
          source.name(),
          rule.where() + ".to: " + goal.text() + " is for " + goal.listed() + ", and " + whose
              + base.text() + " for " + base.listed()
              + "; a layout without @ lies where to() does");
    }
  }

  private DType dtype(SourceTensor source, Optional<Rule> rule) {
    Optional<DType> asked = rule.flatMap(Rule::dtype).or(request::dtype);
    if (asked.isPresent() && Casts.lack(source.dtype())) {
      throw new UnsupportedException(
          "tensor \"" + source.name() + "\": " + source.dtype() + " is not cast, to " + asked.get()
              + " or any other dtype; rules give the dtype to the tensors that it is for");
    }
    return Casts.touch(source.dtype()) && !scales.keep(source)
        ? asked.orElse(source.dtype())
        : source.dtype();
  }

  private void checkScales(TensorMove move) {
    DType source = move.source().dtype();
    DType target = move.target().dtype();
    DType wire = move.wire().orElse(source);
    // Wider dtypes hold every f8 value.
    boolean cast = target != source || wire != source && isF8(wire);
    if (!isF8(source) || !cast || request.ignoreScales()) {
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
                      + "\"; ignoreScales() casts it all the same");
            });
  }

  /** Throws if a tensor is cut, joined or transposed that by its name must stay whole. */
  private void checkWhole(TensorMove move) {
    SourceTensor source = move.source();
    TargetTensor target = move.target();
    if (Purpose.of(source.name()) != Purpose.WHOLE
        || Casts.touch(source.dtype())
        || request.ignoreScales()) {
      return;
    }
    Layout from = source.from();
    boolean isRead =
        in.byRank()
            && from.mesh().ranks().stream()
                .anyMatch(
                    rank -> !Arrays.equals(source.held(rank).shape(), source.shape()));
    boolean isWritten = !request.writesWhole() && move.isCut();
    boolean isSame =
        isRead
            && isWritten
            && source.division().isPlain()
            && target.division().isPlain()
            && from.placements().equals(target.to().placements())
            && from.mesh().size() == target.to().mesh().size();
    boolean isCut = (isRead || isWritten) && !isSame;
    if (isCut || move.isPart() || !move.axes().keepOrder()) {
      String own = source.name().substring(source.name().lastIndexOf('.') + 1);
      String rule =
          isWritten
              ? "\"to\": \"" + target.files().ranks().size() + ":R\""
              : "\"from\": \"" + from.mesh().size() + ":R\"";
      String what =
          isCut
              ? (isWritten ? target.shown() : from) + " cuts them; the rule {\"match\": \"*" + own
                  + "\", " + rule + "} keeps them whole"
              : "a rule joins or transposes them; leave them as they are";
      throw new InvalidArgumentException(
          "tensor \"" + source.name() + "\": by its name its integers pack rows that lie apart, or"
              + " are another library's record, and " + what
              + ". ignoreScales() takes them as others");
    }
  }

  private static boolean isF8(DType dtype) {
    return dtype == DType.F8E4M3 || dtype == DType.F8E5M2;
  }
}
