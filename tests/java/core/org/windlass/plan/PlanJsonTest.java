// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/** Plans as JSON and back, and texts that are none. */
class PlanJsonTest {
  private static final Plan PLAN =
      Plan.of(
          Layout.parse("dp=2xtp=2:P,S0"),
          Layout.parse("2@[5,4]:SS1/2"),
          new long[] {8, 12},
          DType.F32,
          DType.BF16,
          DType.F16,
          PlanOptions.defaults()
              .withMode(TransferMode.STAGED)
              .withBucketBytes(4096)
              .withTurn(3));

  @Test
  void aPlanIsOneObject() {
    assertThat(PLAN.toJson())
        .startsWith(
            "{\"version\":1,\"from\":\"dp=2xtp=2@0:P,S0\",\"to\":\"2@[5,4]:SS1/2\",\"shape\":[8,12],"
                + "\"dtype\":\"f32\",\"wire\":\"bf16\",\"target_dtype\":\"f16\","
                + "\"mode\":\"staged\",\"bucket_bytes\":4096,\"turn\":3,\"fingerprint\":\"");
  }

  @RandomSeeds(500)
  void whatWasWrittenIsReadAsTheSamePlan(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 32);
    long[] shape = random.shape(5, 2000);
    TensorSpec from = random.spec("", DType.F32, true, shape);
    TensorSpec to = random.spec("", DType.F8E4M3, false, shape);
    PlanOptions options =
        new PlanOptions(
            TransferMode.values()[Math.floorMod(seed, 3)],
            1 + Math.floorMod(seed, 1000),
            Math.floorMod(seed, 7),
            random.hosts(from.layout(), to.layout()));
    Plan plan = Plan.of(from, to, DType.BF16, options);
    Plan read = Plan.parse(plan.toJson());
    assertThat(read.toJson()).isEqualTo(plan.toJson());
    assertThat(read.fingerprint()).isEqualTo(plan.fingerprint());
    assertThat(read.options()).isEqualTo(options);
    assertThat(read.routes()).isEqualTo(plan.routes());
  }

  @Test
  void whatIsNoPlanIsRefusedWithItsPlace() {
    String json = PLAN.toJson();
    refused("", "plan: the JSON is empty");
    refused("[]", "plan: the whole is a list, not an object");
    refused(json + "{}", "something follows");
    refused(json.substring(0, 40), "not valid JSON");
    refused(json.replace("\"version\":1", "\"version\":2"), "version is 2; only 1");
    refused(
        json.replace("\"turn\":3", "\"turn\":\"3\""), "turn is the string \"3\", not an integer");
    refused(json.replace("\"turn\":3", "\"turn\":3000000000"), "turn is 3000000000, more than");
    refused(json.replace("\"turn\":3", "\"turn\":true"), "turn is true, not an integer");
    refused(json.replace("\"turn\":3", "\"turn\":3,\"turn\":3"), "\"turn\" stands twice");
    refused(
        json.replace("\"turn\":3", "\"turn\":3,\"ranks_per_host\":0"),
        "ranks_per_host is 0, not at least 1");
    refused(
        json.replace("\"turn\":3", "\"turn\":3,\"hosts\":[]"), "hosts: hosts: is empty");
    refused(
        json.replace("\"turn\":3", "\"turn\":3,\"hosts\":[0,-1]"),
        "hosts[1] is -1, which is negative");
    refused(
        json.replace("\"turn\":3", "\"turn\":3,\"hosts\":[0,0,0,1,1]"),
        "has rank 5, whose host is not known");
    refused(
        json.replace("\"dtype\":\"f32\"", "\"padded_to\":[8,5],\"dtype\":\"f32\""),
        "padded shape [8, 5]");
    refused(
        json.replace("\"dtype\":\"f32\"", "\"padded_to\":[9,12],\"dtype\":\"f32\""),
        "fingerprint is");
    refused(json.replace("\"turn\":3", "\"turns\":3"), "the key \"turns\" is unknown; known are version, from, to");
    refused(json.replace("\"turn\":3,", ""), "turn is missing");
    refused(json.replace("[8,12]", "[8,-12]"), "shape[1] is -12, which is negative");
    refused(json.replace("[8,12]", "[8,12.0]"), "shape[1] is 12.0, not an integer");
    refused(json.replace("[8,12]", "[8,9223372036854775808]"), "shape[1] is 9223372036854775808");
    refused(json.replace("[8,12]", "8"), "shape is 8, not a list");
    refused(json.replace("[8,12]", "[8]"), "shards dimension 1");
    refused(json.replace("[8,12]", "[8,6]"), "has extent 6 in dimension 1, which placement SS1/2");
    refused(json.replace("P,S0", "P,S"), "from: ");
    refused(json.replace("\"bf16\"", "\"bf17\""), "wire: ");
    refused(json.replace("\"bf16\"", "null"), "wire is null, not a string");
    refused(json.replace("staged", "stage"), "mode: 'stage' is no transfer mode: direct, staged");
    refused(json.replace("4096", "0"), "bucket_bytes is 0, not at least 1");
    refused(json.replace("4096", "4097"), "fingerprint is");
    refused(json.replace("[8,12]", "[8,16]"), "plan again");
    assertThatThrownBy(() -> Plan.parse(json.replace("\"bf16\"", "\"i32\"")))
        .isInstanceOf(UnsupportedException.class);
  }

  private static void refused(String json, String message) {
    assertThatThrownBy(() -> Plan.parse(json))
        .as(json)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(message);
  }
}
