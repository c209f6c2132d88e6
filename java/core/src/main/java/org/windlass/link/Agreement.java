// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiFunction;
import org.windlass.error.MismatchException;
import org.windlass.internal.Shapes;
import org.windlass.internal.transfer.Offer;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;

/**
 * Compares the offers of all ranks of a {@link Link}, and derives from them the tensors to move.
 * Every rank gets the same result, or every rank throws the same {@link MismatchException}.
 */
final class Agreement {
  /**
   * A tensor that is sent, and one view that receives it.
   *
   * @param view index, from 0, of the view among all views of that name on the receiving side
   */
  record Pair(Offer.Sent from, TensorSpec to, int view) {}

  /** Identifies a view of one side: a tensor's name, and an index among its views. */
  private record Key(String name, int view) {}

  /** An entry of the offers, and the lowest rank whose offer has that entry. */
  private record Said<T>(int rank, T what) {}

  private final BiFunction<Boolean, Layout, String> named;
  private final List<Offer> offers = new ArrayList<>();
  private final Map<Key, Said<Offer.Sent>> sent = new LinkedHashMap<>();
  private final Map<Key, Said<TensorSpec>> received = new LinkedHashMap<>();
  private final List<Pair> pairs = new ArrayList<>();

  /**
   * Compares the offers, or throws MismatchException if they contradict one another.
   *
   * @param encoded element {@code r} is the result of {@link Offer#encode} on rank {@code r}; ranks
   *     with equal results may share one array
   * @param named formats a layout for messages; its first argument is true for a sender's layout
   */
  Agreement(byte[][] encoded, BiFunction<Boolean, Layout, String> named) {
    this.named = named;
    Map<byte[], Offer> decoded = new IdentityHashMap<>();
    for (int rank = 0; rank < encoded.length; rank++) {
      Offer known = decoded.get(encoded[rank]);
      if (known == null) {
        known = Offer.decode(rank, encoded[rank]);
        decoded.put(encoded[rank], known);
        collect(rank, known);
      }
      offers.add(known);
    }
    requireMembers();
    match();
  }

  List<Pair> pairs() {
    return pairs;
  }

  /** Returns true if any rank asks for checksums. */
  boolean checksums() {
    return offers.stream().anyMatch(Offer::checksums);
  }

  /** Returns true if the transfers of both ranks also move over other links between jobs. */
  boolean isInner(int sender, int receiver) {
    return offers.get(sender).links() > 1 && offers.get(receiver).links() > 1;
  }

  /**
   * Returns true if any rank receives versions alternately into two memory halves, and not in
   * place.
   */
  boolean doubled() {
    return offers.stream().anyMatch(offer -> !offer.receives().isEmpty() && !offer.inPlace());
  }

  private void collect(int rank, Offer offer) {
    for (Offer.Sent each : offer.sends()) {
      agree("sends", new Key(each.spec().name(), 0), rank, each, sent);
    }
    Iterator<Key> keys = keys(offer.receives()).iterator();
    for (TensorSpec spec : offer.receives()) {
      agree("receives", keys.next(), rank, spec, received);
    }
  }

  private <T> void agree(String verb, Key key, int rank, T what, Map<Key, Said<T>> known) {
    Said<T> first = known.putIfAbsent(key, new Said<>(rank, what));
    if (first != null && !first.what.equals(what)) {
      throw mismatch(
          key.name,
          "rank " + first.rank + " " + verb + " it as " + text(first.what) + ", rank " + rank
              + " as " + text(what),
          first.rank,
          rank);
    }
  }

  /** Throws MismatchException if a rank holds a part of a tensor that it has not offered. */
  private void requireMembers() {
    Map<Offer, Set<Key>> sentKeys = new IdentityHashMap<>();
    Map<Offer, Set<Key>> receivedKeys = new IdentityHashMap<>();
    for (Offer offer : offers) {
      sentKeys.computeIfAbsent(offer, o -> keys(o.sends().stream().map(Offer.Sent::spec).toList()));
      receivedKeys.computeIfAbsent(offer, o -> keys(o.receives()));
    }
    sent.forEach((key, said) -> requireMembers("sends", key, said, said.what.spec(), sentKeys));
    received.forEach((key, said) -> requireMembers("receives", key, said, said.what, receivedKeys));
  }

  private void requireMembers(
      String verb, Key key, Said<?> said, TensorSpec spec, Map<Offer, Set<Key>> named) {
    for (int rank : spec.layout().mesh().ranks()) {
      if (rank >= offers.size()) {
        throw mismatch(
            key.name,
            claim(verb, said) + "the link has ranks 0 to " + (offers.size() - 1),
            said.rank);
      }
      if (!Objects.requireNonNull(named.get(offers.get(rank))).contains(key)
          && Shapes.numel(spec.localShape(rank)) != 0) {
        throw mismatch(
            key.name,
            claim(verb, said) + "rank " + rank + " holds a part of that and has not named it",
            said.rank,
            rank);
      }
    }
  }

  private static Set<Key> keys(List<TensorSpec> specs) {
    Set<Key> keys = new LinkedHashSet<>();
    Map<String, Integer> views = new HashMap<>();
    for (TensorSpec spec : specs) {
      keys.add(new Key(spec.name(), views.merge(spec.name(), 1, Integer::sum) - 1));
    }
    return keys;
  }

  private void match() {
    Set<String> taken = new HashSet<>();
    received.forEach(
        (key, to) -> {
          Said<Offer.Sent> from = sent.get(new Key(key.name, 0));
          if (from == null) {
            throw mismatch(
                key.name, "rank " + to.rank + " receives it and no rank sends it", to.rank);
          }
          TensorSpec spec = from.what.spec();
          if (!spec.shape().equals(to.what.shape())) {
            throw mismatch(
                key.name,
                "rank " + from.rank + " sends shape " + spec.shape() + ", rank " + to.rank
                    + " receives shape " + to.what.shape(),
                from.rank,
                to.rank);
          }
          taken.add(key.name);
          pairs.add(new Pair(from.what, to.what, key.view));
        });
    sent.forEach(
        (key, from) -> {
          if (!taken.contains(key.name)) {
            throw mismatch(
                key.name, "rank " + from.rank + " sends it and no rank receives it", from.rank);
          }
        });
  }

  private String claim(String verb, Said<?> said) {
    return "rank " + said.rank + " " + verb + " it as " + text(said.what) + "; ";
  }

  private String text(Object said) {
    return said instanceof Offer.Sent sent
        ? text(true, sent.spec()) + ", " + sent.moving()
        : text(false, (TensorSpec) said);
  }

  private String text(boolean isSent, TensorSpec spec) {
    return spec.dtype() + spec.shape().toString() + " under " + named.apply(isSent, spec.layout());
  }

  private static MismatchException mismatch(String name, String what, Integer... faultyRanks) {
    return new MismatchException(
        "tensor '" + name + "': " + what, null, "", List.of(faultyRanks));
  }
}
