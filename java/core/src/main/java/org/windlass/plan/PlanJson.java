// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonFields;
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

  static Plan decode(String text) {
    return JsonText.parse(WHERE, text.getBytes(StandardCharsets.UTF_8), PlanJson::decode);
  }

  private static Plan decode(JsonText json) throws IOException {
    JsonFields fields = new JsonFields(json, "");
    var version = fields.add("version", key -> version(json, key));
    var from = fields.add("from", key -> json.parsed(key, Layout::parse));
    var to = fields.add("to", key -> json.parsed(key, Layout::parse));
    var shape = fields.add("shape", json::naturals);
    var paddedFrom = fields.add("padded_from", json::naturals);
    var paddedTo = fields.add("padded_to", json::naturals);
    var dtype = fields.add("dtype", key -> json.parsed(key, DType::parse));
    var wire = fields.add("wire", key -> json.parsed(key, DType::parse));
    var targetDtype = fields.add("target_dtype", key -> json.parsed(key, DType::parse));
    var mode = fields.add("mode", key -> json.parsed(key, TransferMode::parse));
    var bucketBytes = fields.add("bucket_bytes", key -> positive(json, key, json.natural(key)));
    var turn = fields.add("turn", json::integer);
    var ranksPerHost =
        fields.add("ranks_per_host", key -> positive(json, key, json.integer(key)));
    var hosts = fields.add("hosts", key -> hosts(json, key));
    var fingerprint = fields.add("fingerprint", json::string);
    fields.read("the whole");
    version.get();
    List<Long> extents = shape.get();
    Plan plan =
        Plan.of(
            new TensorSpec(
                "", extents, dtype.get(), from.get(), paddedFrom.find().orElse(extents)),
            new TensorSpec(
                "", extents, targetDtype.get(), to.get(), paddedTo.find().orElse(extents)),
            wire.get(),
            new PlanOptions(
                mode.get(),
                bucketBytes.get(),
                turn.get(),
                hosts.find().or(() -> ranksPerHost.find().map(Hosts::ofEach)).orElse(Hosts.one())));
    if (!fingerprint.get().equals(hex(plan.fingerprint()))) {
      throw json.bad(
          "fingerprint is " + fingerprint.get() + ", but the plan here has "
              + hex(plan.fingerprint())
              + "; it was changed, or another version of Windlass wrote it: plan again");
    }
    return plan;
  }

  private static long version(JsonText json, String key) throws IOException {
    long version = json.natural(key);
    if (version != VERSION) {
      throw json.bad(key + " is " + version + "; only " + VERSION + " is known");
    }
    return version;
  }

  private static <T extends Number> T positive(JsonText json, String key, T value) {
    if (value.longValue() < 1) {
      throw json.bad(key + " is " + value + ", not at least 1");
    }
    return value;
  }

  private static Hosts hosts(JsonText json, String key) throws IOException {
    int[] numbers =
        json.list(key, json::integer).stream().mapToInt(Integer::intValue).toArray();
    try {
      return Hosts.of(numbers);
    } catch (InvalidArgumentException malformed) {
      throw json.bad(key + ": " + malformed.getMessage());
    }
  }

  private static String hex(long fingerprint) {
    return String.format("%016x", fingerprint);
  }
}
