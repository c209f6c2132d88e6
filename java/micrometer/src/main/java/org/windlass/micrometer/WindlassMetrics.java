// SPDX-License-Identifier: Apache-2.0
package org.windlass.micrometer;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.error.InvalidArgumentException;
import org.windlass.job.Follower;
import org.windlass.job.Followers;
import org.windlass.link.LinkTransfer;
import org.windlass.report.OperationTotals;

/**
 * Meters of one communicator, of a link's receiver, or of a source's followers:
 *
 * <pre>{@code
 * WindlassMetrics.of(communicator, Tag.of("communicator", "world")).bindTo(registry);
 * }</pre>
 *
 * <p>A registry reads the meters when it publishes them. Operations do no work for the registry. A
 * registry keeps no communicator, link or followers reachable. Once the metered object is
 * unreachable, counters keep their last value and gauges are {@code NaN}.
 *
 * <p>{@link #close} removes the meters, for example before the meters of the communicator that
 * follows a failed one are bound. Thread-safe.
 */
public final class WindlassMetrics implements MeterBinder, AutoCloseable {
  /**
   * A meter that reads {@code source}. It is a counter if it has a unit or counts calls, and
   * otherwise a gauge.
   */
  private record Series<T>(
      T source,
      boolean isCounter,
      String name,
      Tags tags,
      @Nullable String unit,
      String description,
      ToDoubleFunction<T> value) {
    Meter register(MeterRegistry registry) {
      if (registry.find(name).tags(tags).meter() != null) {
        throw new InvalidArgumentException(
            "the registry has " + name + " with the tags " + tags.stream().toList()
                + " already; close those metrics first, or distinguish the two by another tag");
      }
      return isCounter
          ? FunctionCounter.builder(name, source, value)
              .tags(tags)
              .baseUnit(unit)
              .description(description)
              .register(registry)
          : Gauge.builder(name, source, value)
              .tags(tags)
              .description(description)
              .register(registry);
    }
  }

  private record Bound(MeterRegistry registry, Meter meter) {}

  private final List<Series<?>> series;
  private final List<Bound> bound = new ArrayList<>();

  private WindlassMetrics(List<Series<?>> series) {
    this.series = series;
  }

  /**
   * Returns the meters of a rank's communicator. Each operation, such as {@code all-reduce}, has
   * the counters {@code windlass.calls}, {@code windlass.failures}, {@code windlass.bytes} and
   * {@code windlass.wait} (in seconds), with the tags {@code operation} and {@code rank}. They are
   * the values of {@link Communicator#totals}.
   *
   * @param tags further tags, which distinguish this communicator from others in the process
   */
  public static WindlassMetrics of(Communicator communicator, Tag... tags) {
    List<OperationTotals> totals = communicator.totals();
    Tags common = Tags.of(tags).and("rank", String.valueOf(communicator.rank()));
    List<Series<?>> series = new ArrayList<>();
    for (int i = 0; i < totals.size(); i++) {
      int at = i;
      Tags own = common.and("operation", totals.get(i).operation());
      series.add(
          new Series<>(
              communicator, true, "windlass.calls", own, null, "Operations that have ended",
              comm -> comm.totals().get(at).calls()));
      series.add(
          new Series<>(
              communicator, true, "windlass.failures", own, null, "Operations that failed",
              comm -> comm.totals().get(at).failures()));
      series.add(
          new Series<>(
              communicator, true, "windlass.bytes", own, "bytes",
              "Bytes of the operations, as windlass bench counts them",
              comm -> comm.totals().get(at).bytes()));
      series.add(
          new Series<>(
              communicator, true, "windlass.wait", own, "seconds",
              "Time in waits for peers of more than some microseconds",
              comm -> comm.totals().get(at).waited().toNanos() / 1e9));
    }
    return new WindlassMetrics(series);
  }

  /**
   * Returns the meters of a receiver of a link between two jobs. The gauges are {@code
   * windlass.link.version}, the version that the receiver holds, {@code windlass.link.newest}, the
   * newest version that the senders have offered, and {@code windlass.link.lag}, the difference. A
   * gauge is {@code NaN} while there is no such version.
   *
   * @param tags tags that distinguish this link from others in the process
   * @throws InvalidArgumentException if the link is within one communicator, or this is a sender
   */
  public static WindlassMetrics of(LinkTransfer receiver, Tag... tags) {
    receiver.newest(); // throws if there is none to read
    Tags own = Tags.of(tags);
    return new WindlassMetrics(
        List.of(
            new Series<>(
                receiver, false, "windlass.link.version", own, null,
                "Version that the receiver holds", link -> number(link.version())),
            new Series<>(
                receiver, false, "windlass.link.newest", own, null,
                "Newest version that the senders have offered", link -> number(link.newest())),
            new Series<>(
                receiver, false, "windlass.link.lag", own, null,
                "Newest offered version minus the version that the receiver holds",
                link -> {
                  double held = number(link.version()); // first, so that it is not the newer one
                  return number(link.newest()) - held;
                })));
  }

  /**
   * Returns the meters of a source's followers. The gauges are {@code windlass.followers.linked},
   * the number of linked followers, and {@code windlass.followers.lag}, the highest {@link
   * Follower#lag} among the followers.
   *
   * @param tags tags that distinguish these followers from others in the process
   */
  public static WindlassMetrics of(Followers followers, Tag... tags) {
    Tags own = Tags.of(tags);
    return new WindlassMetrics(
        List.of(
            new Series<>(
                followers, false, "windlass.followers.linked", own, null,
                "Followers that are linked", all -> linked(all).count()),
            new Series<>(
                followers, false, "windlass.followers.lag", own, null,
                "Versions by which the slowest linked follower is behind",
                all -> linked(all).mapToLong(Follower::lag).max().orElse(0))));
  }

  private static Stream<Follower> linked(Followers followers) {
    return followers.now().stream().filter(follower -> follower.lost().isEmpty());
  }

  private static double number(OptionalLong version) {
    return version.isPresent() ? version.getAsLong() : Double.NaN;
  }

  /**
   * Registers the meters.
   *
   * @throws InvalidArgumentException if the registry has meters of these names and tags
   */
  @Override
  public synchronized void bindTo(MeterRegistry registry) {
    Objects.requireNonNull(registry, "registry");
    for (Series<?> each : series) {
      bound.add(new Bound(registry, each.register(registry)));
    }
  }

  /** Removes the meters from every registry to which they were bound. Idempotent. */
  @Override
  public synchronized void close() {
    bound.forEach(each -> each.registry().remove(each.meter()));
    bound.clear();
  }
}
