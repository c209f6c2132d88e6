// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonObject;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;

final class PlanJson {
  private static final int VERSION = 1;
  private static final String WHERE = "plan";

  private PlanJson() {}

  static String encode(Plan plan) {
    Hosts hosts = plan.options().hosts();
    return JsonObject.line(
        JsonObject.of(
            "version", VERSION,
            "from", plan.from().qualified(),
            "to", plan.to().qualified(),
            "shape", Arrays.stream(plan.shape()),
            "padded_from", padded(plan.paddedFrom(), plan),
            "padded_to", padded(plan.paddedTo(), plan),
            "dtype", plan.dtype(),
            "wire", plan.wire(),
            "target_dtype", plan.targetDtype(),
            "mode", plan.options().mode(),
            "bucket_bytes", plan.options().bucketBytes(),
            "turn", plan.options().turn(),
            "ranks_per_host",
                hosts.areSeveral() && hosts.ranksPerHost().isPresent()
                    ? hosts.ranksPerHost().getAsInt()
                    : Optional.empty(),
            "hosts", hosts.numbers(),
            "fingerprint", hex(plan.fingerprint())));
  }

  private static Optional<LongStream> padded(long[] shape, Plan plan) {
    return Arrays.equals(shape, plan.shape())
        ? Optional.empty()
        : Optional.of(Arrays.stream(shape));
  }

  private static final class Fields {
    @Nullable Long version;
    @Nullable Layout from;
    @Nullable Layout to;
    @Nullable List<Long> shape;
    @Nullable List<Long> paddedFrom;
    @Nullable List<Long> paddedTo;
    @Nullable DType dtype;
    @Nullable DType wire;
    @Nullable DType targetDtype;
    @Nullable TransferMode mode;
    @Nullable Long bucketBytes;
    @Nullable Integer turn;
    Hosts hosts = Hosts.one();
    @Nullable String fingerprint;
  }

  static Plan decode(String text) {
    Fields fields = new Fields();
    JsonText.object(
        WHERE,
        text.getBytes(StandardCharsets.UTF_8),
        InvalidArgumentException::new,
        (json, key) -> read(json, key, fields));
    require("version", fields.version);
    List<Long> shape = require("shape", fields.shape);
    Plan plan =
        Plan.of(
            new TensorSpec(
                "",
                shape,
                require("dtype", fields.dtype),
                require("from", fields.from),
                fields.paddedFrom == null ? shape : fields.paddedFrom),
            new TensorSpec(
                "",
                shape,
                require("target_dtype", fields.targetDtype),
                require("to", fields.to),
                fields.paddedTo == null ? shape : fields.paddedTo),
            require("wire", fields.wire),
            new PlanOptions(
                require("mode", fields.mode),
                require("bucket_bytes", fields.bucketBytes),
                require("turn", fields.turn),
                fields.hosts));
    if (!require("fingerprint", fields.fingerprint).equals(hex(plan.fingerprint()))) {
      throw new InvalidArgumentException(
          WHERE + ": fingerprint is " + fields.fingerprint + ", but what stands here plans to "
              + hex(plan.fingerprint())
              + "; it was changed, or another version of Windlass wrote it: plan again");
    }
    return plan;
  }

  private static void read(JsonText json, String key, Fields fields) throws IOException {
    switch (key) {
      case "version" -> {
        fields.version = json.natural(key);
        if (fields.version != VERSION) {
          throw json.bad(key + " is " + fields.version + "; only " + VERSION + " is known");
        }
      }
      case "from" -> fields.from = parsed(json, key, Layout::parse);
      case "to" -> fields.to = parsed(json, key, Layout::parse);
      case "shape" -> fields.shape = json.naturals(key);
      case "padded_from" -> fields.paddedFrom = json.naturals(key);
      case "padded_to" -> fields.paddedTo = json.naturals(key);
      case "dtype" -> fields.dtype = parsed(json, key, DType::parse);
      case "wire" -> fields.wire = parsed(json, key, DType::parse);
      case "target_dtype" -> fields.targetDtype = parsed(json, key, DType::parse);
      case "mode" -> fields.mode = parsed(json, key, TransferMode::parse);
      case "bucket_bytes" -> {
        fields.bucketBytes = json.natural(key);
        if (fields.bucketBytes < 1) {
          throw json.bad(key + " is " + fields.bucketBytes + ", not at least 1");
        }
      }
      case "turn" -> fields.turn = integer(json, key);
      case "ranks_per_host" -> {
        int ranks = integer(json, key);
        if (ranks < 1) {
          throw json.bad(key + " is " + ranks + ", not at least 1");
        }
        fields.hosts = Hosts.ofEach(ranks);
      }
      case "hosts" -> fields.hosts = hosts(json, key);
      case "fingerprint" -> fields.fingerprint = json.string(key);
      default -> throw json.bad("unknown key " + JsonText.quoted(key));
    }
  }

  private static Hosts hosts(JsonText json, String key) throws IOException {
    List<Integer> numbers = new ArrayList<>();
    json.elements(key, index -> numbers.add(integer(json, key + "[" + index + "]")));
    try {
      return Hosts.of(numbers.stream().mapToInt(Integer::intValue).toArray());
    } catch (InvalidArgumentException malformed) {
      throw json.bad(key + ": " + malformed.getMessage());
    }
  }

  private static int integer(JsonText json, String key) throws IOException {
    long value = json.natural(key);
    if (value > Integer.MAX_VALUE) {
      throw json.bad(key + " is " + value + ", more than " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  private static <T> T parsed(JsonText json, String key, Function<String, T> parse)
      throws IOException {
    String text = json.string(key);
    try {
      return parse.apply(text);
    } catch (InvalidArgumentException malformed) {
      throw json.bad(key + ": " + malformed.getMessage());
    }
  }

  private static <T> T require(String key, @Nullable T value) {
    if (value == null) {
      throw new InvalidArgumentException(WHERE + ": " + key + " is missing");
    }
    return value;
  }

  private static String hex(long fingerprint) {
    return String.format("%016x", fingerprint);
  }
}
